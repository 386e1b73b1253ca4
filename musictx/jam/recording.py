"""Plays events when they are due, and writes the session as a MIDI file: the player on one track, the replies on
another.
"""

from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from time import perf_counter
from typing import Any

import mido

from musictx.files import replacing
from musictx.music.write import MAX_MSPQ, TICKS_PER_QUARTER
from musictx.tokenizers.tokenizer import Event

Timed = tuple[float, Any]  # seconds of the session, mido message


class Recording:
    """All messages in and out, with seconds of the session."""

    def __init__(self, quarter_s: float, channel: int) -> None:
        self.mspq, self.channel = min(max(round(quarter_s * 1e6), 1), MAX_MSPQ), channel
        self.player: list[Timed] = []
        self.partner: list[Timed] = []

    def hear(self, at_s: float, message: Any) -> None:
        if hasattr(message, "channel"):  # leaves out clock ticks and the like
            self.player.append((at_s, message))

    def sound(self, event: Event) -> Any:
        """Turns the event into a message and records it."""
        kind = "note_on" if event.velocity else "note_off"
        message = mido.Message(kind, channel=self.channel, note=event.pitch, velocity=event.velocity)
        self.partner.append((event.at_s, message))
        return message

    @property
    def notes(self) -> tuple[int, int]:
        """How many notes the player and the partner have played."""
        own, replied = (sum(_strikes(message) for _, message in each) for each in (self.player, self.partner))
        return own, replied

    @property
    def duration_s(self) -> float:
        return max((at_s for at_s, _ in self.player + self.partner), default=0.0)

    def write(self, path: Path) -> None:
        """Writes the MIDI file, whole or not at all; notes that still sound end with the session."""
        midi = mido.MidiFile(type=1, ticks_per_beat=TICKS_PER_QUARTER)
        for name, messages in (("player", self.player), ("musictx", self.partner)):
            track = mido.MidiTrack([mido.MetaMessage("track_name", name=name)])
            if name == "player":
                track.append(mido.MetaMessage("set_tempo", tempo=self.mspq))
            before = 0
            for at_s, message in sorted(messages + ends(messages, self.duration_s), key=lambda timed: timed[0]):
                tick = round(at_s * 1e6 / self.mspq * TICKS_PER_QUARTER)
                track.append(message.copy(time=tick - before))
                before = tick
            midi.tracks.append(track)
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as partial:
            midi.save(partial)


def _strikes(message: Any) -> bool:
    return bool(message.type == "note_on" and message.velocity > 0)


def ends(messages: list[Timed], at_s: float) -> list[Timed]:
    """The messages that release, at that time, the keys still down after all."""
    held: dict[tuple[int, int], int] = {}
    for _, message in messages:
        if message.type in ("note_on", "note_off"):
            key = message.channel, message.note
            held[key] = max(held.get(key, 0) + (1 if _strikes(message) else -1), 0)
    return [
        (at_s, mido.Message("note_off", channel=channel, note=note))
        for (channel, note), count in held.items()
        for _ in range(count)
    ]


class Playback:
    """Events in order of time; `due` and `silence` pass them to `emit`. Times are seconds of the session."""

    def __init__(self, emit: Callable[[Event], None]) -> None:
        self.emit = emit
        self.pending: deque[Event] = deque()
        self.sounding: set[int] = set()
        self.latencies_s: list[float] = []  # of every reply: from the end of the pause to its first note
        self.latest_s = 0.0  # the longest that any event was late
        self.since: float | None = None  # the end of the pause, by `perf_counter`; None from the first note on

    def begin(self, waited_s: float) -> None:
        """Begins a reply, `waited_s` after the end of the pause."""
        self.since = perf_counter() - waited_s

    def schedule(self, events: Iterable[Event]) -> None:
        """Adds events in order of time, none before those scheduled already."""
        self.pending.extend(events)

    def due(self, now_s: float) -> None:
        """Emits the events that are due by now."""
        while self.pending and self.pending[0].at_s <= now_s:
            event = self.pending.popleft()
            self.latest_s = max(self.latest_s, now_s - event.at_s)
            self._send(event)

    def silence(self, now_s: float) -> None:
        """Drops the events to come, and ends all notes."""
        self.due(now_s)
        self.pending.clear()
        self.since = None
        for pitch in sorted(self.sounding):
            self._send(Event(now_s, pitch, 0))

    def close(self, now_s: float) -> None:
        """Ends the playback."""
        self.silence(now_s)

    def check(self, now_s: float) -> None:
        """Emits the events that are due; `converse` calls it often."""
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
