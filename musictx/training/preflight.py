"""Checks the settings of a training and refuses impossible ones before anything is written."""

import math
import sys

import torch
from lightning.fabric.plugins.environments.slurm import SLURMEnvironment
from lightning.fabric.plugins.environments.torchelastic import TorchElasticEnvironment

from musictx.config.model import check_settings
from musictx.config.train import TrainConfig, TrainerConfig
from musictx.errors import ConfigError, as_word
from musictx.model.build import KINDS, check_objective
from musictx.objectives import find_objective
from musictx.objectives.classify import Classify
from musictx.objectives.masked import Masked
from musictx.training.optimizer import OPTIMIZERS, SCHEDULES

PRECISIONS = ("32-true", "bf16-mixed", "bf16-true", "16-mixed")
CHOICES = {
    "accelerator": ("cpu", "cuda"),
    "precision": PRECISIONS,
    "optimizer": OPTIMIZERS,
    "strategy": ("auto", "ddp", "fsdp"),
    "schedule": SCHEDULES,
    "keep": ("best", "last"),
}
LEAVE = "leave it out"


def check_trainer(config: TrainConfig) -> None:
    """Raises ConfigError for an unknown or missing accelerator and for numbers out of range. Also for a kind of model,
    an objective or settings of theirs that do not go together."""
    trainer = config.trainer
    for name, known in CHOICES.items():
        if getattr(trainer, name) not in known:
            raise ConfigError(name, got=getattr(trainer, name), allowed=f"one of {', '.join(known)}")
    if trainer.accelerator == "cuda" and not torch.cuda.is_available():
        raise ConfigError("accelerator", got="cuda", why="this machine has no CUDA device", allowed="trainer=cpu")
    if trainer.accelerator == "cpu" and trainer.precision == "16-mixed":  # Lightning would silently take another
        raise ConfigError("precision", got="16-mixed", why="it needs accelerator=cuda", allowed="bf16-mixed or 32-true")
    _check_numbers(config)
    check_settings(config.model)
    _check_model(config)
    _check_windows(config)
    _check_processes(config)


def carries(config: TrainConfig) -> bool:
    """Whether each window starts where the last ended: as set, else wherever model and objective allow it."""
    if config.data.carry is not None:
        return config.data.carry
    return KINDS[config.model.kind].carries and bool(find_objective(config.objective).continuous)


def _check_numbers(config: TrainConfig) -> None:
    """Raises ConfigError for a number outside its limits. NaN is outside all; null means a default."""
    above_0, below_1, most = sys.float_info.min, math.nextafter(1.0, 0.0), sys.float_info.max
    values = vars(config) | vars(config.data) | vars(config.trainer)
    if values["max_steps"] == -1:  # no limit
        values["max_steps"] = None
    for name, low, high, allowed in (
        ("random_seed", 0, 2**32 - 1, "0 to 4294967295"),
        ("lr", above_0, most, "a number above 0"),
        ("weight_decay", 0, most, "0 or a number above it"),
        ("grad_clip", 0, most, "0 (off) or a number above it"),
        ("label_smoothing", 0, below_1, "a share from 0 up to below 1"),
        ("lora_rank", 1, most, "1 or more, or null to learn all weights"),
        ("ema_decay", above_0, below_1, "a share above 0 and below 1, or null for none"),
        ("scheduled_sampling", 0, below_1, "a share from 0 up to below 1"),
        ("hide_source", 0, below_1, "a share from 0 up to below 1"),
        ("warmup_steps", 0, most, "0 or more"),
        ("decay_share", 0, 1, "a share from 0 to 1"),
        ("max_steps", 1, most, "1 or more, or -1"),
        ("validate_every", 1, most, "1 or more, or null for once an epoch"),
        ("patience", 1, most, "1 or more, or null for never"),
        ("sample_every", 1, most, "1 or more, or null for none"),
        ("length", 2, most, "2 or more"),
        ("grow_from", 1, most, "1 or more, or null"),
        ("transpose", 0, most, "0 or more"),
        ("segment", 1, most, "1 or more, or null for whole pieces"),
        ("windows_per_epoch", 1, most, "1 or more, or null for one reading of the split"),
        ("workers", 0, most, "0 or more"),
        *((name, 1, most, "1 or more") for name in FROM_1),
    ):
        if values[name] is not None and not low <= values[name] <= high:
            raise ConfigError(name, got=values[name], allowed=allowed)


FROM_1 = (
    *("max_epochs", "batch_size", "accumulate", "checkpoint_every", "log_every", "devices", "num_nodes"),
    "score_batch_tokens",
)


