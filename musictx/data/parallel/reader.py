"""The reader process, `python -m musictx.data.parallel.reader FD MEMORY_MB SECONDS`: bytes in, results out."""

import pickle
import signal
import sys
from multiprocessing.connection import Connection

from musictx.system import LIMITS, limit_memory

IDLE_S = 600  # an idle reader ends after this


def main(fd: int, memory_mb: int, seconds: float) -> None:
    """Answers requests from the pipe until the other side closes it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the other side
    connection = Connection(fd)
    try:
        encode = pickle.loads(connection.recv_bytes())  # from our own parent; imports the readers
    except Exception as error:
        connection.send(f"{type(error).__name__}: {error}")
        return
    connection.send(None)
    limit_memory(memory_mb)
    while connection.poll(IDLE_S):
        try:
            of = connection.recv()  # from our own parent too
        except EOFError:
            return
        signal.setitimer(signal.ITIMER_REAL, 2 * seconds)  # ends a reader whose parent is gone too
        connection.send(answer(encode, memory_mb, *of))
        signal.setitimer(signal.ITIMER_REAL, 0)


def answer(encode, memory_mb: int, *of):  # type: ignore[no-untyped-def]
    """The result of one file, or the reason for none."""
    try:
        return encode(*of)
    except MemoryError:
        more = f": more than {memory_mb} MB; memory_mb=… allows more" if LIMITS else ""
        return f"needs too much memory{more}"
    except Exception as error:  # one file never stops the others: the manifest lists it with its error
        return f"unexpected error, please report it: {type(error).__name__}: {' '.join(str(error).split())[:200]}"


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
