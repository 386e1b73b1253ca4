"""Differences between machines: locks, limits of memory, number formats, cores."""

import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

from musictx.errors import UserError
from musictx.terminal import say
from musictx.threads import usable_cores

try:
    import fcntl
    import resource
except ImportError:  # Windows has neither
    fcntl = resource = None  # type: ignore[assignment]

APART = hasattr(signal, "setitimer")  # whether files are read in a process that can be ended: not on Windows
LIMITS = resource is not None and sys.platform == "linux"  # whether a process can be given a limit of memory


@contextmanager
def locked(path: Path, error: UserError) -> Iterator[None]:
    """Locks a file, or prints a line where the system cannot. Raises `error` where another process has it."""
    with open(path, "a") as file:
        try:
            if fcntl is None:
                raise OSError("this system has no such locks")
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise error from None
        except OSError as reason:
            say(f"{path} cannot be locked ({reason}): make sure that no other process writes there")
        yield


def peak_gib() -> float | None:
    """This process's peak memory; None on Windows."""
    if resource is None:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "linux" else 2**30)  # KiB on Linux, bytes on macOS


def limit_memory(memory_mb: int) -> None:
    """Limits this process to so much more memory, where `LIMITS` is true."""
    if LIMITS:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with open("/proc/self/statm") as file:
            limit = int(file.read().split()[0]) * resource.getpagesize() + memory_mb * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


ROWS_A_THREAD = 16  # rows whose step a second thread makes no faster; beside other programs it makes it slower


def threads_for(rows: int = 1) -> int:
    """The number of threads for steps of so many rows."""
    return max(min(cores(), rows // ROWS_A_THREAD), 1)


@contextmanager
def few_threads(rows: int = 1) -> Iterator[None]:
    """Limits PyTorch, if it is imported, to the threads for steps of so many rows."""
    if (torch := sys.modules.get("torch")) is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(min(before, threads_for(rows)))
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Processor(NamedTuple):
    """The processor as PyTorch and oneDNN use it."""

    name: str
    sets: str  # of instructions: "AVX2", or "AVX512, bfloat16, AMX"
    bfloat16: bool  # in hardware; else each product is emulated, and float32 is faster
    int8: bool  # whether PyTorch's kernel of int8 weights is faster than that of float32
    cores: int  # usable ones; hyperthreads of a core count once

    def __str__(self) -> str:
        return f"{self.name} ({self.sets}), {self.cores} cores"


ONLY_EMULATED = {"AVX512_CORE", "AVX512_CORE_VNNI"}  # oneDNN has kernels of bfloat16 for these, a fifth as fast


def _isa_limit() -> str:
    """The person's limit on oneDNN's instruction sets; "" for none."""
    return (os.environ.get("ONEDNN_MAX_CPU_ISA") or os.environ.get("DNNL_MAX_CPU_ISA") or "").upper()


@cache
def processor() -> Processor:
    """This machine's processor, as ONEDNN_MAX_CPU_ISA and ATEN_CPU_CAPABILITY limit it. Imports PyTorch."""
    import platform

    import torch

    bfloat16 = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    bfloat16 = bfloat16 and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    amx = bool(getattr(torch.cpu, "_is_amx_tile_supported", bool)())
    if platform.machine().lower() in ("x86_64", "amd64"):
        native = amx or bool(getattr(torch.cpu, "_is_avx512_bf16_supported", bool)())
        bfloat16 = bfloat16 and native and _isa_limit() not in ONLY_EMULATED
    amx = bfloat16 and amx and (_isa_limit() in ("", "ALL", "DEFAULT") or "AMX" in _isa_limit())
    kernels = torch.backends.cpu.get_cpu_capability()
    sets = [kernels, *(["bfloat16"] if bfloat16 else []), *(["AMX"] if amx else [])]
    name = _processor_name() or platform.processor() or platform.machine()
    return Processor(name, ", ".join(sets), bfloat16, kernels.startswith("AVX"), cores())


def cores() -> int:
    """The number of usable cores; hyperthreads of a core count once."""
    import psutil

    return min(_real_cores() or psutil.cpu_count(logical=False) or usable_cores(), usable_cores())


def _real_cores() -> int:
    """The number of cores of the usable hyperthreads on Linux; 0 elsewhere."""
    try:
        threads = os.sched_getaffinity(0)
        return len({Path(f"/sys/devices/system/cpu/cpu{n}/topology/core_cpus_list").read_text() for n in threads})
    except (AttributeError, OSError):
        return 0


def _processor_name() -> str:
    """The processor's name on Linux; "" elsewhere."""
    try:
        match = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        match = None
    return " ".join(match[1].split()) if match else ""
