"""Files -> pieces on a Dask cluster, on this machine's cores or others'. Workers return values; only we write."""

import logging
import re
from asyncio import CancelledError
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError as FutureCancelled
from contextlib import contextmanager, suppress
from importlib.metadata import version
from itertools import islice
from typing import Any

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress

from musictx.config.prepare import WorkConfig
from musictx.data.parallel.journal import Chunk, Journal, chunks_of
from musictx.data.parallel.sandbox import FileLimits, close_all, run_batch, say_what_is_missing
from musictx.data.recipe import Encoded
from musictx.data.source import Item
from musictx.data.store import Piece
from musictx.errors import ConfigError, MidiError, UserError
from musictx.system import usable_cores

Dropped = list[tuple[str, str]]  # (file, reason)
ANSWER_S = 10  # how long a scheduler may take to answer
PATIENCE_S = 60  # how long it may be without workers


def encode_all(
    items: Sequence[Item], encode: Callable[[bytes], Encoded], journal: Journal, config: WorkConfig
) -> tuple[list[Piece], Dropped]:
    """Runs `encode` on the bytes of files that are not in the journal; returns pieces and left-out files in the given
    order. Raises ConfigError for an unusable cluster."""
    chunks = chunks_of(items)
    missing = [chunk for chunk in chunks if not journal.done(chunk)]
    if len(missing) < len(chunks):
        done = sum(map(len, chunks)) - sum(map(len, missing))
        print(f"resuming an earlier run: {done} of {len(items)} files are done")
    if missing:
        with cluster(config) as (client, threads), _progress() as progress:
            task = progress.add_task("reading", total=len(items), completed=len(items) - sum(map(len, missing)))
            for chunk, results in _run(client, threads, missing, encode, config):
                journal.write(chunk, results)
                progress.advance(task, len(chunk))
    return journal.read(chunks)


def _run(
    client: Any, threads: int, chunks: Sequence[Chunk], encode: Callable[[bytes], Encoded], config: WorkConfig
) -> Iterator[tuple[Chunk, list[Encoded]]]:
    """Keeps a few chunks per worker in progress, so that memory does not grow with the corpus."""
    from distributed import KilledWorker, wait
    from distributed.comm.core import CommClosedError

    limits = FileLimits(config.file_seconds, config.memory_mb)
    waiting = iter(chunks)
    running: dict[Any, Chunk] = {}
    kept = "finished work is kept, and the same command resumes from there"
    lonely = 0  # waits in a row without any worker
    try:
        while True:
            for chunk in islice(waiting, 2 * threads - len(running)):
                payloads = [_load(item, config.file_mb) for item in chunk]
                running[client.submit(run_batch, encode, payloads, limits, pure=False)] = chunk
            if not running:
                return
            try:
                finished = wait(list(running), timeout=ANSWER_S, return_when="FIRST_COMPLETED").done  # type: ignore[no-untyped-call]
            except TimeoutError:
                lonely = 0 if client.nthreads() else lonely + 1
                if lonely * ANSWER_S >= PATIENCE_S:
                    raise UserError("the Dask cluster has no workers left", kept) from None
                continue
            lonely = 0
            for future in finished:
                chunk = running.pop(future)
                yield chunk, future.result()
    except KilledWorker:
        what = f"a Dask worker died repeatedly on the {len(chunk)} files from {chunk[0].name} on, its own log says why"
        raise UserError(what, kept) from None
    except RuntimeError as error:
        if "deserialization of the task graph" not in str(error):
            raise
        raise _refused(config, "it cannot import musictx", "install it there too") from None
    except (CommClosedError, CancelledError, FutureCancelled, ConnectionError) as error:
        raise UserError(f"the Dask cluster is gone ({type(error).__name__})", kept) from None


def _refused(config: WorkConfig, why: str, hint: str = "") -> ConfigError:
    return ConfigError("scheduler", got=config.scheduler, why=why, hint=hint)


def _load(item: Item, file_mb: float) -> bytes | str:
    try:
        return item.load(int(file_mb * 2**20))
    except MidiError as error:
        return error.reason


@contextmanager
def cluster(config: WorkConfig) -> Iterator[tuple[Any, int]]:
    """A Dask client and how many tasks run at once: on `config.scheduler`, else one worker per core here. Raises
    ConfigError when the scheduler does not answer, has no workers, or they have another musictx."""
    from distributed import Client, LocalCluster

    if config.scheduler is None:
        say_what_is_missing()
        # the workers are threads that only pass bytes on: each has its reader process
        count = cores(config.workers)
        with (
            LocalCluster(  # type: ignore[no-untyped-call]
                n_workers=count, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0", memory_limit=0
            ) as local,
            Client(local) as client,  # type: ignore[no-untyped-call]
        ):
            try:
                yield client, count
            finally:
                close_all()
        return
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # we report a failure in one line
    try:
        client = Client(config.scheduler, timeout=ANSWER_S)  # type: ignore[no-untyped-call]
    except OSError as error:
        hint = "start one with `dask scheduler` and give its tcp:// address, or leave it out to use this machine"
        raise _refused(config, f"it does not answer ({type(error).__name__})", hint) from None
    try:
        try:
            client.wait_for_workers(1, timeout=PATIENCE_S)
        except TimeoutError:
            hint = f"start some with `dask worker {config.scheduler}`"
            raise _refused(config, f"it has had no workers for {PATIENCE_S} s", hint) from None
        try:
            versions = set(client.run(versions_here).values())
        except Exception as error:  # importing there may raise anything
            raise _refused(config, f"its workers cannot import musictx ({error})", "install it there") from None
        if versions != {versions_here()}:
            raise _refused(config, f"its workers have {', '.join(versions)}, here is {versions_here()}")
        yield client, sum(client.nthreads().values())  # type: ignore[no-untyped-call]
    finally:
        with suppress(Exception, CancelledError):  # the cluster may be gone
            client.run(close_all)
            client.close()  # type: ignore[no-untyped-call]


def versions_here() -> str:
    """The packages that decide what becomes of a file."""
    return ", ".join(f"{name} {version(name)}" for name in ("musictx", "symusic", "mido", "numpy"))


A_CORE = 16  # most workers a core: each is a process


def check_scheduler(address: str | None) -> None:
    """Raises ConfigError for what is no address of a Dask scheduler."""
    if address is not None and not re.fullmatch(r"(tcp|tls|wss?)://\S+:\d+", address):
        raise ConfigError("scheduler", got=address[:80], allowed="a Dask address, such as tcp://10.0.0.5:8786")


def cores(workers: int | None) -> int:
    """The number of workers: as asked, or one per core this process may use. Raises ConfigError."""
    here = usable_cores()
    if workers is not None and not 1 <= workers <= A_CORE * here:
        allowed = f"1 to {A_CORE * here} on this machine, or leave it out for {here}"
        raise ConfigError("workers", got=workers, allowed=allowed)
    return workers or here


def _progress() -> Progress:
    console = Console(stderr=True)
    columns = *Progress.get_default_columns(), MofNCompleteColumn()
    return Progress(*columns, console=console, disable=console.is_jupyter)  # there a bar needs ipywidgets
