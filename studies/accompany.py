"""Accompaniment compared: four models of one size and one budget of CPU time write alto, tenor and bass for a soprano.

    python data_prep/jsb.py out=outputs/stores/jsb
    python studies/accompany.py                             # stopped at any moment, the same command resumes
    python studies/accompany.py --cpu-s 20 --random-seeds 1 --out outputs/trial --json outputs/trial.json

All have the same windows, optimiser and schedule, scaled to the steps that each makes in its CPU seconds, and keep
their last weights: nothing is chosen. The figure is nats a token of Bach's own lower voices, whole pieces, with 95 %
intervals from resampled pieces, over all random seeds; differences are taken piece by piece. Then the models of the
first random seed write voices below the first sopranos of the test split, without rules, and the script counts their
voice-leading errors beside Bach's own.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from accompany_draws import bach, drawn, ruled
from budget import PROBE_STEPS, musictx, probe, steps_within

from musictx.analysis.bootstrap import interval
from musictx.analysis.likelihood import negative_log_likelihood
from musictx.commands.evaluate import scored_by
from musictx.config.app import in_one_line, parse_options
from musictx.data.store import Store
from musictx.errors import UserError
from musictx.files import replacing
from musictx.generate.open_bundle import open_bundle
from musictx.model.bundle import read_header
from musictx.model.packaged import bundle_path
from musictx.music.grid import Grid
from musictx.training.run_folder import RunFolder

WIDTH = ["model.d_model=128", "model.n_heads=4", "model.d_ff=352"]
MODELS = {
    "encoder-decoder": ["objective=conditional", "model=encoder_decoder", *WIDTH],
    "recurrent encoder-decoder": ["objective=conditional", "model=recurrent_encoder_decoder", "model.d_model=240"],
    "decoder, soprano first": ["objective=melody_first", "model=jsb", *WIDTH, "model.n_layers=6"],
    "decoder, no soprano": ["objective=lower_voices", "model=jsb", *WIDTH, "model.n_layers=6"],
}
QUIET = ["trainer.progress_bar=false", "trainer.sample_every=null", "trainer.checkpoint_every=50"]

COMMON = ["experiment=jsb", *QUIET]
SPLITS = "validation", "test"  # both are scored


def words_of(name: str, args: argparse.Namespace, out: Path, steps: int, random_seed: int) -> list[str]:
    words = [
        "train",
        *COMMON,
        *MODELS[name],
        f"data.path={args.store}",
        f"out={out}",
        f"random_seed={random_seed}",
    ]
    ends = [f"trainer.max_steps={steps}", f"trainer.warmup_steps={max(steps // 20, 1)}"]
    return [*words, *ends, f"trainer.validate_every={steps}", *args.overrides]


def steps_of(name: str, args: argparse.Namespace) -> int:
    """How many steps fit the budget; two short runs measure it once."""
    kept = args.out / "steps.json"
    known: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
    if name not in known:
        folder = args.out / "probe"
        probes = probe(folder, lambda steps: musictx(words_of(name, args, folder, steps, 0)).cpu_s)
        known[name] = {"cpu_s": args.cpu_s, "steps": steps_within(args.cpu_s, probes), "probes_s": probes}
        args.out.mkdir(parents=True, exist_ok=True)
        with replacing(kept) as written:
            written.write_text(json.dumps(known, indent=1), encoding="utf-8")
    if known[name]["cpu_s"] != args.cpu_s:
        raise UserError(f"--cpu-s {args.cpu_s}: {args.out} was begun with {known[name]['cpu_s']}; give another --out")
    return int(known[name]["steps"])


def trained(name: str, random_seed: int, args: argparse.Namespace) -> Path:
    """The folder of the run; a file beside it keeps the run's CPU seconds."""
    out: Path = args.out / f"{name.replace(', ', '-').replace(' ', '-')}-{random_seed}"
    if not RunFolder(out).is_finished:
        spent = musictx(words_of(name, args, out, steps_of(name, args), random_seed))
        with replacing(args.out / f"{out.name}.json") as written:
            written.write_text(json.dumps({"cpu_s": spent.cpu_s}), encoding="utf-8")
    return out


def scored(run: Path, args: argparse.Namespace) -> dict[str, list[list[float]]]:
    """Nats and tokens of each piece, by split; reads the test split once for a run."""
    kept = run / "pieces.json"
    if not kept.exists():
        opened, store = open_bundle(run / "model.safetensors", continues=False), Store(args.store, "chorale")
        (_, objective), found = scored_by(str(run), opened, None), {}
        for split in SPLITS:
            pieces = store.split(split)
            result = negative_log_likelihood(opened.model, pieces, opened.tokenizer, None, objective=objective)
            found[split] = [result.nats.tolist(), result.tokens_of.tolist()]
        with replacing(kept) as written:
            written.write_text(json.dumps(found), encoding="utf-8")
    scores: dict[str, list[list[float]]] = json.loads(kept.read_text())
    return scores


