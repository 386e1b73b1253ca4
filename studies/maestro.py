"""The table of MAESTRO v3: one model after the other, compared at the end, in pieces of ten minutes or of hours.

    python studies/maestro.py --archive maestro-v3.0.0-midi.zip --minutes 10                 # one GPU, bf16
    python studies/maestro.py --archive maestro-v3.0.0-midi.zip --size small --steps 2000    # one GPU, small models
    python studies/maestro.py --archive maestro-v3.0.0-midi.zip --device cpu --minutes 150   # two core-hours each
    python studies/maestro.py --archive maestro-v3.0.0-midi.zip --device cpu --fraction 0.01 --hours 0.02 \\
        --minutes 20 --seconds 10 --pieces 2                                                    # a trial

Models of `--size paper`, the default on a GPU, have 6 layers, width 512 and windows of 2,048, and learn for `--steps`;
the report is on the validation split. Those of `--size small` are in `maestro_small.py`; they learn for `--steps`, or
on a CPU for as many steps as fit `--hours` of one core. First each learns for a tenth of them with two learning rates;
an hour of validation chooses the rate, so the report is on the test split.

Each call trains for at most `--minutes` and ends by SIGTERM; the same command resumes from the checkpoint.
Settings of `musictx train` (key=value) hold for every run.
"""

import argparse
import csv
import io
import signal
import subprocess
import sys
import zipfile
from pathlib import Path
from time import monotonic

from maestro_small import MODELS, SCORED_H, Budget, train_small

from musictx.config.app import parse_options
from musictx.training.run_folder import RunFolder

MUON = ["trainer.optimizer=muon", "trainer.weight_decay=0.1", "trainer.lr=4e-3", "trainer.ema_decay=0.999"]
PAPER = {  # all within 5 % of the same number of parameters
    "relative": ["model.position=relative", *MUON],
    "fourier": ["model.position=relative_fourier", "model.d_ff=3072", *MUON],
    "sinusoidal": ["model.position=sinusoidal", "model.d_ff=3072", *MUON],
    "lstm": ["model=lstm", "model.d_model=1024", "trainer.lr=1e-3", "trainer.ema_decay=0.999"],
}
ROOT = Path(__file__).parents[1]


def spread(rows: list[dict[str, str]], hours: float) -> list[str]:
    """Names of pieces of `hours` in all, spread over the table: every 7th first, then those after them."""
    names, so_far_s = [], 0.0
    for k in range(7):
        for row in rows[k::7]:
            if so_far_s < 3600 * hours:
                names.append(row["midi_filename"])
                so_far_s += float(row["duration"])
    return names


def part_of(archive: Path, hours: dict[str, float], fraction: float, folder: Path) -> Path:
    """A folder with the archive's table and files of so many hours from each split, or every n-th of those files."""
    with zipfile.ZipFile(archive) as full:
        table = next(name for name in full.namelist() if name.endswith(".csv"))
        rows = list(csv.DictReader(io.StringIO(full.read(table).decode())))
    names: list[str] = []
    for split, wanted in hours.items():
        names += spread([row for row in rows if row["split"] == split], wanted)[:: round(1 / fraction)]
    return extract(archive, names, folder)


def extract(archive: Path, names: list[str], folder: Path) -> Path:
    """A folder with the archive's table and these of its files."""
    with zipfile.ZipFile(archive) as full:
        table = next(name for name in full.namelist() if name.endswith(".csv"))
        root = table.rpartition("/")[0]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / Path(table).name).write_bytes(full.read(table))
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(full.read(f"{root}/{name}"))
    return folder


def call(args: list[str], seconds: float | None = None) -> bool:
    """Runs a command; False if it had to be stopped. Exits the script if it fails."""
    print("$", *args, flush=True)
    process = subprocess.Popen([sys.executable, *args])
    try:
        status = process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGTERM)
        process.wait()
        return False
    if status:
        sys.exit(status)
    return True


def train_paper(names: list[str], steps: int, store: Path, out: Path, minutes: float, more: list[str]) -> list[Path]:
    """Trains the models in turn; returns the finished folders."""
    end, finished = monotonic() + 60 * minutes, []
    common = ["trainer=gpu", f"data.path={store}", f"trainer.max_steps={steps}", "trainer.max_epochs=100000"]
    for name in names:
        folder = out / name
        if not RunFolder(folder).is_finished:
            words = ["train", "experiment=maestro", *common, f"out={folder}", f"name={name}", *PAPER[name], *more]
            if end <= monotonic() or not call(["-m", "musictx", *words], end - monotonic()):
                print(f"{name} is not finished: give the same command again")
                break
        finished.append(folder)
    return finished


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--archive", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("outputs/maestro"))
    parser.add_argument("--fraction", type=float, default=1.0, help="share of the files, for a trial")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--size", choices=["small", "paper"], help="default: small on a CPU, paper on a GPU")
    parser.add_argument("--minutes", type=float, default=10.0, help="minutes of training in this call")
    parser.add_argument("--steps", type=int, default=20_000, help="steps of each model on a GPU")
    parser.add_argument("--hours", type=float, default=2.0, help="hours of one core, for each model on a CPU")
    parser.add_argument("--seconds", type=float, default=90.0, help="new music in each continuation, in seconds")
    parser.add_argument("--pieces", type=int, default=64, help="pieces to continue for motif retention and copying")
    parser.add_argument("--models", nargs="*", choices=list(MODELS))
    args, overrides = parse_options(parser, sys.argv[1:])
    small = (args.size or ("small" if args.device == "cpu" else "paper")) == "small"
    if not small and args.device == "cpu":
        parser.error("--size paper: a CPU would take weeks; give --size small, or --device cuda")
    names = args.models or list(MODELS if small else PAPER)
    if unknown := set(names) - set(MODELS if small else PAPER):
        parser.error(f"--models {' '.join(unknown)}: for --size paper choose from {', '.join(PAPER)}")
    store = args.out / "store"
    if not (store / "manifest.json").exists():
        whole = not small and args.fraction == 1
        hours = SCORED_H if small else dict.fromkeys(SCORED_H, 1e9)
        path = args.archive if whole else part_of(args.archive, hours, args.fraction, args.out / "part")
        call([str(ROOT / "data_prep/maestro.py"), f"path={path}", f"out={store}", f"allow_missing={not whole}"])
    args.out.mkdir(parents=True, exist_ok=True)
    if small:
        budget = Budget(args.hours, args.steps if args.device == "cuda" else None)
        finished = train_small(names, args.device, budget, store, args.out, args.minutes, overrides)
    else:
        finished = train_paper(names, args.steps, store, args.out, args.minutes, overrides)
    if finished:
        runs, called = ",".join(map(str, finished)), ",".join(names[: len(finished)])
        words = [f"runs=[{runs}]", f"names=[{called}]", f"store={store}", f"out={args.out}/report", "segment=2048"]
        words += ["seed_seconds=15", f"length_seconds={args.seconds}", f"span_seconds={args.seconds / 6}"]
        words += ["overwrite=true", f"pieces={args.pieces}", f"split={'test' if small else 'validation'}"]
        call(["-m", "musictx", "compare", *words, f"device={args.device}"])


if __name__ == "__main__":
    main()
