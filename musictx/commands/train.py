"""musictx train: fit a model to a token store, from the command line and from Python."""

import math
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from lightning.pytorch.utilities import rank_zero_only
from omegaconf import OmegaConf

from musictx.config.app import hydra_app, in_one_line, settings, typed
from musictx.config.model import schema_of
from musictx.config.train import TrainConfig
from musictx.errors import ConfigError
from musictx.model.bundle import read_header
from musictx.objectives import NEXT_TOKEN, find_objective
from musictx.training.failure import TrainingError
from musictx.training.fit import fit, smoke
from musictx.training.run_folder import BUNDLE, differences, is_finished, is_unfinished, read_config
from musictx.training.start import check_given


def train(*words: str, **values: Any) -> Path | None:
    """`musictx train` from Python: `train("experiment=demo", "trainer.max_steps=5", out="mine")`. Returns the bundle;
    None after trainer.smoke=true, and in all processes but the first. Raises UserError."""
    told = [*words, *_as_words(values)]
    config = alone(settings("train", *words, **values), told)
    check_given(config, told)
    if config.trainer.smoke:
        smoke(config)
        return None
    bundle = fit(config)
    return None if getattr(rank_zero_only, "rank", 0) else bundle


def _as_words(values: Mapping[str, Any]) -> Iterator[str]:
    for key, value in values.items():
        inner = value if isinstance(value, Mapping) else {}
        yield from (f"{key}.{name}={each}" for name, each in inner.items()) if inner else [f"{key}={value}"]


def run(config: TrainConfig) -> float | None:
    """The best validation NLL, for a sweep to minimise."""
    hydra = HydraConfig.get()
    words = list(hydra.overrides.task)
    config = alone(config, words)
    check_given(config, words)
    one_job = hydra.mode == RunMode.MULTIRUN
    if one_job:
        config = one_of_many(config, hydra.job.num)
        folder = Path(config.out)
        if is_finished(folder) and not config.overwrite and not differences(config, folder):
            print(f"{folder} is finished already")
            return read_header(folder / BUNDLE).val_nll
    if config.trainer.smoke:
        smoke(config)
        return math.inf if one_job else None  # a sweep wants a figure, and nothing was learnt
    try:
        bundle = fit(config)
    except TrainingError as error:
        if not one_job:
            raise
        print(f"error: {config.out}: {error}", file=sys.stderr)  # the worst that can be; the other jobs are to come
        return math.inf
    if getattr(rank_zero_only, "rank", 0):  # of several processes one speaks
        return None
    print(f"{config.trainer.keep} model: {bundle}")
    header = read_header(bundle)
    objective = find_objective(header.objective.get("name", NEXT_TOKEN))
    if objective.continues:
        print(f"continue a seed with it: musictx generate bundle={bundle} seed_midi=my.mid")
    elif "source" in objective.inputs:
        print(f"accompany a melody with it: musictx accompany bundle={bundle} melody=my.mid")
    return header.val_nll


def alone(config: TrainConfig, words: list[str]) -> TrainConfig:
    """`resume=FOLDER` and nothing else: with that run's own settings. Other words must agree with them."""
    if config.resume is None or len(words) > 1 or not is_unfinished(Path(config.resume)):
        return config
    stored = read_config(Path(config.resume))
    schema = OmegaConf.structured(TrainConfig(model=schema_of(stored.model.kind)))
    begun: TrainConfig = typed(OmegaConf.merge(schema, stored), TrainConfig)  # type: ignore[arg-type]
    return replace(begun, resume=config.resume, overwrite=False)


def one_of_many(config: TrainConfig, number: int) -> TrainConfig:
    """A job of a sweep (`-m`): in a folder of its own, `out-0`, `out-1` …, the same when the sweep is given again."""
    return replace(config, out=f"{config.out}-{number}")


def check_cluster(words: list[str]) -> None:
    """Raises ConfigError where jobs are to be handed to SLURM and there is none."""
    launchers = [word for word in words if word.startswith("hydra/launcher=")]
    slurm = launchers == ["hydra/launcher=submitit_slurm"] or (not launchers and "sweep=slurm" in words)
    if slurm and {"-m", "--multirun"} & set(words) and "--help" not in words and shutil.which("srun") is None:
        raise ConfigError(
            "sweep=slurm: srun is not found on this machine: give the command on a node of the cluster, or "
            "sweep=joblib to run the jobs here"
        )


_run = hydra_app("train", run)


def told_by_job(error: Exception) -> ConfigError | None:
    """What submitit raises for a job that failed, as one line: the job's own, and where the rest is; None where the
    job told no mistake."""
    text = str(error)
    mistakes = [line.removeprefix("error: ") for line in text.splitlines() if line.startswith("error: ")]
    place = re.search(r"with path (.+)/[^/\n]+\n", text)
    where = f"; all that it said is in {place[1]}" if place else ""
    return ConfigError(f"a job of the sweep failed: {mistakes[-1]}{where}") if mistakes else None


def _or_what_a_job_says() -> None:
    try:
        _run()
    except Exception as error:
        mistake = told_by_job(error) if type(error).__module__.startswith("submitit.") else None
        if mistake is None:
            raise
        raise mistake from None


def main() -> None:
    in_one_line(lambda: check_cluster(sys.argv[1:]))
    in_one_line(_or_what_a_job_says)


if __name__ == "__main__":
    main()
