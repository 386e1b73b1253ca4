"""Checks the settings of a training before anything is written."""

import math
import sys
from typing import Any

import torch
from lightning.fabric.plugins.environments.slurm import SLURMEnvironment
from lightning.fabric.plugins.environments.torchelastic import TorchElasticEnvironment

from musictx.config.model import check_settings
from musictx.config.train import TrainConfig, TrainerConfig
from musictx.errors import ConfigError
from musictx.model.build import KINDS, check_objective
from musictx.objectives import find_objective
from musictx.training.optimizer import OPTIMIZERS, SCHEDULES
from musictx.training.precision import PRECISIONS, check_precision

CHOICES = {
    "accelerator": ("cpu", "cuda"),
    "precision": PRECISIONS,
    "optimizer": OPTIMIZERS,
    "strategy": ("auto", "ddp"),
    "schedule": SCHEDULES,
    "keep": ("best", "last"),
}


def check_trainer(config: TrainConfig) -> None:
    """Raises ConfigError for a choice, a number or a combination of settings that is impossible."""
    trainer = config.trainer
    for name, choices in CHOICES.items():
        if getattr(trainer, name) not in choices:
            raise ConfigError(name, got=getattr(trainer, name), allowed=f"one of {', '.join(choices)}")
    if trainer.accelerator == "cuda" and not torch.cuda.is_available():
        raise ConfigError("accelerator", got="cuda", why="this machine has no CUDA device", allowed="trainer=cpu")
    check_precision(trainer)
    _check_numbers(config)
    check_settings(config.model)
    _check_model(config)
    _check_processes(config)


def carries(config: TrainConfig) -> bool:
    """Whether each window continues the last: wherever model and objective allow it."""
    return KINDS[config.model.kind].carries and bool(find_objective(config.objective).continuous)


def _check_numbers(config: TrainConfig) -> None:
    """Raises ConfigError for a number outside its limits, as NaN is; null means a default."""
    above_0, below_1, most = sys.float_info.min, math.nextafter(1.0, 0.0), sys.float_info.max
    values = vars(config) | vars(config.data) | vars(config.trainer)
    if values["max_steps"] == -1:  # no limit
        values["max_steps"] = None
    for names, low, high, allowed in (
        ("random_seed", 0, 2**32 - 1, "0 to 4294967295"),
        ("lr", above_0, most, "a number above 0"),
        ("weight_decay grad_clip warmup_steps transpose workers", 0, most, "0 or more"),
        ("hide_source", 0, below_1, "a share from 0 up to below 1"),
        ("decay_share", 0, 1, "a share from 0 to 1"),
        ("ema_decay", above_0, below_1, "a share above 0 and below 1, or null for none"),
        ("length", 2, most, "2 or more"),
        ("max_steps", 1, most, "1 or more, or -1"),
        ("max_epochs validate_every patience sample_every", 1, most, "1 or more, or null"),
        ("batch_size accumulate checkpoint_every log_every", 1, most, "1 or more"),
        ("devices num_nodes score_batch_tokens", 1, most, "1 or more"),
    ):
        for name in names.split():
            if values[name] is not None and not low <= values[name] <= high:
                raise ConfigError(name, got=values[name], allowed=allowed)


def _check_model(config: TrainConfig) -> None:
    """Raises ConfigError for settings that the kind of model, the objective or the schedule cannot meet."""
    trainer, objective, kind = config.trainer, find_objective(config.objective), KINDS[config.model.kind]
    check_objective(config.model.kind, config.objective, objective)
    if "source" in objective.inputs:
        _check_source(config, objective)
    for name, wrong, why in (
        ("hide_source", "source" not in objective.inputs, f"objective={config.objective} has no source to hide"),
        ("checkpoint_activations", not kind.blocks, f"kind={config.model.kind} has no blocks"),
    ):
        if wrong and (value := getattr(trainer, name)):
            raise ConfigError(name, got=value, why=why, hint="leave it out")
    if trainer.schedule != "hold" and trainer.decay_share != TrainerConfig.decay_share:
        why = f"it is for schedule=hold, not {trainer.schedule}"
        raise ConfigError("decay_share", got=trainer.decay_share, why=why, allowed="schedule=hold, or leave it out")


def _check_source(config: TrainConfig, objective: Any) -> None:
    """Raises ConfigError for a model with another number of source or target voices than the objective."""
    model, voices = config.model, {"source_voices": objective.source_voices}
    if not KINDS[model.kind].voices:
        if objective.source_voices > 1:
            why = f"kind={model.kind} hears the voices of its source one by one"
            raise ConfigError("objective", got=config.objective, why=why, allowed="another, or experiment=harmoniser")
        return
    if objective.target_voices is not None:
        voices["target_group"] = objective.target_voices
    for name, right in voices.items():
        if (got := getattr(model, name)) != right:
            why = f"objective={config.objective} has another number of voices"
            raise ConfigError(name, got=got, why=why, allowed=str(right))


def _check_processes(config: TrainConfig) -> None:
    """Raises ConfigError for processes that nothing starts, and for a training that needs one process."""
    trainer = config.trainer
    processes = trainer.devices * trainer.num_nodes
    if processes == 1:
        return
    if trainer.strategy == "auto":
        why = f"it is for one device, not {processes}"
        raise ConfigError("strategy", got="auto", why=why, allowed="trainer=ddp")
    if carries(config):
        why = f"kind={config.model.kind} learns objective={config.objective} in one process, not in {processes}"
        raise ConfigError("devices", got=trainer.devices, why=why, allowed="1")
    if not (TorchElasticEnvironment.detect() or SLURMEnvironment.detect()):
        start = f"start them with `torchrun --nproc-per-node={trainer.devices} -m musictx train …` or srun"
        why = f"with num_nodes={trainer.num_nodes} it takes {processes} processes"
        raise ConfigError("devices", got=trainer.devices, why=why, hint=f"{start}, docs/train/several.md has both")
