"""A seed that never leaves the window: how much of it comes back over forty windows, with and without.

    python data_prep/jsb.py out=outputs/stores/jsb
    python studies/kept.py --store outputs/stores/jsb --threads 1

The beginnings of held-out pieces are continued four ways: without and with `seed_pinned=true`, each plainly and with
the bundle's own seed guidance. No composer goes on for so long, so the measure is the share of a seed's motifs that
begin again in a window, above the share of other pieces' seeds that do; in tenths of the way, with 95 % intervals over
pieces. Notes a second and their length beside the composers' say whether the music stays itself. Each of the four is
kept once drawn, and the same command resumes. Writes a table, JSON and a picture beside it.
"""

import argparse
import json
import sys
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch

from musictx.analysis.bootstrap import interval
from musictx.analysis.continuations import Beginnings, beginnings
from musictx.analysis.motif import above_chance, held_in
from musictx.analysis.statistics import statistics
from musictx.bench.facts import keep
from musictx.config.app import in_one_line
from musictx.data.store import Store
from musictx.errors import ConfigError
from musictx.model.shipped import bundle_path
from musictx.model.weights import choose_weights, for_steps
from musictx.music.read import read_midi
from musictx.music.score import Meter, Score
from musictx.music.write import write_midi
from musictx.playing.opening import Opened, open_bundle
from musictx.sampling.music import continue_primers
from musictx.sampling.primer import Primer
from musictx.sampling.settings import Length, Sampling, Settings
from musictx.viz.curves import draw_curves

SPANS = 10  # of the table and the picture


def ways(own: float | None) -> dict[str, tuple[float | None, bool]]:
    """Seed guidance and `seed_pinned` of each way to continue; `own` is the bundle's guidance."""
    guided = {f"guidance {own:g}": own} if own is not None else {}
    strengths = {"plain": None, **guided}
    return {
        f"{name}, {'pinned' if pinned else 'rolling'}": (strength, pinned)
        for name, strength in strengths.items()
        for pinned in (False, True)
    }


def begin(folder: Path, asked: dict[str, Any]) -> None:
    """Makes the folder of the music. Raises ConfigError if it has music of other settings, which would be read."""
    place = folder / "settings.json"
    if place.exists() and json.loads(place.read_text()) != asked:
        raise ConfigError(f"{folder} has music of other settings, {place.read_text()}: give those, or another --out")
    keep(place, asked)


def draw(opened: Opened, held_out: Beginnings, settings: Settings, folder: Path) -> list[Score]:
    """One continuation of each seed, from time 0; read from the folder if it is there."""
    paths = [folder / f"{i}.mid" for i in range(len(held_out.seeds))]
    if not all(path.exists() for path in paths):
        primers = [Primer(seed, held_out.seed_s, Meter(seed.quarter_s)) for seed in held_out.seeds]
        drawn = continue_primers(primers, opened.model, opened.tokenizer, settings)
        for path, (row,) in zip(paths, drawn, strict=True):
            write_midi(row.score, path)
    return [read_midi(path) for path in paths]


def figures(scores: list[Score], edges_s: np.ndarray) -> dict[str, list[float]]:
    """Notes a second and their mean length in each span, over all pieces."""
    out: dict[str, list[float]] = {"notes_per_s": [], "note_s": []}
    for begin_s, end_s in pairwise(edges_s):
        found = [statistics(score.clip(begin_s, end_s)) for score in scores]
        out["notes_per_s"].append(float(np.mean([each.note_density or 0.0 for each in found])))
        out["note_s"].append(float(np.nanmean([each.mean_duration_s or np.nan for each in found])))
    return out


