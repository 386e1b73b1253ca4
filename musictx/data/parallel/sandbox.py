"""Reader processes with limits of time and memory.

Each has its own pipe: in the pools of libraries, which share one, a reader that dies while it answers stops all.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from threading import Lock
from typing import Any, NamedTuple

import cloudpickle

from musictx.data.parallel.reader import answer
from musictx.data.recipe import Encoded
from musictx.errors import UserError
from musictx.system import APART, LIMITS
from musictx.terminal import say

KILLS = "kills its reader"
ENDED = "the work was ended"
START_S = 120  # for starting Python and importing the readers, on a busy machine too


class FileLimits(NamedTuple):
    """The limits for one file."""

    seconds: float
    memory_mb: int


class Sandbox:
    """A reader process for one function of a file. Raises UserError where it cannot start."""

    def __init__(self, encode: Callable[..., Encoded], limits: FileLimits) -> None:
        self.encode, self.limits, self.ended = encode, limits, False
        recipe = cloudpickle.dumps(encode)  # carries a tokenizer from a person's own script too
        self.pipe, theirs = multiprocessing.Pipe()
        quiet, arguments = subprocess.DEVNULL, map(str, (theirs.fileno(), limits.memory_mb, limits.seconds))
        self.process = subprocess.Popen(
            # -P: run no file of the current folder
            [sys.executable, "-P", "-m", "musictx.data.parallel.reader", *arguments],
            pass_fds=[theirs.fileno()],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdin=quiet,
            stdout=quiet,
            stderr=quiet,
        )
        theirs.close()
        try:
            self.pipe.send_bytes(recipe)
            problem = self.pipe.recv() if self.pipe.poll(START_S) else f"no answer in {START_S} s"
        except (EOFError, OSError):
            problem = f"it ended at once: {self._cause_of_death()}"
        if problem:
            self.close()
            raise UserError(f"a reader process could not start: {problem}")

    def run(self, *of: Any) -> Encoded:
        """The result of one file, or the reason of the reader's end."""
        try:
            self.pipe.send(of)
            if self.pipe.poll(self.limits.seconds):
                result: Encoded = self.pipe.recv()
                return result
            reason = f"takes too long: more than {self.limits.seconds:g} s; file_seconds=… allows more"
        except (EOFError, OSError):
            reason = ENDED if self.ended else f"{KILLS}: {self._cause_of_death()}"
        self.close()
        return reason

    def close(self) -> None:
        self.pipe.close()
        self.process.kill()
        self.process.wait()

    def _cause_of_death(self) -> str:
        try:
            code = self.process.wait(5)
        except subprocess.TimeoutExpired:
            return "it closed its pipe"
        return signal.Signals(-code).name if code < 0 else f"exit status {code}"


def say_missing_limits() -> None:
    """Prints a warning on a system without limits of time or memory."""
    if not LIMITS:
        what = "taking too much memory" if APART else "taking too much time or memory, or from ending this program"
        say(f"on this system nothing keeps a bad file from {what}")


class Readers:
    """The reader processes of a preparation or a page, which threads share."""

    def __init__(self) -> None:
        self._idle: list[Sandbox] = []
        self._running: set[Sandbox] = set()  # those that read
        self._lock = Lock()
        self._closed = False

    def read(self, encode: Callable[..., Encoded], limits: FileLimits, *of: Any) -> Encoded:
        """The result of one file, from a reader process, or from this one where the system can end no other."""
        if not APART:
            here: Encoded = answer(encode, limits.memory_mb, *of)
            return here
        result = self._read_once(encode, limits, *of)
        died = isinstance(result, str) and result.startswith(KILLS)  # perhaps not by this file: a second try
        return self._read_once(encode, limits, *of) if died else result

    def close(self) -> None:
        """Ends all reader processes; no more files are read."""
        with self._lock:
            self._closed = True
            while self._idle:
                self._idle.pop().close()
            for reader in self._running:  # a thread waits for it, and closes it
                reader.ended = True
                reader.process.kill()

    def _read_once(self, encode: Callable[..., Encoded], limits: FileLimits, *of: Any) -> Encoded:
        """The result from an idle reader or a new one."""
        sandbox = self._take(encode, limits) or Sandbox(encode, limits)
        with self._lock:
            if self._closed:  # while it started
                sandbox.close()
                return ENDED
            self._running.add(sandbox)
        result = sandbox.run(*of)
        with self._lock:
            self._running.discard(sandbox)
            if self._closed:
                sandbox.close()
            elif sandbox.process.returncode is None:
                self._idle.append(sandbox)
        return result

    def _take(self, encode: Callable[..., Encoded], limits: FileLimits) -> Sandbox | None:
        with self._lock:
            for dead in [s for s in self._idle if s.process.poll() is not None]:
                self._idle.remove(dead)
                dead.close()
            sandbox = next((s for s in self._idle if s.encode is encode and s.limits == limits), None)
            if sandbox:
                self._idle.remove(sandbox)
        return sandbox
