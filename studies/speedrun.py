"""A speed record: the NLL that a recipe reaches on MAESTRO in so many CPU seconds of one core, with its whole schedule.

The mark is 2.50 nats a token.

    python studies/speedrun.py --archive maestro-v3.0.0-midi.zip                       # each change by itself, in turn
    python studies/speedrun.py --archive maestro-v3.0.0-midi.zip --recipes all --seconds 400 --random-seeds 0 1 2
    python studies/speedrun.py --archive maestro-v3.0.0-midi.zip --seconds 400 \\
        --recipes all all_input all_head all_both        # does a model that sees the keyboard learn faster?

Models learn 100 hours of MAESTRO and are scored on one hour of its validation in segments of 512 ids, as in `guide.py`.
The seconds count all processes of `musictx train`, start and validation too. Two short runs of each recipe measure how
many steps fit the seconds. A finished run is kept; one that was cut short starts again.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from budget import musictx, probe, steps_within
from guide import prepare
from maestro import ROOT

from musictx.config.app import parse_options
from musictx.model.bundle import read_header

LENGTH = 512  # ids in a window
BASE = [
    *("trainer=cpu", "trainer.precision=bf16-mixed", "trainer.optimizer=muon", "trainer.weight_decay=0.1"),
    *("trainer.lr=4e-3", "trainer.batch_size=4", "trainer.sample_every=null", "trainer.max_epochs=1000000"),
    *("trainer.progress_bar=false", f"data.length={LENGTH}", f"data.segment={LENGTH}"),
    *("model.position=relative_fourier", "model.d_model=256", "model.n_layers=4", "model.n_heads=8", "model.d_ff=1024"),
]
CHANGES = {  # each by itself, against the base
    "no_dropout": ["model.dropout=0"],
    "hold": ["trainer.schedule=hold"],
    "heads_of_64": ["model.n_heads=4"],
    "swiglu": ["model.mlp=swiglu", "model.d_ff=672"],
    "qk_norm": ["model.qk_norm=true"],
    "value_residual": ["model.value_residual=true"],
    "grow": ["data.grow_from=128"],
    "batch_2": ["trainer.batch_size=2"],
}
TOGETHER = [name for name in CHANGES if name != "batch_2"]
ALL = [word for name in TOGETHER for word in CHANGES[name]]
KEYBOARDS = {f"all_{form}": [*ALL, f"model.keyboard={form}"] for form in ("input", "head", "both")}
RECIPES = {"base": [], **CHANGES, "all": ALL, **KEYBOARDS}


def train(recipe: str, random_seed: int, steps: int, store: Path, folder: Path, overrides: list[str]) -> float:
    """One run of `musictx train`; returns the CPU seconds of all its processes."""
    words = ["train", "experiment=maestro", f"data.path={store}", f"out={folder}", *BASE, *RECIPES[recipe]]
    words += [f"trainer.max_steps={steps}", f"trainer.validate_every={steps}", f"trainer.warmup_steps={steps // 10}"]
    return musictx([*words, f"random_seed={random_seed}", *overrides]).cpu_s


def measure(
    recipe: str, random_seed: int, args: argparse.Namespace, store: Path, overrides: list[str]
) -> dict[str, Any]:
    """A row of the table, from a kept run or a new one."""
    folder = args.out / f"{recipe}-{args.seconds:g}s-seed{random_seed}"
    kept = folder.with_suffix(".json")
    words = [*BASE, *RECIPES[recipe], *overrides]
    if kept.exists():
        row: dict[str, Any] = json.loads(kept.read_text())
        if row["settings"] != words or row["hours"] != args.hours or args.steps not in (None, row["steps"]):
            sys.exit(f"{kept} holds a run of other settings: give those again, or another --out")
        return row
    steps = args.steps
    if steps is None:
        short, anew = args.out / "probe", [*overrides, "overwrite=true"]
        probes = probe(short, lambda few: train(recipe, random_seed, few, store, short, anew))
        steps = steps_within(args.seconds, probes)
    cpu_s = train(recipe, random_seed, steps, store, folder, [*overrides, "overwrite=true"])
    batch, length = (
        next(int(word.split("=")[1]) for word in words[::-1] if word.startswith(f"{name}="))
        for name in ("trainer.batch_size", "data.length")
    )
    nll = read_header(folder / "model.safetensors").val_nll
    row = {"recipe": recipe, "seed": random_seed, "steps": steps, "tokens": steps * batch * length}
    row |= {"cpu_s": round(cpu_s, 1), "nll": nll, "hours": args.hours, "settings": words}
    kept.write_text(json.dumps(row))
    return row


def report(rows: list[dict[str, Any]]) -> str:
    """A table in Markdown."""
    lines = ["| recipe | seed | steps | tokens | CPU s | nats a token |", "|---" * 6 + "|"]
    for r in rows:
        size = f"{r['steps']:,} | {r['tokens']:,}"
        lines.append(f"| {r['recipe']} | {r['seed']} | {size} | {r['cpu_s']:.0f} | {r['nll']:.3f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--archive", type=Path, required=True)
    parser.add_argument("--hours", type=float, default=100.0, help="hours of music to train on")
    parser.add_argument("--out", type=Path, default=ROOT / "outputs/speedrun")
    parser.add_argument("--recipes", nargs="+", default=list(RECIPES), choices=list(RECIPES))
    parser.add_argument("--seconds", type=float, default=150.0, help="CPU seconds that each run may take")
    parser.add_argument("--steps", type=int, help="steps of each run, in place of --seconds")
    parser.add_argument("--random-seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--json", type=Path, default=ROOT / "studies/results/speedrun.json")
    args, overrides = parse_options(parser, sys.argv[1:])
    args.out.mkdir(parents=True, exist_ok=True)
    store = prepare(args.archive, args.hours, args.out)
    rows = []
    for seed in args.random_seeds:
        for recipe in args.recipes:
            rows.append(measure(recipe, seed, args, store, overrides))
            args.json.parent.mkdir(parents=True, exist_ok=True)
            args.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    print(report(rows))


if __name__ == "__main__":
    main()