def study(args: argparse.Namespace) -> None:
    """The whole study. Raises UserError."""
    opened = open_bundle(bundle_path(args.bundle))
    tokenizer, header = opened.tokenizer, opened.header
    if not tokenizer.voices:
        raise ConfigError(f"--bundle {args.bundle}: windows are counted in seconds of a grid; give one of chorales")
    split = Store(args.store, header.tokenizer).split(args.split)
    held_out = beginnings(split, tokenizer, args.pieces, args.seed_seconds, args.seed_seconds)
    asked = ("split", "pieces", "seed_seconds", "window", "contexts")
    sha = sha256(bundle_path(args.bundle).read_bytes()).hexdigest()
    begin(args.out.with_suffix(""), {name: getattr(args, name) for name in asked} | {"bundle_sha256": sha})
    steps = args.contexts * args.window // tokenizer.group
    opened = opened._replace(model=for_steps(opened.model, choose_weights("auto", opened.model)))
    rows, held_s = {}, held_in(tokenizer.metrical)
    window_s = tokenizer.seconds(np.zeros(args.window, np.uint16), held_out.seeds[0].quarter_s)
    edges_s = np.arange(args.contexts + 1) * window_s
    spans = edges_s[:: max(args.contexts // SPANS, 1)]
    for name, (strength, pinned) in ways(header.seed_guidance).items():
        settings = Settings(
            Sampling(seed_guidance=strength),
            Length(tokens=steps * tokenizer.group),
            window=args.window,
            seed_pinned=pinned,
            include_seed=False,
        )
        scores = draw(opened, held_out, settings, args.out.with_suffix("") / name.replace(", ", "-").replace(" ", "-"))
        own, other, excess = above_chance(held_out.seeds, scores, edges_s, held_s)
        each = [interval(part.mean(0)) for part in np.array_split(excess, len(spans) - 1)]
        whole = interval(excess.mean(0))
        rows[name] = {
            "own": own.mean(),
            "others": other.mean(),
            "above": list(whole),
            "above_by_span": [list(part) for part in each],
            **figures(scores, spans),
        }
        print(f"{name}: {whole.mean:.3f} ({whole.low:.3f} to {whole.high:.3f}) above chance, {other.mean():.3f}")
    true = figures(held_out.true, np.array([0.0, held_out.length_s]))
    print(table(rows, true))
    facts: dict[str, Any] = {"bundle": Path(args.bundle).name, "split": args.split, "pieces": len(held_out.seeds)}
    facts |= {"seed_seconds": held_out.seed_s, "window": args.window, "contexts": args.contexts}
    keep(args.out, json.loads(json.dumps(facts | {"window_s": window_s, "ways": rows, "true": true})))
    middle = (spans[1:] + spans[:-1]) / 2
    curves = {name: (middle, *np.array(row["above_by_span"]).T) for name, row in rows.items()}
    label = "share of the seed's motifs in a window, above chance"
    draw_curves(curves, args.out.with_suffix(".png"), "seconds since the seed", label)
    print(f"{args.out}, its picture beside it; {args.out.with_suffix('')}: the music")


def table(rows: dict[str, dict[str, Any]], true: dict[str, list[float]]) -> str:
    """A table in Markdown: the whole way, its first and last span."""
    lines = ["| continued | above chance | first span, last span | notes a second | mean note, s |", "|---" * 5 + "|"]
    for name, row in rows.items():
        (mean, low, high), spans = row["above"], row["above_by_span"]
        ends = f"{spans[0][0]:.3f}, {spans[-1][0]:.3f}"
        music = (f"{row[key][0]:.2f}, {row[key][-1]:.2f}" for key in ("notes_per_s", "note_s"))
        lines.append(f"| {name} | {mean:.3f} ({low:.3f} to {high:.3f}) | {ends} | {' | '.join(music)} |")
    lines.append(f"| the composers | | | {true['notes_per_s'][0]:.2f} | {true['note_s'][0]:.2f} |")
    return "\n".join(lines)


def run() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, default=Path("outputs/stores/jsb"))
    parser.add_argument("--bundle", default="chorale")
    parser.add_argument("--split", default="validation")
    parser.add_argument("--pieces", type=int, default=16)
    parser.add_argument("--seed-seconds", type=float, default=4.8)
    parser.add_argument("--window", type=int, default=512, help="tokens that the model looks back")
    parser.add_argument("--contexts", type=int, default=40, help="windows to draw")
    parser.add_argument("--threads", type=int, help="threads of the processor; default: all")
    parser.add_argument("--out", type=Path, default=Path("outputs/kept.json"))
    args = parser.parse_args(sys.argv[1:])
    if args.threads is not None:
        torch.set_num_threads(args.threads)
    study(args)


if __name__ == "__main__":
    in_one_line(run)
