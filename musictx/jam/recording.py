"""Plays events when they are due, and writes the session as a MIDI file, with the replies on a track of their own."""

from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from time import perf_counter
from typing import Any

import mido
import numpy as np

from musictx.files import replacing
from musictx.music import midi_file as midi
from musictx.music.midi_file import EventTrack, meta
from musictx.music.project import NAME, Line, Project
from musictx.music.score import Score
from musictx.tokenizers.tokenizer import Event

TimedMessage = tuple[float, Any]  # seconds of the session, mido message


class Recording:
    """All messages in and out, with seconds of the session. `project` is the file that plays, if one does."""

    def __init__(self, quarter_s: float, channel: int, project: Project | None = None) -> None:
        self.quarter_s, self.channel, self.project = quarter_s, channel, project
        self.player: list[TimedMessage] = []
        self.partner: list[TimedMessage] = []

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
        own, replies = (sum(_strikes(message) for _, message in each) for each in (self.player, self.partner))
        return own, replies

    @property
    def duration_s(self) -> float:
        return max((at_s for at_s, _ in self.player + self.partner), default=0.0)

    @property
    def replies(self) -> Score:
        """The partner's notes; those that still sound end with the session."""
        sounding, rows = dict[int, tuple[float, int]](), list[tuple[float, float, int, int]]()
        for at_s, message in [*self.partner, *note_offs(self.partner, self.duration_s)]:
            if message.note in sounding:
                on_s, velocity = sounding.pop(message.note)
                rows.append((on_s, at_s, message.note, velocity))
            if _strikes(message):
                sounding[message.note] = at_s, message.velocity
        return Score(*np.array(rows, dtype=float).reshape(-1, 4).T)

    @property
    def music(self) -> Project:
        """The file so far, or a person's playing at the tempo of the session."""
        if self.project is not None:
            return self.project.until(self.duration_s)
        new = Project.new(self.quarter_s)
        messages = sorted(self.player + note_offs(self.player, self.duration_s), key=lambda timed: timed[0])
        ticks = new.clock.ticks(np.array([at_s for at_s, _ in messages])).tolist()
        events = [midi.Event(tick, bytes(message.bytes())) for tick, (_, message) in zip(ticks, messages, strict=True)]
        (track,) = new.file.tracks
        track_with_notes = EventTrack([meta(0, midi.NAME, "player"), *track.events, *events], max(ticks, default=0))
        return Project(midi.write_events(new.file._replace(tracks=[track_with_notes])), new.clock)

    def write(self, path: Path) -> None:
        """Writes the MIDI file, whole or not at all."""
        data = self.music.beside([Line(NAME, self.replies)], channel=self.channel)
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as partial:
            partial.write_bytes(data)


def _strikes(message: Any) -> bool:
    return bool(message.type == "note_on" and message.velocity > 0)


def note_offs(messages: list[TimedMessage], at_s: float) -> list[TimedMessage]:
    """The messages that release the keys still down, at that time."""
    key_counts: dict[tuple[int, int], int] = {}
    for _, message in messages:
        if message.type in ("note_on", "note_off"):
            key = message.channel, message.note
            key_counts[key] = max(key_counts.get(key, 0) + (1 if _strikes(message) else -1), 0)
    return [
        (at_s, mido.Message("note_off", channel=channel, note=note))
        for (channel, note), count in key_counts.items()
        for _ in range(count)
    ]


class Playback:
    """Events in order of time; `due` and `silence` pass them to `emit`. Times are seconds of the session."""

    def __init__(self, emit: Callable[[Event], None]) -> None:
        self.emit = emit
        self.queue: deque[Event] = deque()
        self.sounding: set[int] = set()
        self.latencies_s: list[float] = []  # of every reply: from the end of the pause to its first note
        self.latest_s = 0.0  # the longest that any event was late
        self.since: float | None = None  # the end of the pause, by `perf_counter`; None from the first note on

    def begin(self, waited_s: float) -> None:
        """Begins a reply, `waited_s` after the end of the pause."""
        self.since = perf_counter() - waited_s

    def schedule(self, events: Iterable[Event]) -> None:
        """Adds events in order of time, none before those scheduled already."""
        self.queue.extend(events)

    def due(self, now_s: float) -> None:
        """Emits the events that are due by now."""
        while self.queue and self.queue[0].at_s <= now_s:
            event = self.queue.popleft()
            self.latest_s = max(self.latest_s, now_s - event.at_s)
            self._send(event)

    def silence(self, now_s: float) -> None:
        """Drops the events to come, and ends all notes."""
        self.due(now_s)
        self.queue.clear()
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
