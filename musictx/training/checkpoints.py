"""The checkpoints of a run: it resumes from `last.ckpt`, and its best so far, `best.ckpt`, becomes the bundle."""

import math
import os
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import lightning as L
import torch
from lightning.pytorch.plugins.io import TorchCheckpointIO
from torch import Tensor

from musictx.files import replacing
from musictx.training.failure import TrainingError

LAST, BEST = "last.ckpt", "best.ckpt"


class WholeFiles(TorchCheckpointIO):
    """Writes a checkpoint whole or not at all, even in a power cut or on a full disk."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        content = BytesIO()  # torch would hide why a write to a file failed
        torch.save(checkpoint, content)
        with replacing(Path(path)) as partial, open(partial, "wb") as file:
            file.write(content.getbuffer())
            file.flush()
            os.fsync(file.fileno())


PARTS = {"state_dict", "loops", "callbacks", "optimizer_states", "lr_schedulers", "pytorch-lightning_version"}


def check_whole(path: Path) -> None:
    """Raises TrainingError for a checkpoint with a wrong checksum or a missing part."""
    try:
        with zipfile.ZipFile(path) as file:
            defect = file.testzip()
        if defect is None and PARTS - set(torch.load(path, "cpu", weights_only=True, mmap=True)):
            defect = "it has no training"
    except Exception as error:  # of damage, both readers can make anything
        defect = f"{type(error).__name__} while it was read"
    if defect is not None:
        raise damage_error(path, defect)


def step_of(path: Path) -> int:
    """The number of optimizer steps before a checkpoint."""
    return int(torch.load(path, "cpu", weights_only=True, mmap=True)["global_step"])


def damage_error(path: Path, how: str) -> TrainingError:
    """The error for a damaged checkpoint."""
    hint = "put back a copy, or remove it and the same command starts the run again"
    return TrainingError(f"{path} is damaged ({how})", hint)


class Checkpoints(L.Callback):
    """Saves after a whole optimizer step, or after the validation that follows it; `keep` is "best" or "last".

    Lightning's ModelCheckpoint saves before a validation, which a resumed run then skips. It accepts NaN as a score,
    and forgets the best when the folder moves.
    """

    def __init__(self, folder: Path, every: int, keep: str) -> None:
        self.folder, self.every, self.keep = folder, every, keep
        self.last, self.best = folder / LAST, folder / BEST
        self.best_nll: float | None = None
        self.step = self.saved = 0  # optimizer steps so far, and at the last checkpoint

    def state_dict(self) -> dict[str, Any]:
        return {"best_nll": self.best_nll, "step": self.step}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.best_nll = state_dict["best_nll"]
        self.step = self.saved = state_dict["step"]

    def on_train_batch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, outputs: Any, batch: Tensor, batch_idx: int
    ) -> None:
        stepped, self.step = trainer.global_step > self.step, trainer.global_step
        assert isinstance(trainer.val_check_batch, int)
        validates = (trainer.fit_loop.total_batch_idx + 1) % trainer.val_check_batch == 0
        ends = batch_idx + 1 == trainer.num_training_batches or 0 < trainer.max_steps <= trainer.global_step
        if stepped and not validates and not ends and self._due(trainer):
            self.save(trainer)

    def on_validation_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        nll = float(trainer.callback_metrics["val/nll"])
        if not math.isfinite(nll):
            what = f"the validation NLL is {nll} after step {trainer.global_step}, and no bundle is written"
            raise TrainingError(what, "lower lr= and start again with overwrite=true")
        if self.best_nll is None or nll < self.best_nll or self.keep == "last":
            self.best_nll = nll
            trainer.save_checkpoint(self.best)
        if not trainer.fit_loop._should_accumulate():  # no gradients of half a step are in checkpoints
            self.save(trainer)

    def _due(self, trainer: L.Trainer) -> bool:
        # several processes get the signal at different times and could not agree on a step
        stopping = trainer.received_sigterm and trainer.world_size == 1
        return stopping or self.step >= self.saved + self.every

    def save(self, trainer: L.Trainer) -> None:
        """Writes the checkpoint that a stopped run resumes from."""
        self.saved = self.step
        trainer.save_checkpoint(self.last)
