"""What width, learning rate and batch are good for how much music: curves for 1, 10 and 100 hours of MAESTRO.

    python studies/guide.py --archive maestro-v3.0.0-midi.zip                         # one GPU, bf16
    python studies/guide.py --archive maestro-v3.0.0-midi.zip --device cpu --widths 64 128 256 --layers 4 \\
        --batches 2 8 32 --tokens 1000000 --out outputs/guide-cpu --json studies/results/guide-cpu.json \\
        data.length=512 data.segment=512

Every width is trained on every amount of music with the middle learning rate and batch; the other rates and batches
with the middle width on the middle amount. All runs see the same number of tokens, rounded to whole steps, and are
scored on the same validation pieces. Finished runs are kept: the same command goes on where it was stopped.
"""

import argparse
import csv
import io
import json
import subprocess
import sys
import zipfile
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from maestro import ROOT, extract, spread
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from musictx.config.app import parse_options
from musictx.training.run_folder import is_finished

D_HEAD = 32
VALIDATIONS = 6  # of each run
SCORED_H = 1.0  # hours of validation


class Cell(NamedTuple):
    hours: float
    width: int
    lr: float
    batch: int  # windows

    def __str__(self) -> str:
        return f"{self.hours:g}h-width{self.width}-lr{self.lr:g}-batch{self.batch}"


