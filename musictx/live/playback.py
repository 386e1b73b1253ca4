"""What is still to sound and what sounds: events go out when their time has come, and every note is ended."""

from collections import deque
from collections.abc import Callable, Iterable
from time import perf_counter

from musictx.tokenizers.idiom import Event


class Playback:
    """Events in time, handed to `emit` by `due` and `silence`. Times are seconds of the session."""

    def __init__(self, emit: Callable[[Event], None]) -> None:
        self.emit = emit
        self.pending: deque[Event] = deque()
        self.sounding: set[int] = set()
        self.latencies_s: list[float] = []  # of every reply: from the end of the pause to its first note
        self.latest_s = 0.0  # the most that any event went out after its time
        self.since: float | None = None  # on the stopwatch: the end of the pause, until the first note

    def begin(self, waited_s: float) -> None:
        """A reply begins, `waited_s` after the pause was over."""
        self.since = perf_counter() - waited_s

    def schedule(self, events: Iterable[Event]) -> None:
        """Events in time, none before those that are scheduled already."""
        self.pending.extend(events)

    def due(self, now_s: float) -> None:
        """Emits what is to sound by now."""
        while self.pending and self.pending[0].at_s <= now_s:
            event = self.pending.popleft()
            self.latest_s = max(self.latest_s, now_s - event.at_s)
            self._send(event)

    def silence(self, now_s: float) -> None:
        """Forgets what is to come, and ends all notes."""
        self.due(now_s)
        self.pending.clear()
        self.since = None
        for pitch in sorted(self.sounding):
            self._send(Event(now_s, pitch, 0))

    def close(self, now_s: float) -> None:
        """Nothing will be played any more."""
        self.silence(now_s)

    def check(self, now_s: float) -> None:
        """Called often by whoever converses; where nobody else watches the clock, this does."""
        self.due(now_s)

    def _send(self, event: Event) -> None:
        if event.velocity:
            self.sounding.add(event.pitch)
        else:
            self.sounding.discard(event.pitch)
        self.emit(event)
        if self.since is not None and event.velocity:
            self.latencies_s.append(perf_counter() - self.since)
            self.since = None
