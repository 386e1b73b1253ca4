"""A run's folder, where a stopped run resumes; `run.json` records its code, libraries, device and data."""

import json
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from secrets import token_hex
from typing import Any

import torch
import yaml
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from musictx.config.model import schemas
from musictx.config.train import TrainConfig
from musictx.data.store import Store, check_split
from musictx.errors import ConfigError, UserError, counted
from musictx.files import real_path, replacing, write_json
from musictx.model.packaged import BUNDLE
from musictx.system import locked
from musictx.terminal import say
from musictx.training.checkpoints import BEST, LAST, check_whole, step_of
from musictx.training.failure import FAILED
from musictx.training.metrics import Metrics, read_metrics

LIBRARIES = ("musictx", "torch", "lightning", "numpy")


@dataclass(frozen=True)
class Record:
    git_commit: str | None  # null: not run from a checkout; a "+" at the end: with local changes
    versions: dict[str, str]
    device: str
    store: str  # hash of the training and validation tokens
    wandb_id: str


def make_record(store: Store, accelerator: str) -> Record:
    versions = {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}}
    device = torch.cuda.get_device_name() if accelerator == "cuda" else "cpu"
    return Record(git_commit(), versions, device, store_hash(store), token_hex(4))


def store_hash(store: Store) -> str:
    """Hash of the ids and of the unfinished pieces' numbers. Raises StoreError for ids that have changed."""
    digest = sha256(store.manifest.vocab_fingerprint.encode())
    for name in ("train", "validation"):
        split = check_split(store, name)
        digest.update(split.offsets.tobytes())
        digest.update(split.ids.data)
        if split.unfinished:
            digest.update(json.dumps(sorted(split.unfinished)).encode())
    return digest.hexdigest()[:16]


def git_commit() -> str | None:
    """The commit of this package's checkout, "+" with local changes; None outside one."""
    here = Path(__file__)
    git = partial(subprocess.check_output, cwd=here.parent, text=True, stderr=subprocess.DEVNULL)
    try:
        git(["git", "ls-files", "--error-unmatch", here.name])  # fails inside another project's checkout
        return git(["git", "describe", "--always", "--abbrev=40", "--dirty=+", "--exclude=*"]).strip()
    except (OSError, subprocess.CalledProcessError):
        return None


CONFIG, RECORD, METRICS, CURVES = "config.yaml", "run.json", "metrics.csv", "curves.png"
SAMPLES, CHECKPOINTS, LOCK, TENSORBOARD = "samples", "checkpoints", ".lock", "tensorboard"
# a run's folder also has the demo's seeds and continuations; anything else belongs to the person
OURS = {CONFIG, RECORD, METRICS, CHECKPOINTS, BUNDLE, CURVES, FAILED, SAMPLES, TENSORBOARD, "wandb"}
OURS_TOO = re.compile(r"(seed|chorale|elise)(-\d+)?\.(mid|wav|png)|\..+\.partial(\.\w+)?")
# settings that do not change the model
FREE = {"out", "overwrite", "resume", "data.path", "data.workers", "trainer.progress_bar"}
# what a person can change of a run that goes on: how long it trains, and how often it says and keeps something
LATER = {f"trainer.{name}" for name in ("max_steps", "max_epochs", "patience", "checkpoint_every", "log_every")}
OTHERWISE = "another out=, or overwrite=true to start again"


