"""Checks the settings of a training and refuses impossible ones before anything is written."""

import math
import sys

import torch
from lightning.fabric.plugins.environments.slurm import SLURMEnvironment
from lightning.fabric.plugins.environments.torchelastic import TorchElasticEnvironment

from musictx.config.model import check_settings
from musictx.config.train import TrainConfig, TrainerConfig
from musictx.errors import ConfigError, as_word
from musictx.model.build import KINDS, check_inputs
from musictx.objectives import find_objective
from musictx.training.optimizer import OPTIMIZERS, SCHEDULES

ACCELERATORS = ("cpu", "cuda")
PRECISIONS = ("32-true", "bf16-mixed", "bf16-true", "16-mixed")
STRATEGIES = ("auto", "ddp", "fsdp")
KEPT = ("best", "last")
LEAVE = "leave it out"


def check_trainer(config: TrainConfig) -> None:
    """Raises ConfigError for an unknown or missing accelerator and for numbers out of range. Also for a kind of model,
    an objective or settings of theirs that do not go together."""
    trainer = config.trainer
    for name, choice, known in (
        ("accelerator", trainer.accelerator, ACCELERATORS),
        ("precision", trainer.precision, PRECISIONS),
        ("optimizer", trainer.optimizer, OPTIMIZERS),
        ("strategy", trainer.strategy, STRATEGIES),
        ("schedule", trainer.schedule, SCHEDULES),
        ("keep", trainer.keep, KEPT),
    ):
        if choice not in known:
            raise ConfigError(name, got=choice, allowed=f"one of {', '.join(known)}")
    if trainer.accelerator == "cuda" and not torch.cuda.is_available():
        raise ConfigError("accelerator", got="cuda", why="this machine has no CUDA device", allowed="trainer=cpu")
    if trainer.accelerator == "cpu" and trainer.precision == "16-mixed":  # Lightning would silently take another
        raise ConfigError("precision", got="16-mixed", why="it needs accelerator=cuda", allowed="bf16-mixed or 32-true")
    _check_numbers(config)
    check_settings(config.model)
    _check_objective(config)
    _check_together(config)


def carries(config: TrainConfig) -> bool:
    """Whether each window starts where the last ended: as set, else wherever model and objective allow it."""
    if config.data.carry is not None:
        return config.data.carry
    return KINDS[config.model.kind].carries and bool(find_objective(config.objective).continuous)


def _check_objective(config: TrainConfig) -> None:
    objective = find_objective(config.objective)
    check_inputs(config.model.kind, config.objective, objective.inputs)
    if config.trainer.hide_source and "source" not in objective.inputs:
        why = f"objective={config.objective} has no source to hide"
        raise ConfigError("hide_source", got=config.trainer.hide_source, why=why, hint=LEAVE)
    if not objective.continuous:
        for name, value in (("grow_from", config.data.grow_from), ("carry", config.data.carry)):
            if value:
                why = f"objective={config.objective} needs whole windows"
                raise ConfigError(name, got=value, why=why, hint=LEAVE)


def _check_numbers(config: TrainConfig) -> None:
    trainer, data = config.trainer, config.data
    above_0, below_1, most = sys.float_info.min, math.nextafter(1.0, 0.0), sys.float_info.max
    for name, value, low, high, allowed in (  # NaN is outside all limits; null means a default
        ("random_seed", config.random_seed, 0, 2**32 - 1, "0 to 4294967295"),
        ("lr", trainer.lr, above_0, most, "a number above 0"),
        ("weight_decay", trainer.weight_decay, 0, most, "0 or a number above it"),
        ("grad_clip", trainer.grad_clip, 0, most, "0 (off) or a number above it"),
        ("label_smoothing", trainer.label_smoothing, 0, below_1, "a share from 0 up to below 1"),
        ("lora_rank", trainer.lora_rank, 1, most, "1 or more, or null to learn all weights"),
        ("ema_decay", trainer.ema_decay, above_0, below_1, "a share above 0 and below 1, or null for none"),
        ("scheduled_sampling", trainer.scheduled_sampling, 0, below_1, "a share from 0 up to below 1"),
        ("hide_source", trainer.hide_source, 0, below_1, "a share from 0 up to below 1"),
        ("warmup_steps", trainer.warmup_steps, 0, most, "0 or more"),
        ("decay_share", trainer.decay_share, 0, 1, "a share from 0 to 1"),
        ("max_steps", None if trainer.max_steps == -1 else trainer.max_steps, 1, most, "1 or more, or -1"),
        ("max_epochs", trainer.max_epochs, 1, most, "1 or more"),
        ("batch_size", None if trainer.batch_size == "auto" else trainer.batch_size, 1, most, "1 or more, or auto"),
        ("accumulate", trainer.accumulate, 1, most, "1 or more"),
        ("validate_every", trainer.validate_every, 1, most, "1 or more, or null for once an epoch"),
        ("checkpoint_every", trainer.checkpoint_every, 1, most, "1 or more"),
        ("sample_every", trainer.sample_every, 1, most, "1 or more, or null for none"),
        ("log_every", trainer.log_every, 1, most, "1 or more"),
        ("devices", trainer.devices, 1, most, "1 or more"),
        ("num_nodes", trainer.num_nodes, 1, most, "1 or more"),
        ("length", data.length, 2, most, "2 or more"),
        ("grow_from", data.grow_from, 1, most, "1 or more, or null"),
        ("transpose", data.transpose, 0, most, "0 or more"),
        ("segment", data.segment, 1, most, "1 or more, or null for whole pieces"),
        ("windows_per_epoch", data.windows_per_epoch, 1, most, "1 or more, or null for one reading of the split"),
        ("score_batch_tokens", data.score_batch_tokens, 1, most, "1 or more"),
        ("workers", data.workers, 0, most, "0 or more"),
    ):
        if isinstance(value, str) or (value is not None and not low <= value <= high):
            raise ConfigError(name, got=value, allowed=allowed)


