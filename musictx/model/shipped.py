"""The models inside the package, and the one place where `bundle=` becomes a path."""

from importlib.metadata import version
from pathlib import Path

from musictx.errors import BundleError

FOLDER = Path(__file__).parents[1] / "bundles"
PIANO, CHORALE = "piano", "chorale"
BUNDLE = "model.safetensors"  # in the folder of a run
NAMES = (PIANO, CHORALE)


def is_shipped(name: str) -> bool:
    return (FOLDER / f"{name}.safetensors").is_file()


def absence(name: str) -> str:
    """Why there is no model of that name, and where to get it."""
    full = f"the full wheel of the same version, {version('musictx')},"
    return f"this musictx was built without its {name} model: install {full} or give another bundle="


def shipped_bundle(name: str) -> Path:
    """The model of that name inside the package. Raises BundleError where the package was built without it."""
    if not is_shipped(name):
        raise BundleError(absence(name))
    return FOLDER / f"{name}.safetensors"


def bundle_path(bundle: str) -> Path:
    """What `bundle=` or `init_from=` says: a name of a model inside the package, before a file or folder of that name,
    a file, or the folder of a run that has its model. Raises BundleError for others."""
    if bundle in NAMES:
        return shipped_bundle(bundle)
    path = Path(bundle)
    if bundle and path.is_dir():
        return _of_run(path)
    if not path.is_file():
        raise BundleError(
            f"{bundle}: no such bundle; give {' or '.join(NAMES)}, the models inside musictx, or a file that "
            "`musictx train` wrote"
        )
    return path


def _of_run(folder: Path) -> Path:
    """A run's model. Raises BundleError where it has none yet, and says what there is instead."""
    if (folder / BUNDLE).is_file():
        return folder / BUNDLE
    checkpoints = sorted(folder.glob("checkpoints/*.ckpt"))
    if checkpoints:  # best.ckpt before last.ckpt
        raise BundleError(
            f"{folder} holds no {BUNDLE}, its run is unfinished: go on with it, musictx train resume={folder}, or give "
            f"{checkpoints[0]}"
        )
    raise BundleError(f"{folder} is a folder without {BUNDLE}: give the folder of a run that is finished, or a file")
