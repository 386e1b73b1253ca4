"""The long training of the piano model: `experiment=piano` in stages of longer windows; it resumes where it stopped.

    python studies/piano.py --archive maestro-v3.0.0-midi.zip --minutes 150   # resumes where it stopped
    python studies/piano.py --archive maestro-v3.0.0-midi.zip --branch 300    # a model of the training so far
    python studies/piano.py --archive maestro-v3.0.0-midi.zip --fill outputs/piano/stage-2/model.safetensors
    python studies/piano.py --archive maestro-v3.0.0-midi.zip --pop pop909.zip --minutes 150        # with pop songs
    python studies/piano.py --archive maestro-v3.0.0-midi.zip --pop pop909.zip \\
        --fill musictx/bundles/piano.safetensors model.dropout=0.1 trainer.lr=8e-4 trainer.max_steps=200 \\
        trainer.warmup_steps=20 'objective_settings={plain: 0.75}'       # tunes a finished model on both
    python studies/piano.py --archive maestro-v3.0.0-midi.zip --asap asap.zip --pop pop909.zip \\
        --device cuda --minutes 8                                     # on a GPU; then a model of it, which fills too:
    python studies/piano.py --archive maestro-v3.0.0-midi.zip --asap asap.zip --pop pop909.zip \\
        --device cuda --branch 2400 objective=infill 'objective_settings={plain: 0.75}'

The learning rate is held. A branch makes a model at any time: a copy of the last checkpoint, trained for so many steps
while the rate falls to zero; the long run stays unchanged. The last stage ends with its own fall. A stage that
holds its rate can be left early: with `--enough 8000` the next one begins from its last checkpoint after so many steps.
`--fill` teaches a finished model to fill gaps too (`experiment=piano_fill`, on a CPU), in a folder beside its own.
`--asap` learns the performances of ASAP that MAESTRO lacks beside MAESTRO's pieces, `--pop` the training songs of
POP909, without their endings; what is scored stays MAESTRO's. Give both to every call, with an `--out` of its own.
`place_piano.py` averages a model that was tuned on both with the one it came from; the shipped model was made so, from
the bundle of commit 6cdcdf9, without a keyboard. `evidence.py` then makes all figures and pictures of
the bundle. `OMP_NUM_THREADS` sets how many cores it takes. Training scores one hour of the validation, `musictx
evaluate` all. On a GPU there is one stage, of 2,048 ids and 65,536 a step, compiled; it learns each piece many times,
so with dropout.
"""

import argparse
import csv
import io
import signal
import subprocess
import sys
import zipfile
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from musictx.config.app import parse_options
from musictx.config.mistakes import in_one_line
from musictx.data.store import Corpus, Piece, Store, write_store
from musictx.errors import UserError
from musictx.tokenizers import Tokenizer
from musictx.training.run_folder import RunFolder

ROOT = Path(__file__).parents[1]


class Stage(NamedTuple):
    length: int  # ids in a window
    batch: int  # windows
    steps: int
    decay_share: float  # share of the steps, at the end, in which the learning rate falls


STAGES = [Stage(512, 16, 13_000, 0.0), Stage(1024, 8, 4_000, 0.0), Stage(2048, 4, 3_000, 0.8)]  # of 8,192 tokens a step
FILL = Stage(2048, 4, 600, 1.0)
GPU_STAGES = [Stage(2048, 32, 20_000, 0.0)]  # of 65,536 tokens a step
RECIPES = {"cpu": "piano", "cuda": "piano_gpu"}  # conf/experiment
SCORED_H = 1.0  # hours of validation during training
ENDING_S = 15.0  # of a song, left out
ASAP = Corpus(  # its performances that are not in MAESTRO, and play no work of its validation and test
    "ASAP",
    "CC BY-NC-SA 4.0",
    "Foscarin et al., ASAP: a dataset of aligned scores and performances for piano transcription, ISMIR 2020",
)


