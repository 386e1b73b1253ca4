"""The models and seeds inside the package, and the only place where their names become paths."""

import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path

from musictx.errors import BundleError, MidiError
from musictx.terminal import say

FOLDER = Path(__file__).parents[1] / "bundles"
PIANO, CHORALE, SCORE, HARMONISER = "piano", "chorale", "score", "harmoniser"
BUNDLE = "model.safetensors"  # in the folder of a run
NAMES = (PIANO, CHORALE, SCORE)  # models that continue music
BUNDLES = (*NAMES, HARMONISER)
KNOWN = f"{', '.join(NAMES[:-1])} or {NAMES[-1]}, the models inside musictx"
SEEDS = ("elise", "gymnopedie", "chorale")
KNOWN_SEEDS = f"{', '.join(SEEDS[:-1])} or {SEEDS[-1]}, the seeds inside musictx"


def is_packaged(name: str) -> bool:
    return (FOLDER / f"{name}.safetensors").is_file()


def absence(name: str) -> BundleError:
    """The error for a model that this package was built without."""
    return BundleError(
        f"this musictx was built without its {name} model",
        f"install the full wheel of the same version, {version('musictx')}, from where you got this one, or build it "
        "from a checkout, python -m build --wheel, or give another bundle=",
    )


@cache  # commands resolve a path several times, and say this once
def print_precedence(name: str, what: str) -> None:
    """Prints a line if a file or folder here has the name of something inside the package, which wins."""
    if Path(name).exists():
        say(f"{name} is the {what} inside musictx; ./{name} means the one in this folder", file=sys.stderr)


def packaged_bundle(name: str) -> Path:
    """The path of a model inside the package. Raises BundleError if the package was built without it."""
    if not is_packaged(name):
        raise absence(name)
    return FOLDER / f"{name}.safetensors"


def bundle_path(bundle: str) -> Path:
    """The path of `bundle=` or `init_from=`: a model inside the package, else a file or a run's folder. Raises
    BundleError for others."""
    if bundle in BUNDLES:
        print_precedence(bundle, "model")
        return packaged_bundle(bundle)
    path = Path(bundle)
    if bundle and path.is_dir():
        return _run_bundle(path)
    if not path.is_file():
        names = f"{', '.join(BUNDLES[:-1])} or {BUNDLES[-1]}, the models inside musictx"
        hint = f"give {names}, or train one, `musictx train`, and give its run's folder or its file"
        raise BundleError(f"{bundle}: no such bundle", hint)
    return path


def is_run(folder: Path) -> bool:
    """Whether it has a run's model, or its checkpoints."""
    return (folder / BUNDLE).is_file() or bool(_checkpoints(folder))


def _checkpoints(folder: Path) -> list[Path]:
    return sorted(folder.glob("checkpoints/*.ckpt"))


def _run_bundle(folder: Path) -> Path:
    """The path of a run's model. Raises BundleError without one, and names its checkpoint if there is one."""
    if (folder / BUNDLE).is_file():
        return folder / BUNDLE
    if checkpoints := _checkpoints(folder):  # best.ckpt before last.ckpt
        hint = f"resume it, musictx train resume={folder}, or give {checkpoints[0]}"
        raise BundleError(f"{folder} has no {BUNDLE}, its run is unfinished", hint)
    raise BundleError(f"{folder} is a folder without {BUNDLE}", "give the folder of a run that is finished, or a file")


def seed_path(midi: str) -> Path:
    """The path of `seed_midi=`, `midi=` or `input=`: a seed inside the package, else a path. Raises MidiError for
    neither."""
    if midi in SEEDS:
        print_precedence(midi, "seed")
        return FOLDER / f"{midi}.mid"
    if not Path(midi).exists():
        raise MidiError(midi, "no such file", f"give an existing MIDI file, or {KNOWN_SEEDS}")
    return Path(midi)
