"""How many cores a process may use, and threads that sleep while they wait. It imports nothing heavy: `import musictx`
asks it, before anything can import PyTorch."""

import os

INFINITE = float("inf")


def usable_cores() -> int:
    """The cores that this process may use. A container may have a share of a large machine's time."""
    share = min(cores_in_sight(), quota())
    return max(-int(-share // 1), 1)  # rounded up


def cores_in_sight() -> int:
    """Those that the system shows to this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


GROUPS = "/sys/fs/cgroup"
V1 = "cpu.cfs_quota_us", "cpu.cfs_period_us"  # of groups before their second version


def quota(here: str = "/proc/self/cgroup") -> float:
    """How many cores' time the container of this process gets; infinite where nothing limits it."""
    found = INFINITE
    for line in _read(here).splitlines():
        _, controllers, place = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        root, names = (f"{GROUPS}/cpu", V1) if controllers else (GROUPS, ("cpu.max",))
        parts = place.strip("/").split("/")
        for n in range(len(parts) + 1):  # a limit of any group above counts too
            found = min(found, _limit("/".join([root, *parts[:n]]), names))
    return found


def _limit(group: str, names: tuple[str, ...]) -> float:
    words = " ".join(_read(f"{group}/{name}") for name in names).split()
    if len(words) != 2 or not words[0].isdecimal():  # no such file, "max", or -1
        return INFINITE
    return int(words[0]) / int(words[1])


def _read(path: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


SPINS = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"}  # a person who sets one has decided


def be_a_neighbour() -> None:
    """Lets threads that wait for others sleep, and takes no more of them than there are cores; the environment of a
    person counts more. OpenMP reads this once, when PyTorch is imported.

    By default they spin for some thousandths of a second. Beside other programs each of them spins while another one
    would work: a step then takes 15 times as long. Where PyTorch was imported before musictx it is too late.
    """
    if not SPINS & os.environ.keys():
        os.environ["OMP_WAIT_POLICY"] = "passive"
    if usable_cores() < cores_in_sight():  # PyTorch counts those in sight
        os.environ.setdefault("OMP_NUM_THREADS", str(usable_cores()))
