"""Stops a run at a bad loss (NaN, infinite or exploded) or without memory, and says which setting to change."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightning as L
import torch
from torch import Tensor

from musictx.config.train import TrainConfig
from musictx.errors import UserError, counted
from musictx.model.build import KINDS
from musictx.training.module import LanguageModelTraining

EXPLODED = 10  # times the NLL of guessing blindly
FAILED = "failed.pt"


class TrainingError(UserError):
    """The training failed, and more steps would not help."""


@dataclass
class Guard(L.Callback):
    """Checks each loss before it reaches the weights; writes batch and weights of a bad one to `folder/failed.pt`."""

    folder: Path
    vocab_size: int
    validating: bool = False  # whether the exception came in a validation

    def on_train_batch_start(
        self, trainer: L.Trainer, pl_module: L.LightningModule, batch: Any, batch_idx: int
    ) -> None:
        self.batch = batch

    def on_before_backward(self, trainer: L.Trainer, pl_module: L.LightningModule, loss: Tensor) -> None:
        assert isinstance(pl_module, LanguageModelTraining)
        value = float(pl_module.loss)  # `loss` has been divided by the number of batches, and scaled for 16 bits
        if value <= EXPLODED * math.log(self.vocab_size):  # false for NaN
            return
        step, path = trainer.global_step, self.folder / FAILED
        example, *more = self.batch if isinstance(self.batch, list) else [self.batch]
        batch = example._asdict() | ({"fresh": more[0]} if more else {})
        torch.save({"batch": batch, "weights": pl_module.state_dict(), "loss": value, "step": step}, path)
        what = f"has exploded to {value:.1f}" if math.isfinite(value) else f"is {value}"
        raise TrainingError(
            f"the loss {what} at step {step}, its batch and the weights before it are in {path}",
            "lower lr= or grad_clip= and start again with overwrite=true",
        )

    def on_exception(self, trainer: L.Trainer, pl_module: L.LightningModule, exception: BaseException) -> None:
        self.validating = trainer.validating


def less_memory(config: TrainConfig, validating: bool) -> TrainingError:
    """The error for a lack of memory, with the setting to lower and its new value."""
    trainer, data = config.trainer, config.data
    if validating:
        segment = f", then segment={data.length}" if data.segment is None or data.segment > data.length else ""
        hint = f"give score_batch_tokens={max(data.score_batch_tokens // 2, 1)}{segment}"
        return TrainingError(f"out of memory in validation, with {data.score_batch_tokens} ids at once", hint)
    batch = trainer.batch_size
    if batch > 1:
        hint = f"give batch_size={batch // 2} accumulate={trainer.accumulate * 2}"
    elif not trainer.checkpoint_activations and KINDS[config.model.kind].blocks:
        hint = "give checkpoint_activations=true"
    else:
        hint = f"give length={data.length // 2}"
    return TrainingError(f"out of memory, with {counted(batch, 'window')} of {data.length} ids at once", hint)
