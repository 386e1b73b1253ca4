"""How long whole commands take beside other programs: alone, and with busy processes that want every core.

A fair system gives each thread that wants to run the same share of the cores. A command of one thread on two cores
loses nothing beside one busy process, and takes 2.5 times as long beside four. What it loses beyond that is its own
fault: threads that spin, or that wait for one another. `lost` is that factor; 1 is fair.
"""

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from facts import versions

from musictx.config.command import Command
from musictx.errors import ConfigError, UserError
from musictx.files import write_json
from musictx.neighbour import usable_cores
from musictx.setting import setting
from musictx.system import processor

COMMANDS = {
    "generate": "generate elise seed_seconds=5 length_seconds=5 out=o overwrite=true",
    "jam": "jam input=elise output=session.mid overwrite=true",
    "train": "train {store} experiment=demo out=run overwrite=true trainer.max_steps=20 trainer.validate_every=20",
}
THREADS = {"train": usable_cores()}  # that want to run at once; the others take one


@dataclass
class BenchBesideConfig:
    """musictx benchmarks/beside.py: seconds of whole commands, alone and beside busy processes."""

    store: str = setting("outputs/stores/chorales", "a store of chorales for train: musictx prepare chorales")
    commands: list[str] = setting([*COMMANDS], "which of generate, jam and train")
    busy: list[int] = setting([0, 1, 4], "how many busy processes; 0, alone, comes first")
    repeats: int = setting(3, "runs of each")
    out: str | None = setting(None, "a JSON file for the figures; null: none")


@contextmanager
def busy(n: int) -> Iterator[None]:
    """Within it, so many processes want a core each."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(n)]
    try:
        yield
    finally:
        for each in running:
            each.kill()
            each.wait()


def taken(words: list[str], folder: Path) -> tuple[float, float]:
    """Seconds of wall and of CPU that a command takes. Raises UserError if it fails."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    done = subprocess.run([sys.executable, "-m", "musictx", *words], cwd=folder, capture_output=True, text=True)
    wall, after = perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise UserError(f"musictx {' '.join(words)} has failed: {done.stderr.strip()[-200:]}")
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def share(threads: int, others: int) -> float:
    """The cores that a fair system gives to so many threads beside others."""
    cores = usable_cores()
    return min(threads, cores * threads / (threads + others))


def bench_beside(config: BenchBesideConfig) -> None:
    if unknown := set(config.commands) - COMMANDS.keys():
        raise ConfigError("commands", got=sorted(unknown), allowed=f"some of {', '.join(COMMANDS)}")
    if config.busy[:1] != [0] or min(config.busy) < 0 or config.repeats < 1:
        raise ConfigError("busy", got=config.busy, allowed="0 first, then numbers of processes; repeats=1 or more")
    where = f"{processor()}, {versions()}"
    print(where)
    print(f"{'':<10}{'busy':>6}{'wall s':>9}{'CPU s':>9}{'lost':>7}")
    rows = []
    with TemporaryDirectory() as folder:
        for name in config.commands:
            words = COMMANDS[name].format(store=os.path.abspath(config.store)).split()
            alone = 0.0
            for n in config.busy:
                with busy(n):
                    runs = [taken(words, Path(folder)) for _ in range(config.repeats)]
                wall, cpu = (median(column) for column in zip(*runs, strict=True))
                alone = alone or wall
                threads = THREADS.get(name, 1)
                lost = wall / alone * share(threads, n) / share(threads, 0)
                rows.append(
                    {
                        "command": f"musictx {COMMANDS[name].format(store=config.store)}",
                        "busy": n,
                        "runs": runs,
                        "lost": lost,
                    }
                )
                print(f"{name:<10}{n:>6}{wall:>9.1f}{cpu:>9.1f}{lost:>7.2f}", flush=True)
    if config.out:
        write_json(Path(config.out), {"where": where, "config": asdict(config), "rows": rows})


COMMAND = Command("bench_beside", bench_beside, BenchBesideConfig)
