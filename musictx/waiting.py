"""Estimates and progress of long work, as lines on stderr."""

import sys
from collections.abc import Callable, Iterator, Sequence
from math import ceil
from threading import Lock
from time import perf_counter
from typing import TypeVar

from musictx.terminal import say

T = TypeVar("T")
SHORT_S = 3.0  # shorter work needs no line
MEASURED_S = 1.0  # of work, before anything is said of the rest
EVERY_S, EVERY = 10.0, 0.05  # from one line to the next: seconds, and a share of all the time


class Waiting:
    """Work of size `total`, `done` of it before; threads may share it. The first `starts` of it also start processes,
    so their time is no measure of the rest."""

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
        self.start_s = self.line_s = clock()  # of the work, of the last line
        self.is_long, self._lock = False, Lock()

    def advance(self, amount: float = 1.0) -> None:
        with self._lock:
            self._reach(self.done + amount)

    def reach(self, done: float) -> None:
        with self._lock:
            self._reach(done)

    def _reach(self, done: float) -> None:
        if done <= self.done:
            return
        self.done, now = done, self.clock()
        if done <= self.started:
            self.first, self.start_s, self.line_s = done, now, now
            return
        took_s = now - self.start_s
        left_s = took_s / (done - self.first) * max(self.total - done, 0.0)
        pause_s = max(EVERY_S, EVERY * (took_s + left_s)) if self.is_long else MEASURED_S
        if left_s > SHORT_S and now - self.line_s >= pause_s:
            about = f"about {in_words(left_s)}"
            progress = f"{done / self.total:.0%} done, {about} left" if self.is_long else about
            say(f"{self.what}: {progress}", file=sys.stderr, flush=True)
            self.is_long, self.line_s = True, now


def estimated(items: Sequence[T], what: str, size: Callable[[T], float] = lambda _: 1.0) -> Iterator[T]:
    """Each item, with estimates of the time; `size`: the work of an item."""
    waiting = Waiting(what, sum(map(size, items)))
    for item in items:
        yield item
        waiting.advance(size(item))


def reporting(what: str) -> Callable[[float, float], None]:
    """A callback that takes (done, of)."""
    waiting = Waiting(what, 1.0)
    return lambda done, of: waiting.reach(done / of)


def in_words(seconds: float) -> str:
    """A duration in words, rounded up: 25 s, 3 minutes, 2.5 hours."""
    if seconds <= 90:
        return f"{5 * ceil(seconds / 5)} s"
    if seconds <= 90 * 60:
        return f"{ceil(seconds / 60)} minutes"
    return f"{ceil(seconds / 360) / 10:g} hours"
