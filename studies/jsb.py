"""The table of the JSB chorales: every kind of model, one size, one budget for tuning, three random seeds, one report.

    python studies/jsb.py --store outputs/stores/jsb --out outputs/jsb-table --steps 1500

Each model is trained for a third of the steps with every learning rate; the rate with the lowest validation NLL is
trained with all random seeds. Settings of `musictx train` (key=value) hold for every run. Finished runs are kept: the
same command resumes where it stopped.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path

from musictx.commands.compare import compare
from musictx.config.app import in_one_line, parse_options, settings
from musictx.model.bundle import read_header
from musictx.training.fit import fit
from musictx.training.run_folder import RunFolder
from musictx.training.start import sized_as_bundle

MUON = ["trainer.optimizer=muon", "trainer.weight_decay=0.1"]
SMALL = ["model.d_model=192", "model.n_layers=3", "model.n_heads=3", "model.d_ff=768", "model.dropout=0.1"]
TRANSFORMER = [*SMALL, "data.length=256", "trainer.batch_size=8"]
RECURRENT = ["model.n_layers=3", "model.dropout=0.1", "data.length=128", "trainer.batch_size=16"]
# short windows teach faster, long ones teach long distances: 256 ids, then 512, then 1,024, which most pieces fit
GROWING = [*TRANSFORMER, "data.length=1024", "data.grow_from=256", "trainer.batch_size=2"]
WIDER = "model.d_ff=784"  # for models that learn no distances, so that all have as many parameters
# a row for each position or distance in a window; narrower feed-forward layers keep the number of parameters
LEARNED = ["model.position=learned", "model.max_positions=1024", "model.d_ff=616", "data.segment=1024"]
FAR = ["model.position=relative", "model.max_distance=512", "model.d_ff=560"]
MODELS = {  # overrides, and the learning rates tried; all within 5 % of the same number of parameters
    "rnn": (["model=rnn", "model.d_model=470", *RECURRENT], (5e-4, 2e-3)),
    "lstm": (["model=lstm", "model.d_model=236", *RECURRENT], (2e-3, 5e-3)),
    "lstm_attention": (
        ["model=lstm_attention", "model.d_model=230", "model.d_attention=32", "model.window=640", *RECURRENT],
        (2e-3, 5e-3),
    ),
    "sinusoidal": ([*GROWING, *MUON, "model.position=sinusoidal", WIDER], (3e-3, 8e-3)),
    "rope": ([*GROWING, *MUON, "model.position=rope", WIDER], (3e-3, 8e-3)),
    "relative": ([*TRANSFORMER, *MUON, "model.position=relative", "model.max_distance=128"], (3e-3, 8e-3)),
    "learned": ([*GROWING, *MUON, *LEARNED], (3e-3, 8e-3)),
    "relative_long": ([*GROWING, *MUON, *FAR], (3e-3, 8e-3)),
    "fourier": ([*GROWING, *MUON, "model.position=relative_fourier", "model.max_distance=1024"], (3e-3, 8e-3)),
}
COMMON = ["data.transpose=5", "trainer.precision=bf16-mixed", "trainer.max_epochs=100000", "trainer.progress_bar=false"]


def train(name: str, lr: float, random_seed: int, steps: int, args: argparse.Namespace) -> Path:
    """The bundle of one run, trained unless it is there. A tenth of the steps warms up, the average spans a
    twentieth."""
    folder = Path(args.out) / f"{name}-{lr:g}-{random_seed}-{steps}"
    lengths = [f"trainer.max_steps={steps}", f"trainer.validate_every={max(steps // 5, 1)}"]
    lengths += [f"trainer.warmup_steps={steps // 10}", f"trainer.ema_decay={1 - 1 / max(steps // 20, 2)}"]
    place = [f"data.path={args.store}", f"out={folder}", f"random_seed={random_seed}", f"trainer.lr={lr}"]
    return trained("experiment=chorales", *COMMON, *MODELS[name][0], *lengths, *place, *args.overrides)


def trained(*words: str) -> Path:
    """The bundle of `musictx train` with these words, trained unless it is there. Exits the script if the run was
    interrupted, or if the folder holds a run of other settings."""
    config = settings("train", *words)
    folder = Path(config.out)
    if not RunFolder(folder).is_finished:
        fit(config)
    elif changed := RunFolder(folder).differences(sized_as_bundle(config)):
        sys.exit(f"{folder} was trained with other settings ({', '.join(changed)}): give another --out")
    if not RunFolder(folder).is_finished:
        sys.exit("interrupted: the same command resumes")
    return folder / "model.safetensors"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", default="outputs/stores/jsb")
    parser.add_argument("--out", default="outputs/jsb-table")
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--random-seeds", type=int, default=3)
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--pieces", type=int, default=64, help="pieces to continue for motif retention and copying")
    parser.add_argument("--json", default="studies/results/jsb.json")
    args, overrides = parse_options(parser, sys.argv[1:])
    args.overrides = overrides
    study(args)


def study(args: argparse.Namespace) -> None:
    best, lines = {}, {}
    for name in args.models:
        third = max(args.steps // 3, 1)
        search = {lr: read_header(train(name, lr, 0, third, args)).val_nll for lr in MODELS[name][1]}
        lr = min(search, key=lambda rate: search[rate] or float("inf"))
        bundles = [train(name, lr, seed, args.steps, args) for seed in range(args.random_seeds)]
        nll = [float(read_header(bundle).val_nll or "nan") for bundle in bundles]
        best[name] = bundles[0]
        lines[name] = {"lr": lr, "search": search, "search_steps": third, "nll": nll, "steps": args.steps}
        spread = statistics.stdev(nll) if len(nll) > 1 else 0.0
        print(f"{name:<12} {statistics.mean(nll):.4f} ± {spread:.4f}   lr {lr:g}", flush=True)
        Path(args.json).parent.mkdir(parents=True, exist_ok=True)
        Path(args.json).write_text(json.dumps(lines, indent=1), encoding="utf-8")
    words = [f"store={args.store}", f"out={args.out}/report", "overwrite=true", f"pieces={args.pieces}"]
    words += ["seed_seconds=9.6", "length_seconds=14.4", "span_seconds=4.8"]
    models = [read_header(bundle).model for bundle in best.values()]
    if ends := [model["max_positions"] for model in models if model.get("position") == "learned"]:
        words.append(f"segment={min(ends)}")  # learned positions end there, and all models read the same inputs
    runs = ",".join(str(bundle) for bundle in best.values())
    compare(settings("compare", *words, f"runs=[{runs}]", f"names=[{','.join(best)}]"))


if __name__ == "__main__":
    in_one_line(main)
