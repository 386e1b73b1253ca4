"""Measures trainings in CPU seconds: what a command took, and how many steps fit a budget."""

import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

PROBE_STEPS = 3, 33  # multiples of three: where windows grow twice, a third of them at each length


class Spent(NamedTuple):
    cpu_s: float  # all processes of the command, start included
    ended: bool  # False: the script stopped it


def musictx(words: list[str], at_most_s: float | None = None) -> Spent:
    """Runs `musictx` with these words on one core, and stops it by SIGTERM after so many seconds of wall time. Exits
    the script if it fails."""
    print("$ musictx", *words, flush=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen([sys.executable, "-m", "musictx", *words], env=os.environ | {"OMP_NUM_THREADS": "1"})
    try:
        status = process.wait(at_most_s)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGTERM)
        process.wait()
        status = None
    if status:
        sys.exit(status)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Spent(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, status is not None)


def probe(folder: Path, train: Callable[[int], float]) -> tuple[float, float]:
    """CPU seconds of two short runs of `PROBE_STEPS`; `train` makes one of so many steps in the folder, which is then
    removed."""
    seconds = []
    for steps in PROBE_STEPS:
        seconds.append(train(steps))
        shutil.rmtree(folder)
    return seconds[0], seconds[1]


def steps_within(seconds: float, probes: Sequence[float]) -> int:
    """How many steps fit the seconds, by the times of two short runs."""
    few, more = PROBE_STEPS
    a_step_s = max((probes[1] - probes[0]) / (more - few), 1e-6)
    return max(int((seconds - probes[0]) / a_step_s) + few, 10)
