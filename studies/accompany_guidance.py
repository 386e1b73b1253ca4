"""What guidance by the melody does to the voices that a harmoniser writes, beside Bach's below the same sopranos.

    python data_prep/jsb.py out=outputs/stores/jsb
    python studies/accompany_guidance.py                  # stopped at any moment, the same command resumes
    python studies/accompany_guidance.py --pieces 2 --out outputs/trial --json outputs/trial.json

Voices are drawn below held-out sopranos of the validation split with no rule but that every id is music, and once more
with the rules of `musictx accompany`. Beside the counts of voice leading stands the gain: nats a token that the melody
saves, log p - log p' of what was drawn, with p' from the hidden melody. Two rows tell what is no guidance: the cut that
comes with it, alone, and a lower temperature. Differences are taken piece by piece, each piece the mean of its seeds.

A strength may be the default where it brings some figure towards Bach's by its 95 % interval, and takes none away.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accompany_draws import bach, drawn
from numpy.typing import NDArray

from musictx.analysis.bootstrap import interval
from musictx.analysis.voice_leading import VoiceLeading, voice_leading
from musictx.commands.evaluate import file_hash
from musictx.config.app import in_one_line, parse_options
from musictx.config.use import AccompanyConfig
from musictx.data.store import Store
from musictx.errors import ConfigError
from musictx.files import replacing
from musictx.model.shipped import bundle_path
from musictx.music.grid import Grid
from musictx.playing.opening import Opened, open_bundle
from musictx.sampling.settings import Sampling

PLAIN = "no guidance"
Columns = dict[str, NDArray[np.float64]]  # what is counted in each piece (P,), and in how much: "beats", "tokens"


def samplings(strengths: list[float]) -> dict[str, Sampling]:
    cut = Sampling.guidance_cut
    guided = {f"g = {g:g}": Sampling(seed_guidance=g) for g in strengths}
    controls = {
        f"the cut alone (min_p={cut:g})": Sampling(seed_guidance=None, min_p=cut),
        "temperature 0.8": Sampling(seed_guidance=None, temperature=0.8),
    }
    return {PLAIN: Sampling(seed_guidance=None), **guided, **controls}


@torch.inference_mode()
def saved_by_melody(opened: Opened, grid: Grid) -> float:
    """Nats of the lower voices of a grid (S, 4) that the model saves by hearing its soprano."""
    model: Any = opened.model
    tokenizer: Any = opened.tokenizer
    ids = torch.from_numpy(tokenizer.encode_grid(grid).astype(np.int64)).view(-1, 4)
    melody, lower = ids[:, 0], ids[:, 1:].flatten()
    source = torch.stack([melody, torch.full_like(melody, tokenizer.vocab.pad)])
    read = torch.cat([lower.new_tensor([tokenizer.vocab.bos]), lower[:-1]]).expand(2, -1)
    log_p = model(source, read).log_softmax(-1)  # (2, T, V)
    heard, hidden = log_p.gather(2, lower.expand(2, -1)[..., None]).double().sum((1, 2))
    return float(heard - hidden)


def columns(opened: Opened, draws: list[list[Grid]]) -> Columns:
    """Each piece's counts, the mean of its draws (lists of pieces)."""
    each = []
    for grids in draws:
        counts = np.array([voice_leading(grid) for grid in grids], dtype=np.float64)  # (P, counts)
        gain = np.array([saved_by_melody(opened, grid) for grid in grids])
        each.append(np.column_stack([counts, gain, [3 * len(grid) for grid in grids]]))
    names = (*VoiceLeading._fields, "gain", "tokens")
    return dict(zip(names, np.mean(each, 0).T, strict=True))


def told(found: Columns, plain: Columns, true: Columns) -> dict[str, Any]:
    """Of each figure its interval, what it has more than without guidance, and whether that is towards Bach's."""
    row: dict[str, Any] = {}
    for name in (*VoiceLeading._fields[1:], "gain"):
        of, times = ("tokens", 1) if name == "gain" else ("beats", 100)
        more = interval(times * (found[name] - plain[name]), plain[of])
        excess = times * (plain[name] - true[name]).sum() / true[of].sum()  # of plain music over Bach's
        sure = more.low > 0 or more.high < 0
        nearer = abs(excess + more.mean) < abs(excess)
        moved = ("towards" if nearer else "away") if sure else ""
        row[name] = {"is": interval(times * found[name], found[of]), "more": more, "moved": moved}
    return row


