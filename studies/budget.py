"""CPU seconds as the measure of a training: what a command took, and how many steps fit so many of them."""

import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

PROBE_STEPS = 3, 33  # thirds of them in windows of each length, where windows grow twice


class Spent(NamedTuple):
    cpu_s: float  # of all processes of the command, start included
    ended: bool  # False: it had to be stopped


def musictx(words: list[str], at_most_s: float | None = None) -> Spent:
    """`musictx` with these words on one core, stopped by SIGTERM after so many seconds of the clock. Leaves the script
    when it fails."""
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
    """CPU seconds of two short runs of `PROBE_STEPS`; `train` makes one of so many steps in the folder, which goes."""
    seconds = []
    for steps in PROBE_STEPS:
        seconds.append(train(steps))
        shutil.rmtree(folder)
    return seconds[0], seconds[1]


def steps_within(seconds: float, probes: Sequence[float]) -> int:
    """How many steps fit the seconds, told by those of two short runs."""
    few, more = PROBE_STEPS
    a_step_s = max((probes[1] - probes[0]) / (more - few), 1e-6)
    return max(int((seconds - probes[0]) / a_step_s) + few, 10)
