"""Files -> pieces by a pool of threads, each with a reader process; only the main thread writes."""

from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing.pool import ThreadPool
from threading import Event, Lock

from musictx.config.prepare import PrepareConfig
from musictx.data.parallel.journal import Chunk, Journal, chunks_of
from musictx.data.parallel.sandbox import FileLimits, Readers, say_missing_limits
from musictx.data.recipe import Encode, Encoded
from musictx.data.source import Item
from musictx.data.store import Piece
from musictx.errors import ConfigError, MidiError, counted
from musictx.terminal import say
from musictx.threads import usable_cores
from musictx.waiting import Waiting

A_CORE = 16  # most workers a core: each is a process
_loading = Lock()  # an archive gives one file at a time


def encode_all(
    items: Sequence[Item], encode: Encode, journal: Journal, config: PrepareConfig
) -> tuple[list[Piece], list[tuple[str, str]]]:
    """Runs `encode` on the bytes of files that are not in the journal, which keeps each finished chunk; returns pieces,
    and dropped files with reasons, in order."""
    chunks = chunks_of(items)
    missing = [chunk for chunk in chunks if not journal.done(chunk)]
    done = len(items) - sum(map(len, missing))
    if done:
        say(f"resuming an earlier run: {done} of {len(items)} files are done")
    if missing:
        say_missing_limits()
        workers = min(cores(config.workers), len(missing))
        pool, ended, readers = ThreadPool(workers), Event(), Readers()
        try:
            waiting = Waiting(f"reading {counted(len(items), 'file')}", len(items), done, starts=workers)
            read = partial(_read, encode, readers, config)
            for chunk, results in pool.imap_unordered(partial(_read_all, read, ended, waiting), missing):
                journal.write(chunk, results)
        finally:
            ended.set()
            pool.terminate()
            readers.close()
    return journal.read(chunks)


def _read_all(
    read: Callable[[Item], Encoded], ended: Event, waiting: Waiting, chunk: Chunk
) -> tuple[Chunk, list[Encoded]]:
    """The results of a chunk, as many as come before `ended` is set."""
    results = []
    for item in chunk:
        if not ended.is_set():
            results.append(read(item))
            waiting.advance()
    return chunk, results


def _read(encode: Encode, readers: Readers, config: PrepareConfig, item: Item) -> Encoded:
    try:
        with _loading:
            data = item.load(int(config.file_mb * 2**20))
    except MidiError as error:
        return error.reason
    return readers.read(encode, FileLimits(config.file_seconds, config.memory_mb), data, item.name)


def cores(workers: int | None) -> int:
    """The number of workers; None: one per core that this process may use. Raises ConfigError."""
    here = usable_cores()
    if workers is not None and not 1 <= workers <= A_CORE * here:
        allowed = f"1 to {A_CORE * here} on this machine, or leave it out for {here}"
        raise ConfigError("workers", got=workers, allowed=allowed)
    return workers or here