def may_be_default(row: dict[str, Any]) -> bool:
    moved = {figure["moved"] for figure in row.values()}
    return "towards" in moved and "away" not in moved


def counted(args: argparse.Namespace) -> dict[str, dict[str, Columns]]:
    """Way of drawing -> row -> what is counted in each piece; each is kept as soon as it is there."""
    path, store, kept = bundle_path(args.bundle), Store(args.store, "chorale"), args.out / "counts.json"
    opened, asked = open_bundle(path, continues=False), [file_hash(path), args.pieces, args.random_seeds]
    if not opened.header.hides_source:
        raise ConfigError(f"{args.bundle} never learnt to write without a melody: train with trainer.hide_source=0.1")
    known: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {"asked": asked, "free": {}, "ruled": {}}
    if known.pop("asked") != asked:
        raise ConfigError(f"{kept} is of another bundle, --pieces or --random-seeds: give another --out")
    rows: dict[str, Sampling | None] = {"Bach": None, **samplings(args.strengths)}
    for way, rules in (("free", None), ("ruled", AccompanyConfig().rules)):
        for name, sampling in rows.items():
            if name in known[way]:
                continue
            what = path, store, "validation", args.pieces
            draws = (
                [bach(*what[1:])]
                if sampling is None
                else [drawn(*what, k, sampling, rules) for k in range(args.random_seeds)]
            )
            known[way][name] = {key: x.tolist() for key, x in columns(opened, draws).items()}
            args.out.mkdir(parents=True, exist_ok=True)
            with replacing(kept) as written:
                written.write_text(json.dumps({"asked": asked, **known}), encoding="utf-8")
    return {
        way: {name: {key: np.array(x) for key, x in row.items()} for name, row in known[way].items()} for way in known
    }


def study(args: argparse.Namespace) -> dict[str, Any]:
    found: dict[str, Any] = {"bundle_sha256": file_hash(bundle_path(args.bundle)), "split": "validation"}
    found |= {"pieces": args.pieces, "seeds": args.random_seeds}
    for way, rows in counted(args).items():
        true, plain = rows["Bach"], rows[PLAIN]
        found[way] = {name: told(row, true if row is true else plain, true) for name, row in rows.items()}
        for name, row in found[way].items():
            print(f"{way}, {name}: {line(row)}")
    able = {g: [found[way][f"g = {g:g}"] for way in ("free", "ruled")] for g in args.strengths}
    return found | {"chosen": max((g for g, both in able.items() if all(map(may_be_default, both))), default=None)}


def line(row: dict[str, Any]) -> str:
    def figure(name: str) -> str:
        mean, low, high = row[name]["is"]
        moved = f" {row[name]['moved']}" if row[name]["moved"] else ""
        return f"{name.replace('_', ' ')} {mean:.2f} ({low:.2f} to {high:.2f}){moved}"

    return ", ".join(map(figure, row))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, default=Path("outputs/stores/jsb"))
    parser.add_argument("--bundle", default="harmoniser")
    parser.add_argument("--strengths", type=float, nargs="+", default=[0.5, 1.0, 2.0])
    parser.add_argument("--out", type=Path, default=Path("outputs/accompany-guidance"), help="what is counted so far")
    parser.add_argument("--pieces", type=int, default=20, help="of the validation split")
    parser.add_argument("--random-seeds", type=int, default=1, help="draws of each piece")
    parser.add_argument("--json", type=Path, default=Path("studies/results/accompany-guidance.json"))
    args, _ = parse_options(parser, sys.argv[1:])
    found = study(args)
    args.json.parent.mkdir(parents=True, exist_ok=True)
    with replacing(args.json) as written:
        written.write_text(json.dumps(found, indent=1), encoding="utf-8")
    print(f"{args.json}: the figures as JSON; a default of guidance: {found['chosen']}")


if __name__ == "__main__":
    in_one_line(main)
