"""Files -> pieces on a Dask cluster, this machine's cores or another's. Workers return values; only we write."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from itertools import islice
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from musictx.config import WorkConfig
from musictx.data.recipe import Encoded
from musictx.data.source import Item
from musictx.data.store import Piece
from musictx.data.work.journal import Chunk, Journal, chunks_of
from musictx.data.work.sandbox import Limits, close_all, run_batch
from musictx.errors import ConfigError, MidiError, UserError

Dropped = list[tuple[str, str]]  # (file, reason)
ANSWER_S = 10  # how long a scheduler may take to answer


def encode_all(
    items: Sequence[Item], encode: Callable[[bytes], Encoded], journal: Journal, config: WorkConfig
) -> tuple[list[Piece], Dropped]:
    """Runs `encode` on the bytes of every file; pieces and left-out files in the order given.

    Chunks that the journal holds are not done again. Raises ConfigError for a cluster that cannot be used.
    """
    chunks = chunks_of(items)
    missing = [chunk for chunk in chunks if not journal.done(chunk)]
    if len(missing) < len(chunks):
        done = sum(map(len, chunks)) - sum(map(len, missing))
        print(f"going on from an earlier run: {done} of {len(items)} files are done")
    if missing:
        with cluster(config) as (client, threads), _progress() as progress:
            task = progress.add_task("reading", total=len(items), completed=len(items) - sum(map(len, missing)))
            for chunk, results in _run(client, threads, missing, encode, config):
                journal.write(chunk, results)
                progress.advance(task, len(chunk))
    parts = [journal.read(chunk) for chunk in chunks]
    return [p for pieces, _ in parts for p in pieces], [d for _, dropped in parts for d in dropped]


def _run(
    client: Any, threads: int, chunks: Sequence[Chunk], encode: Callable[[bytes], Encoded], config: WorkConfig
) -> Iterator[tuple[Chunk, list[Encoded]]]:
    """Keeps a few chunks per worker under way, so that memory does not grow with the corpus."""
    from distributed import KilledWorker, as_completed

    limits = Limits(config.file_seconds, config.memory_mb)
    waiting = iter(chunks)
    running: dict[str, tuple[Chunk, list[bytes | str]]] = {}

    def submit(chunk: Chunk) -> Any:
        loaded = [_load(item, config.file_mb) for item in chunk]
        payloads = [data for data in loaded if isinstance(data, bytes)]
        future = client.submit(run_batch, encode, payloads, limits, pure=False)
        running[future.key] = chunk, [data if isinstance(data, str) else b"" for data in loaded]
        return future

    futures: Any = as_completed([submit(chunk) for chunk in islice(waiting, 2 * threads)])  # type: ignore[no-untyped-call]
    for future in futures:
        chunk, loaded = running.pop(future.key)
        try:
            answers = iter(future.result())
        except KilledWorker:
            raise UserError(
                f"a Dask worker died again and again on the {len(chunk)} files from {chunk[0].name} on: "
                "its own log says why; what is done is kept, and the same command goes on from there"
            ) from None
        yield chunk, [data if isinstance(data, str) else next(answers) for data in loaded]
        for chunk in islice(waiting, 1):
            futures.add(submit(chunk))


def _load(item: Item, file_mb: float) -> bytes | str:
    try:
        return item.load(int(file_mb * 2**20))
    except MidiError as error:
        return error.reason


@contextmanager
def cluster(config: WorkConfig) -> Iterator[tuple[Any, int]]:
    """A Dask client and how many tasks run at once: on `config.scheduler`, else one worker per core here.

    Raises ConfigError when the scheduler does not answer, has no workers, or they have another musictx.
    """
    from distributed import Client, LocalCluster

    if config.scheduler is None:
        # the workers are threads that only pass bytes on: each has a reader process of its own
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
    where = f"scheduler={config.scheduler}"
    if not re.fullmatch(r"(tcp|tls|wss?)://\S+:\d+", config.scheduler):
        raise ConfigError(f"{where} is not a Dask address: give one such as tcp://10.0.0.5:8786")
    try:
        client = Client(config.scheduler, timeout=ANSWER_S)  # type: ignore[no-untyped-call]
    except OSError as error:
        raise ConfigError(
            f"{where} does not answer ({type(error).__name__}): start one with `dask scheduler` and give its tcp:// "
            "address, or leave scheduler= out to use this machine"
        ) from None
    with client:
        workers = client.scheduler_info(n_workers=-1)["workers"]
        if not workers:
            raise ConfigError(f"{where} has no workers: start some with `dask worker {config.scheduler}`")
        try:
            versions = set(client.run(_version).values())
        except Exception as error:  # whatever the far side raises on import
            raise ConfigError(f"{where}: its workers cannot import musictx ({error}): install it there") from None
        if versions != {_version()}:
            raise ConfigError(f"{where}: its workers have musictx {', '.join(versions)}, here is {_version()}")
        try:
            yield client, sum(worker["nthreads"] for worker in workers.values())
        finally:
            client.run(close_all)


def _version() -> str:
    return version("musictx")


def cores(workers: int | None) -> int:
    """The number of workers: as asked, or one per core this process may use. Raises ConfigError."""
    if workers is not None and workers < 1:
        raise ConfigError(f"workers={workers}: give 1 or more, or leave it out for one per core")
    return workers or len(os.sched_getaffinity(0))


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )
