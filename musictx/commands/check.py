"""musictx check: prove kernels, training and sampling on your machine, device=cpu or cuda: a report to paste."""

import platform
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import distributions
from itertools import chain
from time import perf_counter

import torch

from musictx.config.command import Command
from musictx.generate.open_player import check_device
from musictx.proof.chorale import steps, training
from musictx.proof.kernels import Outcome, Unable, kernels
from musictx.setting import setting
from musictx.system import processor
from musictx.terminal import say
from musictx.training.run_folder import git_commit

TABLE = "{:<52}{:>10}{:>10}{:>9}  {}"


@dataclass
class CheckConfig:
    """musictx check: check kernels, training and sampling on this machine's device, and print a report to paste."""

    device: str = setting("cpu", "cpu or cuda")


def check(config: CheckConfig) -> None:
    """Runs all checks; exits with status 1 if any has failed. Raises ConfigError."""
    check_device(config.device)
    count = Counter[str]()
    for line in report(config.device, count):
        say(line, flush=True)  # if the process dies, the report so far stays
    if count["FAILED"]:
        sys.exit(1)


def report(device: str, count: Counter[str]) -> Iterator[str]:
    """All lines, each as soon as it is measured. Counts the rows by their state."""
    start, packages = perf_counter(), {each.name: each.version for each in distributions()}
    packages["torch"] = torch.__version__  # which also names the build
    versions = [f"{name} {packages.get(name, 'none')}" for name in ("musictx", "torch", "triton", "lightning", "numpy")]
    yield f"versions  {', '.join(versions)}, Python {platform.python_version()}"
    yield f"commit    {git_commit() or 'none: installed from a package'}"
    yield f"machine   {platform.platform()}, {processor()}, {torch.get_num_threads()} threads"
    gpu = f", {torch.cuda.get_device_name()}, CUDA {torch.version.cuda}" if device == "cuda" else ""
    yield f"device    {device}{gpu}"
    yield TABLE.format("check", "error", "limit", "seconds", "").rstrip()
    for what, measure in chain(training(device), steps(device), kernels(device)):  # the likeliest to hang a GPU last
        yield row(what, measure, count)
    yield ", ".join(f"{count[s]} {s}" for s in ("ok", "FAILED", "not here")) + f"; {perf_counter() - start:.0f} s"


def row(what: str, measure: Callable[[], Outcome], count: Counter[str]) -> str:
    """The line of a check, also for any error but Ctrl-C."""
    start, error, limit = perf_counter(), "-", "-"
    try:
        outcome = measure()
        error, limit, note = f"{outcome.error:.3g}", f"{outcome.limit:.3g}", outcome.note
        state = "ok" if outcome.error <= outcome.limit else "FAILED"  # never ok for NaN
    except Unable as reason:
        state, note = "not here", str(reason)
    except Exception as problem:
        state, note = "FAILED", " ".join(f"{type(problem).__name__}: {problem}".split())[:300]
    count[state] += 1
    return TABLE.format(what, error, limit, f"{perf_counter() - start:.1f}", f"{state}: {note}" if note else state)


COMMAND = Command("check", check, CheckConfig, main="device")
