"""Progress of a run: a bar in a terminal, else a line at each validation; and tokens per second."""

from collections import deque
from datetime import timedelta
from time import perf_counter
from typing import Any

import lightning as L
import torch
from lightning.pytorch.callbacks import RichProgressBar
from rich.console import Console

from musictx.errors import counted
from musictx.system import peak_gib
from musictx.terminal import say
from musictx.training.module import LanguageModelTraining
from musictx.waiting import Waiting

FIGURES = {"NLL": ("train/loss", "{:.3f}"), "val": ("val/nll", "{:.4f}"), "tok/s": ("train/tokens_per_s", "{:,.0f}")}
BATCHES = 10  # whose speed is shown


class ProgressDisplay(L.Callback):
    """Figures of a run, and the time left by the pace since its start."""

    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        self.start, self.first_step = perf_counter(), trainer.global_step
        super().on_train_start(trainer, pl_module)

    def figures(self, trainer: L.Trainer, training: L.LightningModule) -> dict[str, str]:
        """Name and text of each figure."""
        assert isinstance(training, LanguageModelTraining)
        metrics, total = trainer.progress_bar_metrics, training.total_steps()
        steps = trainer.global_step - self.first_step
        left_s = (perf_counter() - self.start) / steps * (total - trainer.global_step) if steps else None
        figures = {"step": f"{trainer.global_step}/{total}"}
        figures |= {name: form.format(float(metrics[key])) for name, (key, form) in FIGURES.items() if key in metrics}
        figures["lr"] = f"{trainer.optimizers[0].param_groups[0]['lr']:.2e}"
        on_gpu = training.device.type == "cuda"
        memory_gib = torch.cuda.max_memory_allocated(training.device) / 2**30 if on_gpu else peak_gib()
        if memory_gib is not None:
            figures["memory"] = f"{memory_gib:.1f}GiB"
        figures["left"] = "?" if left_s is None else str(timedelta(seconds=round(left_s)))
        return figures


class Bar(ProgressDisplay, RichProgressBar):
    """Lightning's progress bar with the figures of the run."""

    def get_metrics(self, trainer: L.Trainer, pl_module: L.LightningModule) -> dict[str, Any]:
        return dict(self.figures(trainer, pl_module))


class Lines(ProgressDisplay):
    """A line of figures at each validation, and an estimate of the whole time."""

    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        super().on_train_start(trainer, pl_module)
        assert isinstance(pl_module, LanguageModelTraining)
        steps = pl_module.total_steps()
        self.waiting = Waiting(f"training, {counted(steps, 'step')}", steps, trainer.global_step)

    def on_train_batch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if trainer.is_global_zero:
            self.waiting.reach(trainer.global_step)

    def on_validation_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        if trainer.is_global_zero:
            figures = self.figures(trainer, pl_module)
            say(", ".join(f"{name} {value}" for name, value in figures.items()), flush=True)


WIDE = 80  # columns: in fewer the bar's figures would break into many lines


def build_progress() -> L.Callback:
    console = Console()
    in_notebook = console.is_jupyter  # an older rich takes it for a terminal; a bar would need ipywidgets there
    return Bar(refresh_rate=5) if console.is_terminal and console.width >= WIDE and not in_notebook else Lines()


class Throughput(L.Callback):
    """Logs `train/tokens_per_s`: input tokens of the last `BATCHES` of all processes, without validation time."""

    def __init__(self) -> None:
        self.batches: deque[tuple[int, float]] = deque(maxlen=BATCHES)  # (tokens, seconds)

    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        self.since = perf_counter()

    def on_validation_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        self.since = perf_counter()  # a validation comes between two batches

    def on_train_batch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        example, now = batch[0] if isinstance(batch, list) else batch, perf_counter()
        tokens = example.inputs[-1].numel() * trainer.world_size
        self.batches.append((tokens, now - self.since))
        self.since = now
        n, seconds = map(sum, zip(*self.batches, strict=True))
        pl_module.log("train/tokens_per_s", n / seconds, prog_bar=True)
