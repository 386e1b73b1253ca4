"""What only some machines have, and others do without: locks of files, limits of memory, fast kinds of numbers.

Whoever chooses a precision or a number of threads asks `processor()`.
"""

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
from musictx.neighbour import usable_cores
from musictx.terminal import say

try:
    import fcntl
    import resource
except ImportError:  # Windows has neither
    fcntl = resource = None  # type: ignore[assignment]

APART = hasattr(signal, "setitimer")  # whether files are read in a process that can be ended: not on Windows
LIMITS = resource is not None and sys.platform == "linux"  # whether a process can be given a limit of memory


@contextmanager
def locked(path: Path, error: UserError) -> Iterator[None]:
    """Makes a file and locks it for this process; prints a line where files cannot be locked. Raises `error` where
    another process has the lock."""
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
    """The most memory that this process has used; None where the system does not count."""
    if resource is None:
        return None
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used / (2**20 if sys.platform == "linux" else 2**30)  # KiB on Linux, bytes on macOS


def limit_memory(memory_mb: int) -> None:
    """Gives this process so much memory beyond what it has now, and no core file; nothing where `LIMITS` is False."""
    if LIMITS:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with open("/proc/self/statm") as file:
            limit = int(file.read().split()[0]) * resource.getpagesize() + memory_mb * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


ROWS_A_THREAD = 16  # rows whose step a second thread makes no faster; beside other programs it makes it slower


def threads_for(rows: int = 1) -> int:
    """How many threads steps of so many rows need here."""
    return max(min(cores(), rows // ROWS_A_THREAD), 1)


@contextmanager
def few_threads(rows: int = 1) -> Iterator[None]:
    """Within it, PyTorch takes no more threads than steps of so many rows need. For a command, which draws alone: the
    number is one for all threads of a process. Where nothing has imported PyTorch, it does nothing."""
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
    """What the processor of this machine can do, as far as PyTorch and oneDNN use it."""

    name: str
    sets: str  # of instructions: "AVX2", or "AVX512, bfloat16, AMX"
    bfloat16: bool  # whether it multiplies bfloat16; else each product is emulated, and float32 is faster
    int8: bool  # whether PyTorch's kernel of int8 weights is faster here than that of float32
    cores: int  # real ones that this process may use; hyperthreads of a core count once

    def __str__(self) -> str:
        return f"{self.name} ({self.sets}), {self.cores} cores"


ONLY_EMULATED = {"AVX512_CORE", "AVX512_CORE_VNNI"}  # oneDNN has kernels of bfloat16 for these, a fifth as fast


def _most() -> str:
    """The most that a person lets oneDNN use: its variable has two names; "" for all."""
    return (os.environ.get("ONEDNN_MAX_CPU_ISA") or os.environ.get("DNNL_MAX_CPU_ISA") or "").upper()


@cache
def processor() -> Processor:
    """This machine's. ONEDNN_MAX_CPU_ISA and ATEN_CPU_CAPABILITY can make it a lesser one, as a test of what laptops
    do. Imports PyTorch."""
    import platform

    import torch

    able = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    able = able and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    amx = bool(getattr(torch.cpu, "_is_amx_tile_supported", bool)())
    if platform.machine().lower() in ("x86_64", "amd64"):
        native = amx or bool(getattr(torch.cpu, "_is_avx512_bf16_supported", bool)())
        able = able and native and _most() not in ONLY_EMULATED
    amx = able and amx and (_most() in ("", "ALL", "DEFAULT") or "AMX" in _most())
    kernels = torch.backends.cpu.get_cpu_capability()
    sets = [kernels, *(["bfloat16"] if able else []), *(["AMX"] if amx else [])]
    name = _name() or platform.processor() or platform.machine()
    return Processor(name, ", ".join(sets), able, kernels.startswith("AVX"), cores())


def cores() -> int:
    """How many real cores this process may use; hyperthreads of a core count once."""
    import psutil

    return min(_real_cores() or psutil.cpu_count(logical=False) or usable_cores(), usable_cores())


def _real_cores() -> int:
    """How many cores the usable hyperthreads belong to, as Linux says; 0 elsewhere."""
    try:
        threads = os.sched_getaffinity(0)
        return len({Path(f"/sys/devices/system/cpu/cpu{n}/topology/core_cpus_list").read_text() for n in threads})
    except (AttributeError, OSError):
        return 0


def _name() -> str:
    """The name that its maker gave it, as Linux says; "" elsewhere."""
    try:
        named = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        named = None
    return " ".join(named[1].split()) if named else ""
