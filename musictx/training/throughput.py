"""Tokens per second beside the loss, on the progress bar and in the log."""

from time import perf_counter
from typing import Any

import lightning as L
from torch import Tensor


class Throughput(L.Callback):
    """Logs `train/tokens_per_s`: the input tokens of the last `every` batches over the wall time they took."""

    def __init__(self, every: int = 10) -> None:
        self.every = every

    def on_train_epoch_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        self._restart()

    def on_validation_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        self._restart()  # time spent validating is not training

    def _restart(self) -> None:
        self._tokens, self._batches, self._since = 0, 0, perf_counter()

    def on_train_batch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, outputs: Any, batch: Tensor, batch_idx: int
    ) -> None:
        self._tokens += batch.shape[0] * (batch.shape[1] - 1)
        self._batches += 1
        if self._batches == self.every:
            rate = self._tokens / (perf_counter() - self._since)
            pl_module.log("train/tokens_per_s", rate, prog_bar=True)
            self._restart()
