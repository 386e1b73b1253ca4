"""The likelihood of several models on the same held-out pieces, and the differences between them, piece by piece.

    python studies/paired.py --store outputs/maestro/store --table outputs/maestro --json paired.json
    python studies/paired.py --store outputs/stores/pop909 --split validation --models now=piano own=my.safetensors \\
        --json pop.json

All pieces of one model vary much more than two models differ on one piece, so the interval of a difference, with pieces
resampled, is far narrower than those of the two figures. Inputs of 2,048 ids, under the same autocast to bfloat16 as in
training. Every piece is kept beside the JSON as soon as it is scored: the same command resumes where it stopped, and
with `--minutes` it stops by itself and reports the pieces that every model has read.
"""

import argparse
import json
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import torch
from maestro_small import MODELS

from musictx.analysis.bootstrap import interval
from musictx.analysis.likelihood import negative_log_likelihood
from musictx.config.app import in_one_line
from musictx.data.store import Split
from musictx.errors import UserError
from musictx.files import replacing
from musictx.model.shipped import bundle_path
from musictx.playing.opening import common_store, open_bundle

SEGMENT, AT_ONCE = 2048, 9  # ids in an input; every 9th piece, then those after them

Kept = dict[str, dict[str, list[float]]]  # model: piece: nats, tokens


def rounds(pieces: int) -> list[list[int]]:
    """All pieces in rounds that are each spread over the split."""
    return [list(range(first, pieces, AT_ONCE)) for first in (0, 3, 6, 1, 4, 7, 2, 5, 8) if first < pieces]


def read_kept(keep: Path, of: dict[str, Any]) -> Kept:
    """The pieces scored so far. Raises UserError for those of other models or of another split."""
    if not keep.exists():
        return {}
    found = json.loads(keep.read_text())
    others = found["of"]["sha256"].items() - of["sha256"].items()
    if found["of"]["split"] != of["split"] or others:
        names = ", ".join(sorted(name for name, _ in others)) or f"the {found['of']['split']} split"
        raise UserError(f"{keep} tells of others ({names}): give another --json, or remove it")
    kept: Kept = found["pieces"]
    return kept


def score(bundles: dict[str, Path], store: Path, split_name: str, keep: Path, end: float) -> Kept:
    """Nats and tokens of every piece that each model has read before the clock says `end`."""
    hashes = {name: sha256(path.read_bytes()).hexdigest() for name, path in bundles.items()}
    of = {"split": split_name, "sha256": hashes}
    kept = read_kept(keep, of)
    split = common_store(store, list(bundles.values())).split(split_name)
    opened = {name: open_bundle(path, "cpu", "auto") for name, path in bundles.items()}
    for numbers in rounds(len(split)):
        for name, one in opened.items():
            done = kept.setdefault(name, {})
            todo = [i for i in numbers if split.names[i] not in done]
            if not todo:
                continue
            if monotonic() >= end:
                return kept
            offsets = np.cumsum([0, *(len(split[i]) for i in todo)])
            part = Split(np.concatenate([split[i] for i in todo]), offsets, [split.names[i] for i in todo])
            with torch.autocast("cpu", torch.bfloat16):
                found = negative_log_likelihood(one.model, part, one.tokenizer, SEGMENT, 4 * SEGMENT)
            figures = zip(found.nats.tolist(), found.tokens_of.tolist(), strict=True)
            done |= dict(zip(part.names, map(list, figures), strict=True))
            with replacing(keep) as partial:
                partial.write_text(json.dumps({"of": of, "pieces": kept}), encoding="utf-8")
            print(f"{name}: {len(done)} of {len(split)} pieces", flush=True)
    return kept


def report(kept: Kept) -> dict[str, Any]:
    """Each model's nats a token with an interval, and how much more it costs than the best, over the pieces that all
    have read. Raises UserError for none."""
    common = sorted(set.intersection(*(set(done) for done in kept.values())))
    if not common:
        raise UserError("no piece has been read by every model: give more --minutes")
    tokens = np.array([next(iter(kept.values()))[piece][1] for piece in common])
    nats = {name: np.array([done[piece][0] for piece in common]) for name, done in kept.items()}
    best = min(nats, key=lambda name: nats[name].sum())
    rows = {
        name: {"nll": interval(cost, tokens), "more_than_best": interval(cost - nats[best], tokens)}
        for name, cost in nats.items()
    }
    return {"pieces": len(common), "tokens": int(tokens.sum()), "best": best, "models": rows}


def of_table(table: Path) -> dict[str, Path]:
    """The finished models of studies/maestro.py, by name. Raises UserError for none."""
    bundles = {name: table / f"{name}-whole/model.safetensors" for name in MODELS}
    bundles = {name: path for name, path in bundles.items() if path.exists()}
    if not bundles:
        raise UserError(f"{table} has no finished model: run studies/maestro.py with --size small")
    return bundles


def named(words: list[str]) -> dict[str, Path]:
    """The bundles that a person names, each as NAME=BUNDLE. Raises UserError for other words and for a name said
    twice, BundleError for a bundle that is not there."""
    pairs = [word.partition("=")[::2] for word in words]
    names = [name for name, _ in pairs]
    if not all(name and bundle for name, bundle in pairs) or len(set(names)) < len(names):
        raise UserError(f"--models {' '.join(words)}: give each model once, as NAME=BUNDLE")
    return {name: bundle_path(bundle) for name, bundle in pairs}


def study(args: argparse.Namespace) -> None:
    bundles = of_table(args.table) if args.models is None else named(args.models)
    keep = args.json.with_suffix(".pieces.json")
    end = monotonic() + 60 * args.minutes
    told = {"split": args.split, "segment": SEGMENT}
    told |= report(score(bundles, args.store, args.split, keep, end))
    with replacing(args.json) as partial:
        partial.write_text(json.dumps(told, indent=1), encoding="utf-8")
    print(f"{told['pieces']} pieces, {told['tokens']:,} tokens")
    print("| model | nats a token | more than the best |\n|---|---|---|")
    for name, row in told["models"].items():
        cells = ("{:.4f} ({:.4f} to {:.4f})".format(*row[figure]) for figure in ("nll", "more_than_best"))
        print(f"| {name} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, required=True)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--table", type=Path, help="the folder of maestro.py")
    which.add_argument("--models", nargs="+", metavar="NAME=BUNDLE", help="bundles of your own choice")
    parser.add_argument("--split", default="test")
    parser.add_argument("--minutes", type=float, default=1e9, help="minutes of scoring in this call")
    parser.add_argument("--json", type=Path, required=True)
    study(parser.parse_args())


if __name__ == "__main__":
    in_one_line(main)
