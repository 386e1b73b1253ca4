"""The settings of a run that goes on: its own, and on top those that a person names."""

from collections.abc import Sequence
from dataclasses import is_dataclass, replace
from pathlib import Path

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from musictx.config.app import to_schema
from musictx.config.model import schema_of
from musictx.config.train import TrainConfig
from musictx.errors import ConfigError
from musictx.objectives import find_objective
from musictx.training.run_folder import RunFolder


def with_resume(config: TrainConfig, words: Sequence[str]) -> TrainConfig:
    """The settings of the run that `resume=FOLDER` names, with those of `words`; of any other run the config itself.
    Raises ConfigError for settings that the run cannot go on with."""
    if config.resume is None:
        return config
    folder = RunFolder(Path(config.resume))
    folder.check_unfinished()
    run, names = _settings_of(folder), [word.lstrip("+").partition("=")[0] for word in words]
    if "experiment" in names:
        raise ConfigError("experiment", why="resume= goes on with the run's own settings", hint="leave one of them out")
    if ":" in run.objective and "objective" not in names:  # a folder is data: only a person runs code from elsewhere
        why = f"it was begun with objective={run.objective}, which is not in musictx"
        allowed = f"objective={run.objective} too to run it"
        raise ConfigError("resume", got=config.resume, why=why, allowed=allowed)
    if "out" in names and Path(config.out).resolve() != folder.path.resolve():
        why = "resume= goes on in the run's own folder"
        raise ConfigError("out", got=config.out, why=why, hint="leave one of them out")
    run = replace(run, overwrite=False)
    for name in ["resume", *names]:
        run = _with(run, config, name)
    folder.check_settings(run)
    return run


def _settings_of(folder: RunFolder) -> TrainConfig:
    """The settings that a run began with. Raises ConfigError for those of another version."""
    values = folder.config()
    try:
        schema = OmegaConf.structured(TrainConfig(model=schema_of(values.model.kind)))
        run: TrainConfig = to_schema(OmegaConf.merge(schema, values), TrainConfig)  # type: ignore[arg-type]
        if ":" not in run.objective:
            find_objective(run.objective)
    except (OmegaConfBaseException, ConfigError) as error:
        why = f"its settings are not those of this version ({str(error).splitlines()[0]})"
        raise ConfigError("resume", got=folder.path, why=why, hint="start a new run") from None
    return run


def _with(run: TrainConfig, config: TrainConfig, key: str) -> TrainConfig:
    """The run's settings with one of the config, or with a group of them, by its key."""
    group, _, name = key.partition(".")
    if not hasattr(run, group):  # Hydra's own
        return run
    ours, theirs = getattr(run, group), getattr(config, group)
    if name and is_dataclass(ours) and not isinstance(ours, type) and hasattr(ours, name):
        theirs = replace(ours, **{name: getattr(theirs, name)})
    return replace(run, **{group: theirs})
