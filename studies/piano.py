"""The long training of the piano model: MAESTRO v3, in stages of longer windows, cut at any moment and gone on with.

    python studies/piano.py --archive maestro-v3.0.0-midi.zip --minutes 150   # goes on where it was stopped
    python studies/piano.py --archive maestro-v3.0.0-midi.zip --branch 300    # a model of what is learnt by now

The learning rate is held. A model is made at any time by a branch: a copy of the last checkpoint, trained for so many
steps while the rate falls to zero; the long run does not notice. The last stage ends with its own fall.
`OMP_NUM_THREADS` says how many cores it takes. During training one hour of the validation is scored; the whole is for
`musictx evaluate`.
"""

import argparse
import csv
import io
import sys
import zipfile
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from maestro import ROOT, call, extract, spread

from musictx.config.app import parse_options
from musictx.training.run_folder import is_finished, last_checkpoint


class Stage(NamedTuple):
    length: int  # ids in a window
    batch: int  # windows
    steps: int
    decay_share: float  # of the steps, at the end


STAGES = [Stage(512, 16, 13_000, 0.0), Stage(1024, 8, 6_000, 0.0), Stage(2048, 4, 6_000, 0.8)]  # of 8,192 tokens a step
MODEL = [
    *("model.position=relative_fourier", "model.d_model=384", "model.n_layers=6", "model.n_heads=6", "model.d_ff=1024"),
    *("model.mlp=swiglu", "model.qk_norm=true", "model.value_residual=true", "model.dropout=0"),
]
TRAINER = [
    *("trainer=cpu", "trainer.precision=bf16-mixed", "trainer.optimizer=muon", "trainer.weight_decay=0.1"),
    *(
        "trainer.lr=3e-3",
        "trainer.schedule=hold",
        "trainer.keep=last",
        "trainer.max_epochs=1000000",
        "trainer.sample_every=null",
    ),
    *("trainer.validate_every=500", "trainer.checkpoint_every=100", "trainer.progress_bar=false"),
]
SCORED_H = 1.0  # hours of validation during training


def prepare(archive: Path, out: Path) -> Path:
    """The store: all of MAESTRO's training pieces, and an hour of its validation."""
    store = out / "store"
    if not (store / "manifest.json").exists():
        with zipfile.ZipFile(archive) as full:
            table = next(name for name in full.namelist() if name.endswith(".csv"))
            rows = list(csv.DictReader(io.StringIO(full.read(table).decode())))
        names = [row["midi_filename"] for row in rows if row["split"] == "train"]
        names += spread([row for row in rows if row["split"] == "validation"], SCORED_H)
        part = extract(archive, names, out / "midi")
        call([str(ROOT / "data_prep/maestro.py"), f"path={part}", f"out={store}", "allow_missing=true"])
    return store


def words_of(stage: Stage, store: Path, folder: Path, before: Path | None) -> list[str]:
    """What `musictx train` is told. `before`: a checkpoint to begin with."""
    words = ["-m", "musictx", "train", "experiment=maestro", "name=piano", f"data.path={store}", f"out={folder}"]
    words += [*TRAINER, f"data.length={stage.length}", f"data.segment={stage.length}"]
    words += [f"trainer.batch_size={stage.batch}", f"trainer.max_steps={stage.steps}"]
    words += [f"trainer.decay_share={stage.decay_share}", f"trainer.warmup_steps={min(100, stage.steps // 10)}"]
    return [*words, *(MODEL if before is None else ["model.dropout=0", f"init_from={before}"])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--archive", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=ROOT / "outputs/piano")
    parser.add_argument("--minutes", type=float, default=150.0, help="of training in this call")
    parser.add_argument("--branch", type=int, help="steps: make a model of the last checkpoint, and train no further")
    args, overrides = parse_options(parser, sys.argv[1:])
    args.out.mkdir(parents=True, exist_ok=True)
    store = prepare(args.archive, args.out)
    end, before = monotonic() + 60 * args.minutes, None
    for number, stage in enumerate(STAGES):
        folder = args.out / f"stage-{number}"
        if is_finished(folder):
            before = folder / "model.safetensors"
            continue
        if args.branch is not None:
            begun = last_checkpoint(folder)
            start = begun if begun.exists() else before
            if start is None:
                raise SystemExit(f"{folder} has no checkpoint yet: train first, without --branch")
            branched = args.out / f"branch-{number}"
            short = stage._replace(steps=args.branch, decay_share=1.0)
            words = [*words_of(short, store, branched, start), f"trainer.validate_every={args.branch}"]
            call([*words, "overwrite=true", *overrides])
            return
        if not call([*words_of(stage, store, folder, before), *overrides], end - monotonic()):
            print(f"{folder} is not finished: give the same command again")
            return
        before = folder / "model.safetensors"
    print(f"all stages are done: {before}")


if __name__ == "__main__":
    main()