def _check_model(config: TrainConfig) -> None:
    """Raises ConfigError for what the kind of model or the objective cannot do."""
    trainer, objective, kind = config.trainer, find_objective(config.objective), KINDS[config.model.kind]
    named, asked = f"kind={config.model.kind}", f"objective={config.objective}"
    check_objective(config.model.kind, config.objective, objective)
    if trainer.hide_source and "source" not in objective.inputs:
        raise ConfigError("hide_source", got=trainer.hide_source, why=f"{asked} has no source to hide", hint=LEAVE)
    if trainer.scheduled_sampling and issubclass(objective, Classify | Masked):
        why = f"{asked} guesses what is no input"
        raise ConfigError("scheduled_sampling", got=trainer.scheduled_sampling, why=why, hint=LEAVE)
    if "source" in objective.inputs:
        _check_source(config, getattr(objective, "source_voices", 1), vars(objective).get("target_voices"))
    if trainer.checkpoint_activations and not kind.blocks:
        raise ConfigError("checkpoint_activations", got=True, why=f"{named} has no blocks", hint=LEAVE)
    if trainer.lora_rank is not None and config.init_from is None:
        allowed = "init_from=BUNDLE, or leave it out"
        raise ConfigError("lora_rank", got=trainer.lora_rank, why="it adapts a trained model", allowed=allowed)
    if trainer.lora_rank is not None and not kind.adapters:
        raise ConfigError("lora_rank", got=trainer.lora_rank, why=f"{named} has no blocks to adapt", hint=LEAVE)
    for name in ("grow_from", "carry"):
        if (value := getattr(config.data, name)) and not objective.continuous:
            raise ConfigError(name, got=value, why=f"{asked} needs whole windows", hint=LEAVE)
    if config.data.carry and not kind.carries:
        raise ConfigError("carry", got=True, why=f"{named} has no state to carry", hint=LEAVE)


def _check_source(config: TrainConfig, voices: int, written: int | None) -> None:
    """Raises ConfigError for a model that does not hear the source in steps of so many `voices`, or does not write
    steps of as many as the objective says of a grid."""
    model, asked = config.model, f"objective={config.objective}"
    if voices > 1 and not hasattr(model, "source_voices"):
        why = f"kind={model.kind} hears the voices of its source one by one"
        raise ConfigError("objective", got=config.objective, why=why, allowed="another, or experiment=harmoniser")
    steps = [("source_voices", voices, "its source")]
    if config.tokenizer.name == "chorale" and written is not None:
        steps.append(("target_group", written, "a step of its target"))
    for name, right, of in steps:
        if (got := getattr(model, name, right)) != right:
            n = "one voice" if right == 1 else f"{right} voices"
            raise ConfigError(name, got=got, why=f"{asked} has {n} in {of}", allowed=str(right))


def _check_windows(config: TrainConfig) -> None:
    """Raises ConfigError for a schedule, of the rate or of the windows' length, that cannot be."""
    trainer, first, length = config.trainer, config.data.grow_from, config.data.length
    if trainer.schedule != "hold" and trainer.decay_share != TrainerConfig.decay_share:
        why = f"it is for schedule=hold, not {trainer.schedule}"
        raise ConfigError("decay_share", got=trainer.decay_share, why=why, allowed="schedule=hold, or leave it out")
    if first is None:
        return
    if length not in (first << n for n in range(length.bit_length())):
        why = f"length={length} is not {first}, {2 * first}, {4 * first} …"
        raise ConfigError("grow_from", got=first, why=why, allowed="its half, its quarter and so on, or null")
    if trainer.schedule == "hold" and trainer.decay_share == 0:
        why = "windows grow over the steps of a run, and decay_share=0 is for a run without an end"
        raise ConfigError("grow_from", got=first, why=why, hint="leave one of them out")
    if carries(config):
        raise ConfigError("grow_from", got=first, why="windows that carry a state cannot be cut", hint=LEAVE)


def _check_processes(config: TrainConfig) -> None:
    """Raises ConfigError for processes that nothing starts, and for what cannot be split among them."""
    trainer, kind = config.trainer, config.model.kind
    processes = trainer.devices * trainer.num_nodes
    if processes > 1 and trainer.strategy == "auto":
        why = f"it is for one device, not {processes}"
        raise ConfigError("strategy", got="auto", why=why, allowed="trainer=ddp or trainer=fsdp")
    if processes > 1 and not (TorchElasticEnvironment.detect() or SLURMEnvironment.detect()):
        start = f"start them with `torchrun --nproc-per-node={trainer.devices} -m musictx train …` or srun"
        why = f"with num_nodes={trainer.num_nodes} it takes {processes} processes"
        raise ConfigError("devices", got=trainer.devices, why=why, hint=f"{start}, docs/training.md has both")
    if trainer.strategy != "fsdp":
        return
    if not KINDS[kind].blocks:
        why = f"it splits blocks, and kind={kind} has none"
        raise ConfigError("strategy", got="fsdp", why=why, allowed="trainer=ddp")
    for name, whole in (("optimizer", "adamw"), ("ema_decay", None), ("lora_rank", None)):
        if (value := getattr(trainer, name)) != whole:
            why = "it needs whole matrices, and strategy=fsdp splits them"
            raise ConfigError(name, got=value, why=why, allowed=as_word(whole))