def middle(args: argparse.Namespace) -> Cell:
    return Cell(*(values[len(values) // 2] for values in (args.hours, args.widths, args.rates, args.batches)))


def cells(args: argparse.Namespace) -> list[Cell]:
    """All widths on all amounts of music, all rates and all batches, the other settings in the middle."""
    found = [middle(args)._replace(hours=h, width=w) for h, w in product(args.hours, args.widths)]
    found += [middle(args)._replace(lr=lr) for lr in args.rates]
    found += [middle(args)._replace(batch=batch) for batch in args.batches]
    return list(dict.fromkeys(found))


def prepare(archive: Path, hours: float, out: Path) -> Path:
    """The store of so many hours to train on."""
    store = out / f"store-{hours:g}h"
    if not (store / "manifest.json").exists():
        with zipfile.ZipFile(archive) as full:
            table = next(name for name in full.namelist() if name.endswith(".csv"))
            rows = list(csv.DictReader(io.StringIO(full.read(table).decode())))
        splits = {name: [row for row in rows if row["split"] == name] for name in ("train", "validation")}
        names = spread(splits["train"], hours) + spread(splits["validation"], SCORED_H)
        part = extract(archive, names, out / f"midi-{hours:g}h")
        words = [f"path={part}", f"out={store}", "allow_missing=true"]
        subprocess.run([sys.executable, str(ROOT / "data_prep/maestro.py"), *words], check=True)
    return store


def check(args: argparse.Namespace, overrides: list[str]) -> None:
    """Leaves the script for a folder with runs of other settings, whose names do not tell them."""
    asked = {name: getattr(args, name) for name in ("device", "layers", "dropout", "tokens")} | {"overrides": overrides}
    kept = args.out / "settings.json"
    if kept.exists() and json.loads(kept.read_text()) != asked:
        sys.exit(f"{args.out} holds runs of other settings ({kept.read_text()}): give those, or another --out")
    if set_here := [o for o in overrides if o.startswith(("model.", "trainer.batch", "trainer.max", "trainer.lr="))]:
        sys.exit(f"{', '.join(set_here)}: this script sets it; see --help")
    args.out.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(asked))


def train(cell: Cell, store: Path, args: argparse.Namespace, overrides: list[str]) -> dict[str, Any]:
    """One run through `musictx train`, unless it is there; its curve of validation NLL by tokens, empty where the loss
    diverged."""
    folder = args.out / str(cell)
    length = next((int(o.split("=")[1]) for o in overrides if o.startswith("data.length=")), 2048)
    every = max(args.tokens // (cell.batch * length * VALIDATIONS), 1)
    steps = every * VALIDATIONS
    diverged = folder / "failed.pt"
    if not is_finished(folder) and not diverged.exists():
        model = [f"model.d_model={cell.width}", f"model.n_heads={cell.width // D_HEAD}", f"model.d_ff={4 * cell.width}"]
        model += [f"model.n_layers={args.layers}", "model.position=relative_fourier", f"model.dropout={args.dropout}"]
        trainer = ["trainer=gpu"] if args.device == "cuda" else ["trainer=cpu", "trainer.precision=bf16-mixed"]
        trainer += ["trainer.optimizer=muon", "trainer.weight_decay=0.1", f"trainer.lr={cell.lr}"]
        trainer += [f"trainer.max_steps={steps}", f"trainer.warmup_steps={steps // 10}", "trainer.max_epochs=1000000"]
        trainer += [f"trainer.batch_size={cell.batch}", f"trainer.validate_every={every}"]
        trainer += ["trainer.sample_every=null", f"trainer.ema_decay={1 - 1 / max(steps // 20, 2)}"]
        words = ["train", "experiment=maestro", f"data.path={store}", f"out={folder}", *model, *trainer, *overrides]
        status = subprocess.run([sys.executable, "-m", "musictx", *words], check=False).returncode
        if status and not diverged.exists():
            sys.exit(status)
    if diverged.exists():
        return {**cell._asdict(), "curve": [], "tokens_per_s": None}
    with open(folder / "metrics.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    curve = [((int(r["step"]) + 1) * cell.batch * length, float(r["val/nll"])) for r in rows if r["val/nll"]]
    rates = sorted(float(r["train/tokens_per_s"]) for r in rows if r["train/tokens_per_s"])
    return {**cell._asdict(), "curve": curve, "tokens_per_s": rates[len(rates) // 2] if rates else None}


def report(results: list[dict[str, Any]]) -> str:
    """A table in Markdown: the best and the last validation NLL of every run."""
    lines = ["| hours | width | learning rate | batch | best NLL | last NLL | tokens/s |", "|---" * 7 + "|"]
    for r in results:
        nll = [nats for _, nats in r["curve"]]
        speed = f"{r['tokens_per_s']:,.0f}" if r["tokens_per_s"] else "-"
        run = f"{r['hours']:g} | {r['width']} | {r['lr']:g} | {r['batch']}"
        lines.append(f"| {run} | {min(nll):.3f} | {nll[-1]:.3f} | {speed} |" if nll else f"| {run} | diverged | | |")
    return "\n".join(lines)


def draw(results: list[dict[str, Any]], crossing: Cell, path: Path) -> None:
    """Validation NLL by tokens seen: the widths on each amount of music (of a single width the amounts), then the rates
    and the batches, where there are several."""
    several = {name: len({r[name] for r in results}) > 1 for name in Cell._fields}
    at = f"{crossing.hours:g} hours, width {crossing.width}"
    wanted: list[tuple[str, str, dict[str, float]]] = [(at, name, {}) for name in ("lr", "batch") if several[name]]
    if several["width"]:
        hours = sorted({r["hours"] for r in results})
        wanted = [*((f"{h:g} hours of music", "width", {"hours": h}) for h in hours), *wanted]
    else:
        wanted = [(f"width {crossing.width}", "hours", {}), *wanted]
    figure = Figure(figsize=(4 * len(wanted), 4), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(wanted), sharey=True, squeeze=False)[0]
    for axes, (title, name, fixed) in zip(panels, wanted, strict=True):
        same = {key: value for key, value in (crossing._asdict() | fixed).items() if key != name}
        for r in sorted(results, key=lambda r: float(r[name])):
            if r["curve"] and all(r[key] == value for key, value in same.items()):
                axes.plot(*zip(*r["curve"], strict=True), marker="o", ms=3, label=f"{name} {r[name]:g}")
        axes.set(title=title, xlabel="tokens seen")
        axes.legend(fontsize=8)
    panels[0].set_ylabel("validation NLL, nats a token")
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--archive", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("outputs/guide"))
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--hours", type=float, nargs="+", default=[1, 10, 100])
    parser.add_argument("--widths", type=int, nargs="+", default=[256, 512, 1024])
    parser.add_argument("--rates", type=float, nargs="+", default=[1e-3, 4e-3, 16e-3])
    parser.add_argument("--batches", type=int, nargs="+", default=[8, 32, 128], help="windows")
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--tokens", type=int, default=100_000_000, help="that every run sees")
    parser.add_argument("--json", type=Path, default=Path("studies/results/guide.json"), help="a plot goes beside it")
    args, overrides = parse_options(parser, sys.argv[1:])
    check(args, overrides)
    results = []
    for cell in cells(args):
        results.append(train(cell, prepare(args.archive, cell.hours, args.out), args, overrides))
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps(results, indent=1), encoding="utf-8")
    print(report(results))
    draw(results, middle(args), args.json.with_suffix(".png"))


if __name__ == "__main__":
    main()