def _check_together(config: TrainConfig) -> None:
    """Raises ConfigError for settings that exclude each other."""
    trainer, name = config.trainer, config.model.kind
    kind = KINDS[name]
    processes = trainer.devices * trainer.num_nodes
    if config.data.carry and not kind.carries:
        raise ConfigError("carry", got=True, why=f"kind={name} has no state to carry", hint=LEAVE)
    first, length = config.data.grow_from, config.data.length
    if first is not None and length not in (first << n for n in range(length.bit_length())):
        why = f"length={length} is not {first}, {2 * first}, {4 * first} …"
        raise ConfigError("grow_from", got=first, why=why, allowed="its half, its quarter and so on, or null")
    if first is not None and trainer.schedule == "hold" and trainer.decay_share == 0:
        why = "windows grow over the steps of a run, and decay_share=0 is for a run without an end"
        raise ConfigError("grow_from", got=first, why=why, hint="leave one of them out")
    if trainer.schedule != "hold" and trainer.decay_share != TrainerConfig.decay_share:
        why = f"it is for schedule=hold, not {trainer.schedule}"
        raise ConfigError("decay_share", got=trainer.decay_share, why=why, allowed="schedule=hold, or leave it out")
    if first is not None and carries(config):
        raise ConfigError("grow_from", got=first, why="windows that carry a state cannot be cut", hint=LEAVE)
    if trainer.checkpoint_activations and not kind.blocks:
        raise ConfigError("checkpoint_activations", got=True, why=f"kind={name} has no blocks", hint=LEAVE)
    rank = trainer.lora_rank
    if rank is not None and config.init_from is None:
        why = "it adapts a trained model"
        raise ConfigError("lora_rank", got=rank, why=why, allowed="init_from=BUNDLE, or leave it out")
    if rank is not None and not kind.adapters:
        raise ConfigError("lora_rank", got=rank, why=f"kind={name} has no blocks to adapt", hint=LEAVE)
    alone = f"it is for one device, not {processes}"
    if processes > 1 and trainer.strategy == "auto":
        raise ConfigError("strategy", got="auto", why=alone, allowed="trainer=ddp or trainer=fsdp")
    if processes > 1 and not (TorchElasticEnvironment.detect() or SLURMEnvironment.detect()):
        start = f"start them with `torchrun --nproc-per-node={trainer.devices} -m musictx train …` or srun"
        why = f"with num_nodes={trainer.num_nodes} it takes {processes} processes"
        raise ConfigError("devices", got=trainer.devices, why=why, hint=f"{start}, docs/training.md has both")
    if trainer.strategy == "fsdp":
        if not kind.blocks:
            why = f"it splits blocks, and kind={name} has none"
            raise ConfigError("strategy", got="fsdp", why=why, allowed="trainer=ddp")
        for setting, value, none in (
            ("optimizer", trainer.optimizer, "adamw"),
            ("ema_decay", trainer.ema_decay, None),
            ("lora_rank", rank, None),
        ):
            if value != none:
                why = "it needs whole matrices, and strategy=fsdp splits them"
                raise ConfigError(setting, got=value, why=why, allowed=as_word(none))
    if trainer.batch_size == "auto" and trainer.accelerator != "cuda":
        raise ConfigError("batch_size", got="auto", why="it is for CUDA", allowed="a number, to begin with 8")
    if trainer.batch_size == "auto" and processes > 1:
        raise ConfigError("batch_size", got="auto", why=alone, allowed="the number that one device finds")
