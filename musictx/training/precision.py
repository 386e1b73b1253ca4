"""The precision of a training, and its cost where the processor only emulates bfloat16."""

from time import perf_counter

import torch
from torch import nn

from musictx.config.train import TrainerConfig
from musictx.errors import ConfigError
from musictx.model.cells import lacks_cells
from musictx.system import processor

PRECISIONS = ("32-true", "bf16-mixed", "bf16-true", "16-mixed")


def check_precision(trainer: TrainerConfig, model: nn.Module | None = None) -> None:
    """Raises ConfigError for a precision that a CPU cannot train in, with any model or with `model`."""
    if trainer.accelerator != "cpu":
        return
    if trainer.precision == "16-mixed":  # Lightning would silently take another
        raise ConfigError("precision", got="16-mixed", why="it needs accelerator=cuda", allowed="bf16-mixed or 32-true")
    if trainer.precision == "bf16-true" and model is not None and (why := lacks_cells(model)):
        raise ConfigError("precision", got="bf16-true", why=why, allowed="bf16-mixed or 32-true")


def emulation(trainer: TrainerConfig) -> str:
    """A line on the cost of emulated bfloat16; "" where the processor has it."""
    if trainer.accelerator != "cpu" or not trainer.precision.startswith("bf16") or processor().bfloat16:
        return ""
    times = _seconds(torch.bfloat16) / _seconds(torch.float32)
    advice = "; trainer.precision=32-true is faster" if times > 1.2 else ""
    return (
        f"trainer.precision={trainer.precision}: this processor ({processor().sets}) only emulates bfloat16. A matrix "
        f"product takes {times:.1f} times as long as in float32{advice}"
    )


def _seconds(dtype: torch.dtype) -> float:
    """The time of one matrix product, the shortest of nine."""
    x, weight = torch.ones(512, 256, dtype=dtype), torch.ones(1024, 256, dtype=dtype)
    times_s = []
    for _ in range(10):  # the first prepares the kernel
        start = perf_counter()
        nn.functional.linear(x, weight)
        times_s.append(perf_counter() - start)
    return min(times_s[1:])
