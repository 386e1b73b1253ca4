"""musictx train: fit a model to a token store, keep the best as a bundle."""

import math
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from shlex import quote
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from lightning.pytorch.utilities import rank_zero_only

from musictx.config.app import settings
from musictx.config.command import Command
from musictx.config.fields import setting_keys
from musictx.config.train import TrainConfig
from musictx.errors import as_word
from musictx.model.header import read_header
from musictx.objectives import NEXT_TOKEN, find_objective
from musictx.terminal import say
from musictx.training.failure import TrainingError
from musictx.training.fit import fit
from musictx.training.resume import with_resume
from musictx.training.run_folder import RunFolder
from musictx.training.start import check_words, suited_to_store


def train(*words: str, **values: Any) -> Path:
    """`musictx train` from Python: `train("experiment=demo", "trainer.max_steps=5", out="mine")`.

    `words` are settings as the command takes them, `values` the same as Python has them. Returns the bundle, which
    the first process writes.

    Raises:
        UserError: as the command does, in one line.
        KeyboardInterrupt: on Ctrl-C, with the model of its last steps in the folder.
    """
    typed = [*words, *_as_words(values)]
    config = completed(settings("train", *words, **values), typed)
    bundle = fit(config)
    if not getattr(rank_zero_only, "rank", 0) and RunFolder(bundle.parent).is_unfinished:
        raise KeyboardInterrupt
    return bundle


def _as_words(values: Mapping[str, Any]) -> Iterator[str]:
    for key, value in values.items():
        inner = value if isinstance(value, Mapping) else {}
        yield from (f"{key}.{name}={each}" for name, each in inner.items()) if inner else [f"{key}={value}"]


def run(config: TrainConfig) -> float | None:
    """Trains, and returns the best validation NLL for a sweep to minimise."""
    hydra = HydraConfig.get()
    words = list(hydra.overrides.task)
    config = completed(config, words)
    one_job = hydra.mode == RunMode.MULTIRUN
    if one_job:
        folder = RunFolder(Path(config.out))
        if folder.is_finished and not config.overwrite and not folder.differences(config):
            say(f"{folder.path} is finished already")
            return read_header(folder.bundle).val_nll
    try:
        bundle = fit(config)
    except TrainingError as error:
        if not one_job:
            raise
        say(f"error: {error.of(config.out).line(setting_keys('train'))}", file=sys.stderr)
        # inf below is the worst figure; the other jobs continue
        return math.inf
    if getattr(rank_zero_only, "rank", 0):  # only the first process prints
        return None
    say(f"{config.trainer.keep} model: {bundle}")
    header = read_header(bundle)
    objective = find_objective(header.objective.get("name", NEXT_TOKEN))
    if objective.continues:
        say(f"continue a seed with it: musictx generate my.mid {quote(f'bundle={bundle}')}")
    elif "source" in objective.inputs:
        say(f"accompany a melody with it: musictx accompany my.mid {quote(f'bundle={bundle}')}")
    if RunFolder(bundle.parent).is_unfinished:  # Ctrl-C, and a line said so
        raise KeyboardInterrupt
    return header.val_nll


def completed(config: TrainConfig, words: list[str]) -> TrainConfig:
    """The settings with those of a run to resume and of the store, which a line tells. Raises ConfigError, StoreError
    where `words` contradict them."""
    asked = with_resume(config, words)
    check_words(asked, words)
    config = asked if asked.resume else suited_to_store(asked, words)
    if config != asked and not getattr(rank_zero_only, "rank", 0):
        stretch = f" data.stretch={as_word(config.data.stretch)}" if config.data != asked.data else ""
        name = f"tokenizer={config.tokenizer.name}" if config.tokenizer != asked.tokenizer else ""
        say(f"{name}{stretch}, as the store's music is written".strip())
    return config


COMMAND = Command(
    "train",
    run,
    TrainConfig,
    {
        "data": "performances",
        "tokenizer": "performance",
        "model": "small",
        "attention": "auto",
        "trainer": "cpu",
        "logger": "csv",
        "experiment": None,
    },
    main="data.path",
)
