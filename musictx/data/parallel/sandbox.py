"""A separate reader process with limits of time and memory: if a file kills it, we know which file it was."""

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock

import cloudpickle

from musictx.data.parallel.reader import answer
from musictx.data.recipe import Encoded
from musictx.errors import UserError
from musictx.system import APART, LIMITS

START_S = 120  # for starting Python and importing the readers, on a busy machine too


@dataclass(frozen=True)
class FileLimits:
    """The limits for one file."""

    seconds: float
    memory_mb: int


class Sandbox:
    """A running reader process for one function of a file's bytes. Raises UserError when it cannot start."""

    def __init__(self, encode: bytes, limits: FileLimits) -> None:
        self.encode, self.limits = encode, limits
        self._start()

    def _start(self) -> None:
        self.pipe, theirs = multiprocessing.Pipe()
        arguments = map(str, (theirs.fileno(), self.limits.memory_mb, self.limits.seconds))
        quiet = subprocess.DEVNULL
        self.process = subprocess.Popen(
            # -P: import nothing from the current folder
            [sys.executable, "-P", "-m", "musictx.data.parallel.reader", *arguments],
            pass_fds=[theirs.fileno()],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdin=quiet,
            stdout=quiet,
            stderr=quiet,
        )
        theirs.close()
        try:
            self.pipe.send_bytes(self.encode)
            problem = self.pipe.recv() if self.pipe.poll(START_S) else f"no answer in {START_S} s"
        except (EOFError, OSError):
            problem = f"it ended at once: {self._cause_of_death()}"
        if problem:
            self.close()
            raise UserError(f"a reader process could not start: {problem}")

    def run(self, payload: bytes) -> Encoded:
        """The result of one file. If the reader dies, it starts again and the file gets a second try, since the
        cause may lie outside the file."""
        for _ in range(2):
            if self.process.poll() is not None:
                self.close()
                self._start()
            try:
                self.pipe.send_bytes(payload)
                if self.pipe.poll(self.limits.seconds):
                    answer: Encoded = self.pipe.recv()
                    return answer
                self.close()
                return f"takes too long: more than {self.limits.seconds:g} s; file_seconds=… allows more"
            except (EOFError, OSError):
                reason = f"kills its reader: {self._cause_of_death()}"
                self.close()
        return reason

    def close(self) -> None:
        """Ends the reader process."""
        self.pipe.close()
        self.process.kill()
        self.process.wait()

    def _cause_of_death(self) -> str:
        try:
            code = self.process.wait(5)
        except subprocess.TimeoutExpired:
            return "it closed its pipe"
        return signal.Signals(-code).name if code < 0 else f"exit status {code}"


def say_what_is_missing() -> None:
    """Prints which bad files this system cannot stop, if any."""
    if not LIMITS:
        what = "taking too much memory" if APART else "taking too much time or memory, or from ending this program"
        print(f"on this system nothing keeps a bad file from {what}")


_idle: list[Sandbox] = []
_lock = Lock()


def run_batch(encode: Callable[[bytes], Encoded], payloads: Sequence[bytes | str], limits: FileLimits) -> list[Encoded]:
    """The result of each file, from a reader process that outlives the batch, or from this process where no other can
    be ended. A file that could not be loaded is text, the reason, and stays so. Runs on a Dask worker."""
    if not APART:
        return [each if isinstance(each, str) else answer(encode, each, limits.memory_mb) for each in payloads]
    recipe = cloudpickle.dumps(encode)  # carries a tokenizer from a person's own script too
    with _lock:
        sandbox = next((s for s in _idle if (s.encode, s.limits) == (recipe, limits)), None)
        if sandbox:
            _idle.remove(sandbox)
    sandbox = sandbox or Sandbox(recipe, limits)
    try:
        return [each if isinstance(each, str) else sandbox.run(each) for each in payloads]
    finally:
        with _lock:
            _idle.append(sandbox)


def close_all() -> None:
    """Ends the idle reader processes of this Dask worker."""
    with _lock:
        while _idle:
            _idle.pop().close()