def spread(rows: list[dict[str, str]], hours: float) -> list[str]:
    """Names of pieces of `hours` in all, spread over the table: every 7th first, then those after them."""
    names, so_far_s = [], 0.0
    for k in range(7):
        for row in rows[k::7]:
            if so_far_s < 3600 * hours:
                names.append(row["midi_filename"])
                so_far_s += float(row["duration"])
    return names


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


def prepare(archive: Path, out: Path) -> Path:
    """The store: all training pieces of MAESTRO, and an hour of its validation."""
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


def with_asap(base: Path, archive: Path, out: Path) -> Path:
    """A store like the base whose training split has all performances of ASAP too: none is of a work held out."""
    both = out / f"{base.name}-asap"
    if not (both / "manifest.json").exists():
        asap = out / "asap"
        if not (asap / "manifest.json").exists():
            about = [f"corpus='{ASAP.name}'", f"licence='{ASAP.licence}'"]
            call([str(ROOT / "data_prep/folder.py"), f"path={archive}", f"out={asap}", *about])
        other = Store(asap, Store(base).manifest.tokenizer)
        found = [piece for name in other.manifest.splits for piece in pieces_of(other, name)]
        write_joined(both, Store(base), found, ASAP, other.manifest.dropped)
    return both


def with_pop(base: Path, archive: Path, out: Path) -> Path:
    """A store like the base whose training split has POP909's songs too, all tracks of a song as one piano.

    Without their endings: songs are short, so a quarter of their windows would hold one, three times as many as
    MAESTRO's, and a model that heard those brought MAESTRO's music to an end early too."""
    pop, both = out / "pop", out / f"{base.name}-pop"
    if (both / "manifest.json").exists() and not Store(both).split("train").unfinished:
        raise UserError(f"{both} has songs with their endings, as before: delete it and {pop}, they are made anew")
    if not (both / "manifest.json").exists():
        if not (pop / "manifest.json").exists():
            call([str(ROOT / "data_prep/pop909.py"), f"path={archive}", f"out={pop}"])
        other = Store(pop, Store(base).manifest.tokenizer)
        songs = pieces_of(other, "train")
        found = [without_ending(song, other.tokenizer) for song in songs if song.seconds > ENDING_S]
        dropped = [(song.name, f"not longer than {ENDING_S:g} s") for song in songs if song.seconds <= ENDING_S]
        write_joined(both, Store(base), found, other.manifest.corpus, [*other.manifest.dropped, *dropped])
    return both


def write_joined(path: Path, base: Store, more: list[Piece], of: Corpus, dropped: Sequence[tuple[str, str]]) -> None:
    """Writes the base's splits, with more pieces of a corpus to train on."""
    own = base.manifest.corpus
    licence = own.licence if of.licence == own.licence else f"{own.licence} ({of.name}: {of.licence})"
    corpus = Corpus(f"{own.name} and {of.name}", licence, f"{own.citation}; {of.citation}")
    splits = {name: pieces_of(base, name) for name in base.manifest.splits}
    splits["train"] += more
    write_store(path, base.tokenizer, corpus, splits, [*base.manifest.dropped, *dropped])


def pieces_of(store: Store, split: str) -> list[Piece]:
    """A split's pieces, each with its length in seconds."""
    found = store.split(split)
    return [
        Piece(name, ids, store.tokenizer.seconds(ids), unfinished=i in found.unfinished)
        for i, (name, ids) in enumerate(zip(found.names, found, strict=True))
    ]


def without_ending(piece: Piece, tokenizer: Tokenizer) -> Piece:
    """An unfinished piece: all but its last `ENDING_S` seconds."""
    until_s = piece.seconds - ENDING_S
    n = bisect_right(range(len(piece.ids) + 1), until_s, key=lambda n: tokenizer.seconds(piece.ids[:n])) - 1
    return Piece(piece.name, piece.ids[:n], tokenizer.seconds(piece.ids[:n]), unfinished=True)


