"""How long a person will wait: an estimate once a first part of the work is measured, then progress, as lines."""

import sys
from collections.abc import Callable, Iterator, Sequence
from math import ceil
from threading import Lock
from time import perf_counter
from typing import TypeVar

from musictx.terminal import say

T = TypeVar("T")
SHORT_S = 3.0  # what takes less needs no word
MEASURED_S = 1.0  # of work, before anything is said of the rest
EVERY_S, EVERY = 10.0, 0.05  # from one line to the next: seconds, and a share of all the time


class Waiting:
    """Work of a known size. Prints on stderr how long it will take, where that is long. `done` was there before.
    The first `starts` of it also start processes, so their time is no measure of the rest. Threads may share it."""

    def __init__(
        self,
        what: str,
        total: float,
        done: float = 0.0,
        clock: Callable[[], float] = perf_counter,
        *,
        starts: float = 0.0,
    ) -> None:
        self.what, self.total, self.clock = what, total, clock
        self.first = self.done = done
        self.started = done + starts
        self.since = self.said = clock()
        self.is_long, self._lock = False, Lock()

    def advance(self, amount: float = 1.0) -> None:
        """So much more is done."""
        with self._lock:
            self._reach(self.done + amount)

    def reach(self, done: float) -> None:
        """So much is done in all."""
        with self._lock:
            self._reach(done)

    def _reach(self, done: float) -> None:
        if done <= self.done:
            return
        self.done, now = done, self.clock()
        if done <= self.started:
            self.first, self.since, self.said = done, now, now
            return
        took_s = now - self.since
        left_s = took_s / (done - self.first) * max(self.total - done, 0.0)
        pause_s = max(EVERY_S, EVERY * (took_s + left_s)) if self.is_long else MEASURED_S
        if left_s > SHORT_S and now - self.said >= pause_s:
            about = f"about {in_words(left_s)}"
            said = f"{done / self.total:.0%} done, {about} left" if self.is_long else about
            say(f"{self.what}: {said}", file=sys.stderr, flush=True)
            self.is_long, self.said = True, now


def estimated(items: Sequence[T], what: str, size: Callable[[T], float] = lambda _: 1.0) -> Iterator[T]:
    """Each item, whose work is done when the next is asked for. `size` says how much work an item is beside others."""
    waiting = Waiting(what, sum(map(size, items)))
    for item in items:
        yield item
        waiting.advance(size(item))


def reporting(what: str) -> Callable[[float, float], None]:
    """What takes (done, of) again and again."""
    waiting = Waiting(what, 1.0)
    return lambda done, of: waiting.reach(done / of)


def in_words(seconds: float) -> str:
    """A time as people say it, rounded up: 25 s, 3 minutes, 2.5 hours."""
    if seconds <= 90:
        return f"{5 * ceil(seconds / 5)} s"
    if seconds <= 90 * 60:
        return f"{ceil(seconds / 60)} minutes"
    return f"{ceil(seconds / 360) / 10:g} hours"
