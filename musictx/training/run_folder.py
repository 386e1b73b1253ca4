"""A run's folder: begun once, gone on with when the run was stopped, never mixed with another; `run.json` in it says
what made the run: the code, the libraries, the device, the data.
"""

import json
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from secrets import token_hex
from typing import Any

import torch
from omegaconf import OmegaConf

from musictx.config.model import MODELS, settings_of_kind
from musictx.config.train import TrainConfig
from musictx.data.store import Store
from musictx.errors import ConfigError, StoreError
from musictx.files import replacing
from musictx.training.checkpoints import LAST
from musictx.training.failure import FAILED

RECORD = "run.json"
LIBRARIES = ("musictx", "torch", "lightning", "numpy")


@dataclass(frozen=True)
class Record:
    git_commit: str | None  # null: not run from a checkout; "+" at its end: with changes
    versions: dict[str, str]
    device: str
    store: str  # hash of the tokens that are learnt and validated
    wandb_id: str


def make_record(store: Store, accelerator: str) -> Record:
    versions = {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}}
    device = torch.cuda.get_device_name() if accelerator == "cuda" else "cpu"
    return Record(git_commit(), versions, device, store_hash(store), token_hex(4))


def write_record(folder: Path, record: Record) -> None:
    with replacing(folder / RECORD) as partial:
        partial.write_text(json.dumps(asdict(record), indent=1))


def read_record(folder: Path) -> Record:
    return Record(**json.loads((folder / RECORD).read_text(encoding="utf-8")))


def store_hash(store: Store) -> str:
    """Of the ids themselves, not of what the manifest says of them."""
    digest = sha256(store.manifest.vocab_fingerprint.encode())
    for name in ("train", "validation"):
        split = store.split(name)
        digest.update(split.offsets.tobytes())
        digest.update(split.ids.data)
    return digest.hexdigest()[:16]


