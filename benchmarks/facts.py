"""Shared by all benchmarks: the machine in words, turns, waiting for a device, memory, medians."""

import platform
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from time import perf_counter
from typing import Any, TypeVar

import psutil
import torch

from musictx.errors import ConfigError
from musictx.generate.open_bundle import check_device

K = TypeVar("K")
Turn = Callable[[], float]  # -> seconds


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


def rates(amount: float, seconds: Sequence[float]) -> tuple[float, str]:
    """Amount per second at the median, and the slowest and fastest in words."""
    return amount / median(seconds), f"{amount / max(seconds):,.1f} … {amount / min(seconds):,.1f}"


def timed(work: Callable[[], object], device: str) -> float:
    """Seconds until the device has finished the work."""
    wait(device)
    start = perf_counter()
    work()
    wait(device)
    return perf_counter() - start


def take_turns(prepare: Mapping[K, Callable[[], Turn]], repeats: int) -> tuple[dict[K, list[float]], dict[K, str]]:
    """Seconds of all that take turns, and why the others cannot: each is prepared and warmed up by its function."""
    able: dict[K, Turn] = {}
    failed = {}
    for key, make in prepare.items():
        try:
            able[key] = make()
        except (RuntimeError, ImportError, ConfigError) as error:  # out of memory is a RuntimeError
            failed[key] = why(error)
    seconds: dict[K, list[float]] = {key: [] for key in able}
    for _ in range(repeats):
        for key, turn in able.items():
            seconds[key].append(turn())
    return seconds, failed


def why(error: Exception) -> str:
    """An error as the end of a row."""
    if isinstance(error, ModuleNotFoundError):
        return f"{error.name} is not installed: pip install 'musictx[bench]'"
    return " ".join(f"{type(error).__name__}: {error}".split())[:120]
