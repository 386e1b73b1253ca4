"""Usable cores, and a thread policy that is set before PyTorch is imported."""

import os
from math import ceil, inf


def usable_cores() -> int:
    """The number of cores that this process may use."""
    return max(ceil(min(visible_cores(), quota())), 1)


def visible_cores() -> int:
    """The cores that the system shows to this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


GROUPS = "/sys/fs/cgroup"
V1 = "cpu.cfs_quota_us", "cpu.cfs_period_us"  # of groups before their second version


def quota(here: str = "/proc/self/cgroup") -> float:
    """The share of cores that the process's control groups allow, infinite without a limit."""
    cores = inf
    for line in _read(here).splitlines():
        _, controllers, place = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        root, names = (f"{GROUPS}/cpu", V1) if controllers else (GROUPS, ("cpu.max",))
        parts = place.strip("/").split("/")
        for n in range(len(parts) + 1):  # a limit of any group above counts too
            cores = min(cores, _limit("/".join([root, *parts[:n]]), names))
    return cores


def _limit(group: str, names: tuple[str, ...]) -> float:
    words = " ".join(_read(f"{group}/{name}") for name in names).split()
    if len(words) != 2 or not words[0].isdecimal():  # no such file, "max", or -1
        return inf
    return int(words[0]) / int(words[1])


def _read(path: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


SPINS = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"}  # a person who sets one has chosen


def set_thread_policy() -> None:
    """Lets waiting threads sleep, one a usable core, unless the environment says otherwise."""
    # OpenMP reads it once, as PyTorch is imported. By default threads spin, and beside other programs a step takes 15
    # times as long
    if not SPINS & os.environ.keys():
        os.environ["OMP_WAIT_POLICY"] = "passive"
    if usable_cores() < visible_cores():  # PyTorch counts the visible ones
        os.environ.setdefault("OMP_NUM_THREADS", str(usable_cores()))