def rows(runs: dict[str, list[Path]], args: argparse.Namespace) -> dict[str, Any]:
    """The table: for each model and split the mean over all random seeds with its interval over pieces, and the
    difference from the encoder-decoder on the same pieces."""
    table: dict[str, Any] = {}
    nats: dict[tuple[str, str], Any] = {}
    for name, folders in runs.items():
        each = [scored(run, args) for run in folders]
        spent = [json.loads((args.out / f"{run.name}.json").read_text())["cpu_s"] for run in folders]
        header = read_header(folders[0] / "model.safetensors")
        row: dict[str, Any] = {
            "parameters": parameters(folders[0]),
            "steps": steps_of(name, args),
            "cpu_s": spent,
            "objective": header.objective.get("name"),
        }
        for split in SPLITS:
            tokens = np.array(each[0][split][1])
            nats[name, split] = np.mean([scores[split][0] for scores in each], 0)
            seeds = [float(np.sum(scores[split][0]) / tokens.sum()) for scores in each]
            more = nats[name, split] - nats[next(iter(MODELS)), split]
            row[split] = {
                "nll": interval(nats[name, split], tokens),
                "seeds": seeds,
                "more": interval(more, tokens),
                "pieces": len(tokens),
                "tokens": int(tokens.sum()),
            }
        table[name] = row
    return table


def counted(runs: dict[str, list[Path]], args: argparse.Namespace) -> dict[str, Any]:
    """Voice-leading counts per hundred beats in the first pieces of the test split: Bach's, each model's with the first
    random seed, and those of the harmoniser inside the package, which has trained for longer, without and with the
    rules of `musictx accompany`."""
    from musictx.analysis.voice_leading import per_hundred_beats, voice_leading  # only after all else is saved

    store, found = Store(args.store, "chorale"), {}
    given, shipped = (store, "test", args.pieces), bundle_path("harmoniser")
    draws: dict[str, Callable[[], list[Grid]]] = {
        "Bach": lambda: bach(*given),
        "bundle=harmoniser": lambda: drawn(shipped, *given),
        "bundle=harmoniser, rules kept": lambda: ruled(shipped, *given),
    }
    draws |= {name: partial(drawn, runs_of[0] / "model.safetensors", *given) for name, runs_of in runs.items()}
    for name, draw_all in draws.items():
        kept = args.out / f"voices-{args.pieces}-{name.replace(', ', '-').replace(' ', '-')}.json"
        if not kept.exists():
            with replacing(kept) as written:
                written.write_text(json.dumps([grid.tolist() for grid in draw_all()]), encoding="utf-8")
        pieces = [voice_leading(np.array(grid, np.int16)) for grid in json.loads(kept.read_text())]
        found[name] = per_hundred_beats(pieces)
    return found


def parameters(run: Path) -> int:
    return sum(p.numel() for p in open_bundle(run / "model.safetensors", continues=False).model.parameters())


def all_trained(args: argparse.Namespace) -> dict[str, list[Path]]:
    """The runs of each model, one a seed."""
    os.environ["OMP_NUM_THREADS"] = "1"
    runs: dict[str, list[Path]] = {name: [] for name in MODELS}
    for seed in range(args.random_seeds):
        for name, folders in runs.items():
            folders.append(trained(name, seed, args))
    return runs


def keep(told: dict[str, Any], args: argparse.Namespace) -> None:
    """The table as JSON, and on the screen."""
    args.json.parent.mkdir(parents=True, exist_ok=True)
    with replacing(args.json) as written:
        written.write_text(json.dumps(told, indent=1), encoding="utf-8")
    for name, row in told["models"].items():
        mean, low, high = row["test"]["nll"]
        size = f"{row['parameters']:>9,} parameters, {row['steps']:>5} steps"
        print(f"{name:28} {size}: {mean:.4f} ({low:.4f} to {high:.4f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, default=Path("outputs/stores/jsb"))
    parser.add_argument("--out", type=Path, default=Path("outputs/accompany"), help="all runs")
    parser.add_argument("--cpu-s", type=float, default=300.0, help="CPU seconds of each training")
    parser.add_argument("--random-seeds", type=int, default=3)
    parser.add_argument("--pieces", type=int, default=24, help="pieces of the test split to draw voices for")
    parser.add_argument("--json", type=Path, default=Path("outputs/accompany/accompany.json"))
    args, overrides = parse_options(parser, sys.argv[1:])
    args.overrides = overrides
    runs = all_trained(args)
    table = rows(runs, args)
    told = {"cpu_s": args.cpu_s, "probe_steps": PROBE_STEPS, "settings": args.overrides, "models": table}
    told["per_hundred_beats"] = voices = counted(runs, args)
    keep(told, args)
    print(f"per hundred beats, voices drawn below the first {args.pieces} sopranos of the test split")
    for name, counts in voices.items():
        each = ", ".join(
            f"{what.replace('_', ' ')} {mean:.1f} ({low:.1f} to {high:.1f})"
            for what, (mean, low, high) in counts.items()
        )
        print(f"{name:28} {each}")
    print(f"{args.json}: the table as JSON")


if __name__ == "__main__":
    in_one_line(main)
