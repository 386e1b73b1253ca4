"""How long whole commands take beside other programs: alone, and with busy processes that want every core; and how long
the page takes to answer Continue.

A fair system gives each thread that wants to run the same share of the cores. A command of one thread on two cores
loses nothing beside one busy process, and takes 2.5 times as long beside four. What it loses beyond that is its own
fault: threads that spin, or that wait for one another. `lost` is that factor; 1 is fair.
"""

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from facts import check_out, versions

from musictx.config.command import Command
from musictx.errors import ConfigError, UserError
from musictx.files import write_json
from musictx.setting import setting
from musictx.system import processor
from musictx.terminal import say
from musictx.threads import usable_cores

COMMANDS = {
    "generate": "generate elise seed_seconds=5 length_seconds=5 out=o overwrite=true",
    "jam": "jam input=elise output=session.mid overwrite=true",
    "train": "train {store} experiment=demo out=run overwrite=true trainer.max_steps=20 trainer.validate_every=20",
}
THREADS = {"train": usable_cores()}  # that want to run at once; the others take one
PAGE = "serve"
# as the page sends it: until the second, new seconds, model, guidance and more, variations
CONTINUE = [None, 2.0, 20.0, 0.0, "chorale", 1.0, 0.95, 2, "", "", 0, 0, 127]


@dataclass
class BenchBesideConfig:
    """musictx benchmarks/beside.py: seconds of whole commands, alone and beside busy processes."""

    store: str = setting(
        "outputs/stores/chorales", "a store of chorales for train: musictx prepare chorales", path=True
    )
    commands: list[str] = setting([*COMMANDS, PAGE], "which of generate, jam, train and serve")
    busy: list[int] = setting([0, 1, 4], "how many busy processes; 0, alone, comes first")
    repeats: int = setting(3, "runs of each")
    out: str | None = setting(None, "a JSON file for the figures; null: none", path=True)


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


Taken = tuple[float, float]  # seconds of wall, and of CPU


def taken(words: list[str], folder: Path) -> Taken:
    """By a whole command. Raises UserError if it fails."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    done = subprocess.run([sys.executable, "-m", "musictx", *words], cwd=folder, capture_output=True, text=True)
    wall, after = perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise UserError(f"musictx {' '.join(words)} has failed: {done.stderr.strip()[-200:]}")
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@contextmanager
def page() -> Iterator[Callable[[], Taken]]:
    """A running page; each call measures one Continue of a new visitor."""
    import psutil

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "musictx", "serve", f"port={port}"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            address = next((line.split()[0] for line in server.stdout or () if line.startswith("http")), None)
            if address is None:
                raise UserError("musictx serve has failed", "run it to see why")
            used = psutil.Process(server.pid).cpu_times

            def answer() -> Taken:
                ask = visitor(address)
                before, start = used(), perf_counter()
                ask("go_on", CONTINUE)
                wall, after = perf_counter() - start, used()
                return wall, after.user + after.system - before.user - before.system

            yield answer
        finally:
            server.send_signal(signal.SIGINT)


def visitor(address: str) -> Callable[[str, Sequence[object]], None]:
    """A visitor of the page who has an example before them; a call presses a button, and ends with the answer."""
    api, session = f"{address}gradio_api/queue", uuid.uuid4().hex
    with urllib.request.urlopen(f"{address}config") as config:
        numbers = {each["api_name"]: each["id"] for each in json.load(config)["dependencies"]}

    def ask(button: str, data: Sequence[object]) -> None:
        body = {"data": data, "fn_index": numbers[button], "session_hash": session}
        header = {"Content-Type": "application/json"}
        urllib.request.urlopen(urllib.request.Request(f"{api}/join", json.dumps(body).encode(), header)).close()
        with urllib.request.urlopen(f"{api}/data?session_hash={session}") as lines:
            messages = [json.loads(line[6:]) for line in lines if line.startswith(b"data: ")]
        if not all(each["success"] for each in messages if each["msg"] == "process_completed"):
            raise UserError(f"the page could not answer {button}")

    ask("safely", [None])
    return ask


@contextmanager
def measured(name: str, words: list[str], folder: Path) -> Iterator[Callable[[], Taken]]:
    """What measures one run."""
    if name != PAGE:
        yield lambda: taken(words, folder)
        return
    with page() as answer:
        yield answer


def share(threads: int, others: int) -> float:
    """The cores that a fair system gives to so many threads beside others."""
    cores = usable_cores()
    return min(threads, cores * threads / (threads + others))


def bench_beside(config: BenchBesideConfig) -> None:
    check_out(config.out)
    if unknown := set(config.commands) - {*COMMANDS, PAGE}:
        raise ConfigError("commands", got=sorted(unknown), allowed=f"some of {', '.join([*COMMANDS, PAGE])}")
    if config.busy[:1] != [0] or min(config.busy) < 0 or config.repeats < 1:
        raise ConfigError("busy", got=config.busy, allowed="0 first, then numbers of processes; repeats=1 or more")
    where = f"{processor()}, {versions()}"
    say(where)
    say(f"{'':<10}{'busy':>6}{'wall s':>9}{'CPU s':>9}{'lost':>7}")
    rows = []
    for name in config.commands:
        said = COMMANDS.get(name, f"{PAGE}, Continue")
        words = said.format(store=os.path.abspath(config.store)).split()
        alone = 0.0
        with TemporaryDirectory() as folder, measured(name, words, Path(folder)) as run:
            for n in config.busy:
                with busy(n):
                    runs = [run() for _ in range(config.repeats)]
                wall, cpu = (median(column) for column in zip(*runs, strict=True))
                alone = alone or wall
                threads = THREADS.get(name, 1)
                lost = wall / alone * share(threads, n) / share(threads, 0)
                command = f"musictx {said.format(store=config.store)}"
                rows.append({"command": command, "busy": n, "runs": runs, "lost": lost})
                say(f"{name:<10}{n:>6}{wall:>9.1f}{cpu:>9.1f}{lost:>7.2f}", flush=True)
    if config.out:
        write_json(Path(config.out), {"where": where, "config": asdict(config), "rows": rows})


COMMAND = Command("bench_beside", bench_beside, BenchBesideConfig)
