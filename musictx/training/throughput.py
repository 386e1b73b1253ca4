"""Tokens per second beside the loss, on the progress bar and in the log."""

from time import perf_counter
from typing import Any

import lightning as L
from torch import Tensor


class Throughput(L.Callback):
    """Logs `train/tokens_per_s`: the input tokens of the last `every` batches over the wall time they took.

    The batches are counted across epochs, which may be shorter; time spent validating is not training.
    """

    def __init__(self, every: int = 10) -> None:
        self.every = every

    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        self._restart()

    def on_validation_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        self._seconds += perf_counter() - self._since

    def on_validation_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        self._since = perf_counter()

    def _restart(self) -> None:
        self._tokens, self._batches, self._seconds, self._since = 0, 0, 0.0, perf_counter()

    def on_train_batch_end(
        self,
        trainer: L.Trainer,
        pl_module: L.LightningModule,
        outputs: Any,
        batch: Tensor | list[Tensor],
        batch_idx: int,
    ) -> None:
        ids = batch[0] if isinstance(batch, list) else batch
        self._tokens += ids.shape[0] * (ids.shape[1] - 1)
        self._batches += 1
        if self._batches == self.every:
            rate = self._tokens / (self._seconds + perf_counter() - self._since)
            pl_module.log("train/tokens_per_s", rate, prog_bar=True)
            self._restart()
