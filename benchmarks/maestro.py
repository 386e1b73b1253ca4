"""The table of MAESTRO v3 at the paper's size (6 layers, width 512, 2048 tokens), in pieces of ten minutes.

    python benchmarks/maestro.py --archive maestro-v3.0.0-midi.zip --minutes 10          # one GPU, bf16
    python benchmarks/maestro.py --archive maestro-v3.0.0-midi.zip --fraction 0.01 --device cpu \\
        --minutes 20 --seconds 10 trainer.batch_size=1 trainer.max_steps=2 trainer.validate_every=2

Prepares the store, trains one model after the other, compares what is finished. Each call trains for `--minutes` at
the most and is stopped by SIGTERM; the same command goes on from the checkpoint, until `--steps` are done.
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

from musictx.app import parse_options
from musictx.training.folder import is_finished

MUON = ["trainer.optimizer=muon", "trainer.weight_decay=0.1", "trainer.lr=4e-3", "trainer.ema_decay=0.999"]
MODELS = {  # all within 5 % of the same number of parameters
    "relative": ["model.position=relative", *MUON],
    "fourier": ["model.position=relative_fourier", "model.d_ff=3072", *MUON],
    "sinusoidal": ["model.position=sinusoidal", "model.d_ff=3072", *MUON],
    "lstm": ["model=lstm", "model.d_model=1024", "trainer.lr=1e-3", "trainer.ema_decay=0.999"],
}
ROOT = Path(__file__).parents[1]


def part_of(archive: Path, fraction: float, folder: Path) -> Path:
    """A folder with the table of the archive and every n-th file of each split."""
    with zipfile.ZipFile(archive) as full:
        table = next(name for name in full.namelist() if name.endswith(".csv"))
        text = full.read(table).decode()
    by_split: dict[str, list[str]] = {}
    for row in csv.DictReader(io.StringIO(text)):
        by_split.setdefault(row["split"], []).append(row["midi_filename"])
    return extract(archive, [name for names in by_split.values() for name in names[:: round(1 / fraction)]], folder)


def extract(archive: Path, names: list[str], folder: Path) -> Path:
    """A folder with the table of the archive and those of its files."""
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
    """Runs a command; False when it had to be stopped. Leaves the script when it fails."""
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--archive", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("outputs/maestro"))
    parser.add_argument("--fraction", type=float, default=1.0, help="of the files, for a trial")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--minutes", type=float, default=10.0, help="of training in this call")
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=90.0, help="of new music in each continuation compared")
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=list(MODELS))
    args, overrides = parse_options(parser, sys.argv[1:])
    store = args.out / "store"
    if not (store / "manifest.json").exists():
        path = part_of(args.archive, args.fraction, args.out / "part") if args.fraction < 1 else args.archive
        call([str(ROOT / "data_prep/maestro.py"), f"path={path}", f"out={store}", f"allow_missing={args.fraction < 1}"])
    end = monotonic() + 60 * args.minutes
    trainer = ["trainer=gpu"] if args.device == "cuda" else ["trainer=cpu", "trainer.precision=bf16-mixed"]
    common = [*trainer, f"data.path={store}", f"trainer.max_steps={args.steps}", "trainer.max_epochs=100000"]
    finished = []
    for name in args.models:
        folder = args.out / name
        if not is_finished(folder):
            words = ["train", "experiment=maestro", *common, f"out={folder}", f"name={name}", *MODELS[name], *overrides]
            if end <= monotonic() or not call(["-m", "musictx", *words], end - monotonic()):
                print(f"{name} is not finished: give the same command again")
                break
        finished.append(folder)
    if finished:
        runs = ",".join(map(str, finished))
        words = [f"runs=[{runs}]", f"store={store}", f"out={args.out}/report", "segment=2048", "overwrite=true"]
        words += ["seed_seconds=15", f"length_seconds={args.seconds}", f"window_seconds={args.seconds / 6}"]
        call(["-m", "musictx", "compare", *words, f"device={args.device}"])


if __name__ == "__main__":
    main()