def may_leave(stage: Stage, folder: Path, enough: int | None) -> bool:
    """Whether a stage that holds its rate has made enough steps, and has a checkpoint for the next to begin with."""
    if enough is None or stage.decay_share or not RunFolder(folder).last_checkpoint.exists():
        return False
    return max((int(row["step"]) + 1 for row in RunFolder(folder).metrics()), default=0) >= enough


def words_of(stage: Stage, recipe: str, store: Path, folder: Path, before: Path | None) -> list[str]:
    """The words of `musictx train`. `before`: a checkpoint to begin with."""
    words = ["-m", "musictx", "train", f"experiment={recipe}", f"data.path={store}", f"out={folder}"]
    words += ["trainer.progress_bar=false", f"data.length={stage.length}", f"data.segment={stage.length}"]
    words += [f"trainer.batch_size={stage.batch}", f"trainer.max_steps={stage.steps}"]
    words += [f"trainer.decay_share={stage.decay_share}", f"trainer.warmup_steps={min(100, stage.steps // 10)}"]
    return [*words, *([] if before is None else [f"init_from={before}"])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--archive", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=ROOT / "outputs/piano")
    parser.add_argument("--device", default="cpu", choices=list(RECIPES))
    parser.add_argument("--minutes", type=float, default=150.0, help="minutes of training in this call")
    parser.add_argument("--enough", type=int, help="leave a stage whose rate is held after so many steps; default: all")
    parser.add_argument("--branch", type=int, help="steps: only make a model from the last checkpoint")
    parser.add_argument("--asap", type=Path, help="more performances, zip or folder: learn those too")
    parser.add_argument("--pop", type=Path, help="POP909, zip or folder: learn its songs too")
    parser.add_argument("--fill", type=Path, help="a bundle: only teach it to fill gaps")
    args, overrides = parse_options(parser, sys.argv[1:])
    if args.pop is not None and not args.pop.exists():
        parser.error(f"--pop {args.pop} does not exist: give POP909 as it was downloaded, a zip or a folder")
    if args.asap is not None and not args.asap.exists():
        parser.error(f"--asap {args.asap} does not exist: give the performances to learn, a zip or a folder")
    if args.fill is not None and args.device != "cpu":
        parser.error("--fill runs on a CPU: leave --device out")
    args.out.mkdir(parents=True, exist_ok=True)
    store = prepare(args.archive, args.out)
    if args.asap is not None:
        store = with_asap(store, args.asap, args.out)
    if args.pop is not None:
        store = with_pop(store, args.pop, args.out)
    recipe = RECIPES[args.device]
    end, before = monotonic() + 60 * args.minutes, None
    if args.fill is not None:
        folder = args.out / f"{args.fill.resolve().parent.name}-fill"
        if not call([*words_of(FILL, "piano_fill", store, folder, args.fill), *overrides], 60 * args.minutes):
            print(f"{folder} is not finished: give the same command again")
        return
    for number, stage in enumerate(STAGES if args.device == "cpu" else GPU_STAGES):
        folder = args.out / f"stage-{number}"
        if RunFolder(folder).is_finished:
            before = folder / "model.safetensors"
            continue
        if may_leave(stage, folder, args.enough):
            before = RunFolder(folder).last_checkpoint
            continue
        if args.branch is not None:
            begun = RunFolder(folder).last_checkpoint
            start = begun if begun.exists() else before
            if start is None:
                raise SystemExit(f"{folder} has no checkpoint yet: train first, without --branch")
            fills = "-fill" * ("objective=infill" in overrides)
            branched = args.out / f"branch-{number}{fills}"
            short = stage._replace(steps=args.branch, decay_share=1.0)
            words = [*words_of(short, recipe, store, branched, start), f"trainer.validate_every={args.branch}"]
            call([*words, "overwrite=true", *overrides])
            return
        if not call([*words_of(stage, recipe, store, folder, before), *overrides], end - monotonic()):
            print(f"{folder} is not finished: give the same command again")
            return
        before = folder / "model.safetensors"
    print(f"all stages are done: {before}")


if __name__ == "__main__":
    with in_one_line():
        main()