class RunFolder:
    """The files of a run, their content, and the run's state."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bundle, self.metrics_file = path / BUNDLE, path / METRICS
        self.curves, self.samples, self.checkpoints = path / CURVES, path / SAMPLES, path / CHECKPOINTS
        self.last_checkpoint = self.checkpoints / LAST

    @property
    def failed(self) -> bool:
        """Whether a bad loss ended the run."""
        return (self.path / FAILED).exists()

    @property
    def has_begun(self) -> bool:
        """Whether it has a run in this version's format."""
        return (self.path / CONFIG).is_file() and (self.path / RECORD).is_file()

    @property
    def is_unfinished(self) -> bool:
        """Whether its run has not ended, with or without a checkpoint."""
        return self.has_begun and (self.last_checkpoint.is_file() or not self.bundle.is_file())

    @property
    def is_finished(self) -> bool:
        """Whether its run has a bundle and nothing to resume."""
        return self.bundle.is_file() and (self.path / CONFIG).is_file() and not self.is_unfinished

    @property
    def state(self) -> str:
        """`failed`, `finished` or `unfinished`."""
        return "failed" if self.failed else "finished" if self.is_finished else "unfinished"

    def config(self) -> Any:
        """The settings in config.yaml. Raises UserError for a file that is damaged or has more than values."""
        return _values(self.path / CONFIG)

    def settings(self) -> dict[str, Any]:
        """The settings in config.yaml by `group.name`."""
        return _flat(OmegaConf.to_container(self.config()))

    def record(self) -> Record:
        """The content of run.json. Raises UserError for a damaged file."""
        try:
            return Record(**json.loads((self.path / RECORD).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError, RecursionError) as error:
            raise _damaged(self.path / RECORD, error) from None

    def metrics(self) -> list[Metrics]:
        """The rows of metrics.csv so far."""
        return read_metrics(self.metrics_file)

    def differences(self, config: TrainConfig) -> list[str]:
        """The settings that differ from the run's, each as `name=now (was then)`; with `resume=` some may."""
        settings, now = self.settings(), _flat(OmegaConf.to_container(OmegaConf.structured(config)))
        default = TrainConfig(model=schemas().get(settings["model.kind"], {}))  # for settings newer than the run
        then = _flat(OmegaConf.to_container(OmegaConf.structured(default))) | settings
        free = FREE | LATER if config.resume else FREE
        names = sorted(name for name in {**then, **now} if name not in free and then.get(name) != now.get(name))
        if "model.kind" in names:  # another kind brings other settings
            names = [name for name in names if name == "model.kind" or not name.startswith("model.")]
        return [f"{name}={now.get(name)} (was {then.get(name)})" for name in names]

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Locks the folder for this process; prints a line where files cannot be locked. Raises ConfigError where
        another process has the lock."""
        self.checkpoints.mkdir(parents=True, exist_ok=True)
        why = "another process trains in this folder now"
        error = ConfigError("out", got=self.path, why=why, allowed="another, or wait until it ends")
        with locked(self.checkpoints / LOCK, error):
            yield

    def open(self, config: TrainConfig, record: Record, steps: int) -> Path | None:
        """The checkpoint to resume a run of so many steps from; None for a new run, whose config and record it writes.
        Raises ConfigError for another run or store than the folder's, UserError for damaged files."""
        if self._aside.exists() and not self.path.exists():  # killed between two renames
            self._aside.rename(self.path)
        if self.is_unfinished and not config.overwrite:
            self._check_same(config, record)
            if self.last_checkpoint.is_file():
                check_whole(self.last_checkpoint)
                done = step_of(self.last_checkpoint)
                if steps <= done and not (self.checkpoints / BEST).is_file():  # no step would make a model
                    why = f"the run has made {counted(done, 'step')}, and has no validated model yet"
                    name = "max_steps" if steps == config.trainer.max_steps else "max_epochs"
                    raise ConfigError(name, got=getattr(config.trainer, name), why=why, allowed="more, or leave it out")
            if config.resume:
                self._write(config)
            for partial in self.path.glob("**/.*.partial*"):  # of a process killed while writing
                partial.unlink()
            if self.last_checkpoint.is_file():
                say(f"{self.path} is unfinished: resuming from its last checkpoint")
                return self.last_checkpoint
            say(f"{self.path} was stopped before its first checkpoint: starting again")
            return None
        if config.resume is not None:
            self.check_unfinished()
            raise ConfigError("overwrite", got=True, why="resume= goes on with a run", hint="leave one of them out")
        self._check_free(config.overwrite)
        if self.path.exists() and any(self.path.iterdir()):  # keep it until the new run has a model
            if self._aside.exists():
                shutil.rmtree(self.path)
            else:
                self.path.rename(self._aside)
        write_json(self.path / RECORD, asdict(record))
        self._write(config)
        return None

    def _write(self, config: TrainConfig) -> None:
        with replacing(self.path / CONFIG) as partial:
            partial.write_text(OmegaConf.to_yaml(OmegaConf.structured(replace(config, resume=None))), encoding="utf-8")

    def check_unfinished(self) -> None:
        """Raises ConfigError where no run can be resumed."""
        if self.is_finished:
            raise ConfigError("resume", got=self.path, why="its run is finished", hint=self._more)
        if not self.is_unfinished:
            why = "it has no unfinished run"
            raise ConfigError("resume", got=self.path, why=why, allowed="the folder of one, or out=")

    @property
    def _more(self) -> str:
        return f"init_from={self.path} with another out= trains on from its model"

    def _check_free(self, overwrite: bool) -> None:
        """Raises ConfigError where a new run would destroy files."""
        out = self.path
        if out.is_symlink() and not out.exists():
            raise ConfigError("out", got=out, why="it is a link to nothing", allowed="another")
        if not out.exists() or (out.is_dir() and not any(out.iterdir())):
            return
        if not overwrite:
            hint = self._more if self.is_finished else ""
            raise ConfigError("out", got=out, why="it exists already", allowed="another, or overwrite=true", hint=hint)
        names = [p.name for p in out.iterdir()] if out.is_dir() else [out.name]
        foreign = [n for n in names if n not in OURS and not OURS_TOO.fullmatch(n)]
        if foreign or CONFIG not in names:
            what = foreign[0] if foreign else f"no {CONFIG}"
            raise ConfigError("out", got=out, why=f"it is not the folder of a run (it has {what})", allowed="another")

    def close(self) -> None:
        """Removes the last checkpoint and the run that this one replaced."""
        self.last_checkpoint.unlink(missing_ok=True)
        shutil.rmtree(self._aside, ignore_errors=True)

    def undo(self) -> None:
        """Removes a run without a checkpoint, and puts back the run that it was to replace."""
        shutil.rmtree(self.path)
        if self._aside.exists():
            self._aside.rename(self.path)

    @property
    def _aside(self) -> Path:
        """The place of the old run while a new one replaces it."""
        folder = real_path(self.path)
        return folder.with_name(f".{folder.name}.old")

    def check_settings(self, config: TrainConfig) -> None:
        """Raises ConfigError for settings that its unfinished run cannot go on with."""
        if others := ", ".join(self.differences(config)):
            why = f"it has an unfinished run with other settings, {others}"
            if config.resume:
                hint = f"leave them out; of a run only {', '.join(sorted(LATER))} can change"
                raise ConfigError("resume", got=self.path, why=why, hint=hint)
            raise ConfigError("out", got=self.path, why=why, allowed=f"those again to resume it, {OTHERWISE}")

    def _check_same(self, config: TrainConfig, record: Record) -> None:
        self.check_settings(config)
        if self.record().store != record.store:
            why = f"it has other data than the run in {self.path} began with"
            raise ConfigError("path", got=config.data.path, why=why, allowed=f"that store again, {OTHERWISE}")


def _values(path: Path) -> Any:
    """The values of a YAML file. Raises UserError for interpolations too: these read the environment."""
    try:
        values = yaml.load(path.read_text(encoding="utf-8"), PlainLoader)
        if "${" in str(values):
            raise ValueError("it has ${…}, which only a person may give")
        config = OmegaConf.create(values)
        if not isinstance(config, DictConfig) or not isinstance(OmegaConf.select(config, "model.kind"), str):
            raise ValueError("it has no kind of model")
        return config
    except (OSError, ValueError, yaml.YAMLError, OmegaConfBaseException, RecursionError, AssertionError) as error:
        raise _damaged(path, error) from None


class PlainLoader(yaml.SafeLoader):  # type: ignore[misc] # its types are unknown
    """YAML without tags, and without aliases, which can outgrow all memory."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()
        if isinstance(event, yaml.AliasEvent) or getattr(event, "tag", None) is not None:
            raise ValueError("it has aliases or tags")
        return super().compose_node(parent, index)


def _damaged(path: Path, error: Exception) -> UserError:
    reason = " ".join(str(error).split())[:150]
    return UserError(f"{path} is damaged ({reason})", "put back a copy, or remove the run")


def find_runs(root: Path) -> list[RunFolder]:
    """The folders of all runs at or below `root`, by name."""
    return [run for record in sorted(root.rglob(RECORD)) if (run := RunFolder(record.parent)).has_begun]


def _flat(tree: Any, prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return flat
