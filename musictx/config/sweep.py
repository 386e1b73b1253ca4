"""Sweeps (`-m`): where a job writes, what a cluster needs, and what a job that failed says."""

import dataclasses
import re
import shutil
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode

from musictx.errors import ConfigError, UserError


def own_place(config: Any, name: str) -> Any:
    """The config of a job among many, with a separate place to write: `out-0`, `out-1` …. A training does this
    itself."""
    hydra_config = HydraConfig.get()
    if hydra_config.mode != RunMode.MULTIRUN or name == "train" or not getattr(config, "out", None):
        return config
    out = Path(config.out)
    suffix = out.suffix if out.suffix[1:].isalpha() else ""
    return dataclasses.replace(config, out=f"{str(out).removesuffix(suffix)}-{hydra_config.job.num}{suffix}")


def check_cluster(words: Sequence[str], groups: Collection[str]) -> None:
    """Raises ConfigError if jobs of a command with these groups are to go to SLURM and it is not installed."""
    launchers = [word for word in words if word.startswith("hydra/launcher=")]
    presets = "sweep" in groups  # which name launchers
    slurm = launchers == ["hydra/launcher=submitit_slurm"] or (presets and not launchers and "sweep=slurm" in words)
    if slurm and {"-m", "--multirun"} & {*words} and shutil.which("srun") is None:
        key, prefix = ("sweep", "") if presets else ("hydra/launcher", "submitit_")
        hint = f"run the command on a node of the cluster, or give {key}=joblib to run the jobs here"
        raise ConfigError(key, got=f"{prefix}slurm", why="srun is not found on this machine", hint=hint)


def mistake_in_job(error: Exception) -> UserError | None:
    """The one line of a failed job, out of submitit's error, and where its other output is; None if it is no error of
    submitit, or the job reported no mistake."""
    text = str(error) if type(error).__module__.startswith("submitit.") else ""
    mistakes = [line.removeprefix("error: ") for line in text.splitlines() if line.startswith("error: ")]
    place = re.search(r"with path (.+)/[^/\n]+\n", text)
    where = f"; its whole output is in {place[1]}" if place else ""
    return UserError(f"a job of the sweep failed: {mistakes[-1]}{where}") if mistakes else None
