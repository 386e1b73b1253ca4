"""What only some machines have, and others do without: locks of files, limits of memory, fast kinds of numbers.

Whoever chooses a precision or a number of threads asks `processor()`.
"""

import math
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

try:
    import fcntl
    import resource
except ImportError:  # Windows has neither
    fcntl = resource = None  # type: ignore[assignment]

APART = hasattr(signal, "setitimer")  # whether files are read in a process that can be ended: not on Windows
LIMITS = resource is not None and sys.platform == "linux"  # whether a process can be given a limit of memory


@contextmanager
def locked(path: Path, taken: UserError) -> Iterator[None]:
    """Makes a file and locks it for this process. Raises `taken` if another has it. Where files cannot be locked it
    says so and continues."""
    with open(path, "a") as file:
        try:
            if fcntl is None:
                raise OSError("this system has no such locks")
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise taken from None
        except OSError as error:
            print(f"{path} cannot be locked ({error}): make sure that no other process writes there")
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


def usable_cores() -> int:
    """The cores that this process may use. A container may have a share of a large machine's time."""
    return max(math.ceil(min(_cores_in_sight(), _quota())), 1)


def _cores_in_sight() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


GROUPS = Path("/sys/fs/cgroup")


def _quota() -> float:
    """How many cores' time the container of this process gets; infinite where nothing limits it."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return math.inf
    quota = math.inf
    for _, controllers, place in (line.split(":", 2) for line in lines):
        if controllers and "cpu" not in controllers.split(","):
            continue
        root, names = (GROUPS / "cpu", V1) if controllers else (GROUPS, ("cpu.max",))
        group = root / place.lstrip("/")
        for folder in (group, *group.parents):  # a limit of any group above counts too
            quota = min(quota, _limit(folder, names))
            if folder == root:
                break
    return quota


V1 = "cpu.cfs_quota_us", "cpu.cfs_period_us"  # of groups before their second version


def _limit(group: Path, names: tuple[str, ...]) -> float:
    try:
        quota, period = map(float, " ".join((group / name).read_text() for name in names).split())
    except (OSError, ValueError):  # no such file, or "max"
        return math.inf
    return quota / period if quota > 0 else math.inf


SPINS = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"}  # a person who sets one has decided


def be_a_neighbour() -> None:
    """Lets threads that wait for others sleep, and takes no more of them than there are cores; the environment of a
    person counts more. OpenMP reads this once, when PyTorch is imported.

    By default they spin for some thousandths of a second. Beside other programs each of them spins while another one
    would work: a step then takes 15 times as long. Where PyTorch was imported before musictx it is too late.
    """
    if not SPINS & os.environ.keys():
        os.environ["OMP_WAIT_POLICY"] = "passive"
    if usable_cores() < _cores_in_sight():  # PyTorch counts those in sight
        os.environ.setdefault("OMP_NUM_THREADS", str(usable_cores()))


ROWS_A_THREAD = 16  # rows whose step a second thread makes no faster; beside other programs it makes it slower


@contextmanager
def few_threads(rows: int = 1) -> Iterator[None]:
    """Within it, PyTorch takes no more threads than steps of so many rows need. For a command, which draws alone: the
    number is one for all threads of a process."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(max(min(before, processor().cores, rows // ROWS_A_THREAD), 1))
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

    import psutil
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
    cores = min(_real_cores() or psutil.cpu_count(logical=False) or usable_cores(), usable_cores())
    name = _name() or platform.processor() or platform.machine()
    return Processor(name, ", ".join(sets), able, kernels.startswith("AVX"), cores)


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
