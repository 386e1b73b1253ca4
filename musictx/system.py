"""What only some systems have, and others do without: locks of files, reader processes, limits and peaks of memory."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
