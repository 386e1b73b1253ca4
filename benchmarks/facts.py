"""Shared by all benchmarks: the machine in words, turns, waiting for a device, the report."""

import os
import platform
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import torch

from musictx.errors import ConfigError
from musictx.generate.open_player import check_device
from musictx.system import processor

LESSER = "ONEDNN_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY"
Turn = Callable[[], float]  # -> seconds


class Contestant(NamedTuple):
    """Who takes turns of so many tokens, beside the contestant of another name: seconds of each turn, or why none."""

    name: str
    tokens: int
    beside: str
    seconds: Sequence[float] = ()
    failed: str = ""


def check_out(out: str | None) -> None:
    """Raises ConfigError for a file that is there, before the long work."""
    if out and Path(out).exists():
        raise ConfigError("out", got=out, why="it exists already", allowed="another")


def begin(config: Any, at_least_1: tuple[str, ...]) -> str:
    """Checks the device, the numbers and the file, and sets the threads; returns the machine in words. Raises
    ConfigError."""
    check_out(config.out)
    check_device(config.device)
    for name in at_least_1:
        value = getattr(config, name)
        if min(value if isinstance(value, list) else [value], default=0) < 1:
            raise ConfigError(name, got=value, allowed="1 or more")
    if config.threads is not None:
        if config.threads < 1:
            raise ConfigError("threads", got=config.threads, allowed="1 or more, or null for all cores")
        torch.set_num_threads(config.threads)
    gpu = f"{torch.cuda.get_device_name()}, " if config.device == "cuda" else ""
    threads = torch.get_num_threads()
    return f"{gpu}{processor()}, {threads} CPU thread{'s' * (threads > 1)}, {versions()}"


def versions() -> str:
    """Those of PyTorch and Python, and the variables by which a processor does less than it could."""
    lesser = " ".join(f"{name}={os.environ[name]}" for name in LESSER if name in os.environ)
    return ", ".join(filter(None, (f"torch {torch.__version__}", f"Python {platform.python_version()}", lesser)))


def wait(device: str) -> None:
    """Waits until the device has finished its work."""
    if device == "cuda":
        torch.cuda.synchronize()


def timed(work: Callable[[], object], device: str) -> float:
    """Seconds until the device has finished the work."""
    wait(device)
    start = perf_counter()
    work()
    wait(device)
    return perf_counter() - start


def compete(rows: Mapping[Contestant, Callable[[], Turn]], repeats: int) -> list[Contestant]:
    """All with their seconds, or why they have none: its function prepares and warms up each, then all take turns."""
    able: dict[Contestant, Turn] = {}
    failed = {}
    for row, prepare in rows.items():
        try:
            able[row] = prepare()
        except (RuntimeError, ImportError, ConfigError) as error:  # out of memory is a RuntimeError
            failed[row] = why(error)
    seconds: dict[Contestant, list[float]] = {row: [] for row in able}
    for _ in range(repeats):
        for row, turn in able.items():
            seconds[row].append(turn())
    return [row._replace(seconds=seconds.get(row, ()), failed=failed.get(row, "")) for row in rows]


def report(rows: Sequence[Contestant]) -> str:
    """One line a contestant: tokens per second at the median, their ratio to the other's, the slowest and fastest."""
    lines = [f"{'':<88}{'tokens/s':>12}{'ratio':>8}   slowest … fastest"]
    rate = {row.name: row.tokens / median(row.seconds) for row in rows if row.seconds}
    for row in rows:
        if row.failed:
            lines.append(f"{row.name:<88}   {row.failed}")
            continue
        times = f"{rate[row.name] / rate[row.beside]:.1f}" if row.beside in rate else "-"
        spread = f"{row.tokens / max(row.seconds):,.1f} … {row.tokens / min(row.seconds):,.1f}"
        lines.append(f"{row.name:<88}{rate[row.name]:>12,.1f}{times:>8}   {spread}")
    return "\n".join(lines)


def why(error: Exception) -> str:
    """An error as the end of a row."""
    if isinstance(error, ModuleNotFoundError):
        return f"{error.name} is not installed: pip install 'musictx[bench]'"
    return " ".join(f"{type(error).__name__}: {error}".split())[:120]