def git_commit() -> str | None:
    """The commit of the checkout that this package lies in."""
    package = Path(__file__).parent

    def git(*args: str) -> str:
        done = subprocess.run(["git", "-C", str(package), *args], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        if not git("ls-files", str(Path(__file__))):  # installed somewhere below another project
            return None
        return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return None


try:
    import fcntl
except ImportError:  # there is none on Windows
    fcntl = None  # type: ignore[assignment]

LOCK = ".lock"
CONFIG, CHECKPOINTS, METRICS, BUNDLE, CURVES = (
    "config.yaml",
    "checkpoints",
    "metrics.csv",
    "model.safetensors",
    "curves.png",
)
# the demo's seeds and continuations lie in a run's folder too; anything else is a person's own
OURS = {CONFIG, RECORD, METRICS, CHECKPOINTS, BUNDLE, CURVES, FAILED, "samples", "wandb"}
OURS_TOO = re.compile(r"(seed|chorale)(-\d+)?\.(mid|wav|png)|\..+\.partial(\.\w+)?")
FREE = {
    "out",
    "overwrite",
    "resume",
    "data.path",
    "data.workers",
    "trainer.progress_bar",
}  # change nothing that is learnt


def last_checkpoint(folder: Path) -> Path:
    return folder / CHECKPOINTS / LAST


def is_unfinished(folder: Path) -> bool:
    """Begun by this version, and not yet at its end; perhaps without a checkpoint."""
    begun = (folder / CONFIG).is_file() and (folder / RECORD).is_file()
    return begun and (last_checkpoint(folder).is_file() or not (folder / BUNDLE).is_file())


def is_finished(folder: Path) -> bool:
    """It has its bundle, and nothing to go on with."""
    return (folder / BUNDLE).is_file() and (folder / CONFIG).is_file() and not is_unfinished(folder)


def differences(config: TrainConfig, folder: Path) -> list[str]:
    """The settings that another run began with, each as `name=now (was then)`."""
    begun, now = read_settings(folder), _flat(OmegaConf.to_container(OmegaConf.structured(config)))
    default = TrainConfig(model=MODELS.get(begun["model.kind"], {}))  # of settings newer than the run
    then = _flat(OmegaConf.to_container(OmegaConf.structured(default))) | begun
    names = sorted(name for name in {**then, **now} if name not in FREE and then.get(name) != now.get(name))
    if "model.kind" in names:  # which brings other settings with it
        names = [name for name in names if name == "model.kind" or not name.startswith("model.")]
    return [f"{name}={now.get(name)} (was {then.get(name)})" for name in names]


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """No other process trains in `folder` meanwhile; one that is killed lets go, its loaders' workers within seconds.
    Where files cannot be locked it says so and goes on. Raises ConfigError."""
    place = folder / CHECKPOINTS / LOCK
    place.parent.mkdir(parents=True, exist_ok=True)
    with open(place, "a") as file:
        try:
            if fcntl is None:
                raise OSError("this system has no such locks")
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(
                f"out={folder}: another process trains in this folder now: wait until it ends, or give another out="
            ) from None
        except OSError as error:
            print(f"{place} cannot be locked ({error}): make sure that no other process trains in {folder}")
        yield


def open_run(config: TrainConfig, record: Record) -> Path | None:
    """The checkpoint that the run in `out` goes on from; None in a new folder, where config and record are written.

    Raises ConfigError rather than mix two runs in one folder, StoreError for other data than the run began with.
    """
    folder = Path(config.out)
    if _aside(folder).exists() and not folder.exists():  # killed between two renames
        _aside(folder).rename(folder)
    if is_unfinished(folder) and not config.overwrite:
        _check_same(config, folder, record)
        for partial in folder.glob("**/.*.partial*"):  # of a process that was killed while it wrote
            partial.unlink()
        if last_checkpoint(folder).is_file():
            print(f"{folder} is unfinished: going on from its last checkpoint")
            return last_checkpoint(folder)
        print(f"{folder} was stopped before its first checkpoint: beginning anew")
        return None
    if config.resume is not None:
        raise ConfigError(f"resume={config.resume}: no unfinished run is there; give the folder of one, or out=")
    check_free(folder, config.overwrite)
    if folder.exists() and any(folder.iterdir()):  # kept until the new run has a model
        if _aside(folder).exists():
            shutil.rmtree(folder)
        else:
            folder.rename(_aside(folder))
    folder.mkdir(parents=True, exist_ok=True)
    write_record(folder, record)
    with replacing(folder / CONFIG) as partial:
        partial.write_text(OmegaConf.to_yaml(OmegaConf.structured(config)))
    return None


def check_free(folder: Path, overwrite: bool) -> None:
    """Raises ConfigError when a new run would destroy something."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not overwrite:
        raise ConfigError(f"out={folder} exists already: give another out= or overwrite=true")
    names = [p.name for p in folder.iterdir()] if folder.is_dir() else [folder.name]
    foreign = [n for n in names if n not in OURS and not OURS_TOO.fullmatch(n)]
    if foreign or CONFIG not in names:
        what = foreign[0] if foreign else f"no {CONFIG}"
        raise ConfigError(f"out={folder} is not the folder of a run (it has {what}): give another out=")


def close_run(folder: Path) -> None:
    """The run is at its end: there is nothing to go on with, and nothing to fall back to."""
    last_checkpoint(folder).unlink(missing_ok=True)
    shutil.rmtree(_aside(folder), ignore_errors=True)


def undo_run(folder: Path) -> None:
    """Nothing came of a run, no checkpoint either: as if it had not been given."""
    shutil.rmtree(folder)
    if _aside(folder).exists():
        _aside(folder).rename(folder)


def _aside(folder: Path) -> Path:
    """Where the run lies that another is to take the place of."""
    folder = folder.resolve()
    return folder.with_name(f".{folder.name}.old")


def _check_same(config: TrainConfig, folder: Path, record: Record) -> None:
    if told := ", ".join(differences(config, folder)):
        raise ConfigError(
            f"out={folder} holds an unfinished run with other settings: {told}; give those again to go on with it, "
            "another out=, or overwrite=true to begin anew"
        )
    if read_record(folder).store != record.store:
        raise StoreError(
            f"data.path={config.data.path} holds other data than the run in {folder} began with: give that store "
            "again, another out=, or overwrite=true to begin anew"
        )


def read_config(folder: Path) -> Any:
    """What config.yaml says."""
    config: Any = OmegaConf.load(folder / CONFIG)
    config.model = settings_of_kind(config.get("model", {}))
    return config


def read_settings(folder: Path) -> dict[str, Any]:
    """The same, as `group.name`."""
    return _flat(OmegaConf.to_container(read_config(folder)))


def _flat(tree: Any) -> dict[str, Any]:
    def walk(node: Any, prefix: str) -> Iterator[tuple[str, Any]]:
        for key, value in node.items():
            if isinstance(value, dict):
                yield from walk(value, f"{prefix}{key}.")
            else:
                yield f"{prefix}{key}", value

    return dict(walk(tree, ""))
