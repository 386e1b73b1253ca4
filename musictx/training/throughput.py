"""Tokens per second beside the loss, on the progress bar and in the log."""

from collections import deque
from time import perf_counter
from typing import Any

import lightning as L

from musictx.objectives import Example


class Throughput(L.Callback):
    """Logs `train/tokens_per_s`: the input tokens of the last `over` batches, of all processes, over the wall time
    they took. Time spent validating is not training."""

    def __init__(self, over: int = 10) -> None:
        self.batches: deque[tuple[int, float]] = deque(maxlen=over)  # (tokens, seconds)

    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        self.since, self.validating_s = perf_counter(), 0.0

    def on_validation_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        self.validating_since = perf_counter()

    def on_validation_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        self.validating_s += perf_counter() - self.validating_since

    def on_train_batch_end(
        self,
        trainer: L.Trainer,
        pl_module: L.LightningModule,
        outputs: Any,
        batch: Example | list[Any],
        batch_idx: int,
    ) -> None:
        example, now = batch[0] if isinstance(batch, list) else batch, perf_counter()
        tokens = example.inputs[-1].numel() * trainer.world_size
        self.batches.append((tokens, now - self.since - self.validating_s))
        self.since, self.validating_s = now, 0.0
        n, seconds = map(sum, zip(*self.batches, strict=True))
        pl_module.log("train/tokens_per_s", n / seconds, prog_bar=True)
