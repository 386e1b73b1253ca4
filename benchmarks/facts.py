"""Shared by all benchmarks: the machine in words, waiting for a device, memory, medians, a file of results."""

import platform
from statistics import median
from typing import Any

import psutil
import torch

from musictx.errors import ConfigError
from musictx.generate.open_bundle import check_device


def begin(config: Any, at_least_1: tuple[str, ...]) -> str:
    """Checks the device and the numbers and sets the threads; returns the machine in words. Raises ConfigError."""
    check_device(config.device)
    for name in at_least_1:
        value = getattr(config, name)
        if min(value if isinstance(value, list) else [value], default=0) < 1:
            raise ConfigError(name, got=value, allowed="1 or more")
    if config.threads is not None:
        if config.threads < 1:
            raise ConfigError("threads", got=config.threads, allowed="1 or more, or null for all cores")
        torch.set_num_threads(config.threads)
    machine = torch.cuda.get_device_name() if config.device == "cuda" else "CPU"
    versions = f"torch {torch.__version__}, Python {platform.python_version()}"
    return f"{machine}, {torch.get_num_threads()} CPU threads, {versions}"


def wait(device: str) -> None:
    """Waits until the device has finished its work."""
    if device == "cuda":
        torch.cuda.synchronize()


def memory_mb(device: str) -> float:
    """Memory in use now: of this whole process, or of its tensors on a GPU."""
    if device == "cuda":
        return torch.cuda.memory_allocated() / 2**20
    return float(psutil.Process().memory_info().rss / 2**20)


def rates(amount: float, seconds: list[float]) -> tuple[float, str]:
    """Amount per second at the median, and the slowest and fastest in words."""
    return amount / median(seconds), f"{amount / max(seconds):,.1f} … {amount / min(seconds):,.1f}"


def why(error: Exception) -> str:
    """An error as the end of a row."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:120]
