"""A MIDI file as its events, bytes with their ticks."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from musictx.music.channels import ends_first
from musictx.music.chunks import SEQUENCES, Chunks, read_chunks
from musictx.music.events import Events
from musictx.music.letters import as_text, guess_encoding

META, SYSEX, END_OF_TRACK = 0xFF, (0xF0, 0xF7), b"\xff\x2f\x00"
# kinds of channel events; their lower four bits are the channel
NOTE_OFF, NOTE_ON, CONTROL, PROGRAM, PRESSURE, BEND = 0x80, 0x90, 0xB0, 0xC0, 0xD0, 0xE0
ONE_BYTE = (0xC0, 0xD0)  # kinds of channel events with one byte of data
SINGLE, TOGETHER = 0, 1  # formats: all channels in one track, or tracks side by side
NAME, TEXT, PORT = 0x03, 0x01, 0x21  # of meta events


class Event(NamedTuple):
    """`data` begins with the status, also where a file leaves it out."""

    tick: int
    data: bytes

    @property
    def kind(self) -> int:
        """NOTE_ON and so on without the channel, or META or a system message."""
        return self.data[0] & 0xF0 if self.data[0] < 0xF0 else self.data[0]

    @property
    def text(self) -> bytes:
        """The body of a META event, behind its length."""
        return self.data[2:].lstrip(bytes(range(128, 256)))[1:]

    @property
    def channel(self) -> int | None:
        return self.data[0] & 0x0F if self.data[0] < 0xF0 else None

    @property
    def begins(self) -> bool:
        """Whether a note begins here."""
        return self.kind == NOTE_ON and self.data[2] > 0

    @property
    def ends(self) -> bool:
        """Whether a note ends here."""
        return self.kind == NOTE_OFF or (self.kind == NOTE_ON and self.data[2] == 0)


class EventTrack(NamedTuple):
    """The events of a track in order, and the tick of its end."""

    events: list[Event]
    end: int

    @property
    def name(self) -> str:
        for event in self.events:
            if event.data[:2] == bytes([META, NAME]):
                return as_text(event.text, guess_encoding([event.text]))
        return ""


class EventFile(NamedTuple):
    """`division` are the two bytes for the length of a tick; `format` is written, if the tracks allow it."""

    division: bytes
    tracks: list[EventTrack]
    format: int = TOGETHER


def as_number(value: int) -> bytes:
    """A number of variable length."""
    out = [value & 127]
    while value := value >> 7:
        out.append(value & 127 | 128)
    return bytes(reversed(out))


def read_events(data: bytes) -> EventFile:
    """The events of a MIDI file. Raises ValueError for other data."""
    return events_of(read_chunks(data, Counter()))


def events_of(chunks: Chunks) -> EventFile:
    """The events of chunks; sequences, which share no channels, get a port each."""
    tracks = [_read_track(body, events) for body, events in chunks.tracks]
    if chunks.format == SEQUENCES and len(tracks) > 1:
        ports = (Event(0, bytes([META, PORT, 1, number % 128])) for number in range(len(tracks)))
        tracks = [EventTrack([port, *events], end) for port, (events, end) in zip(ports, tracks, strict=True)]
    return EventFile(chunks.division.to_bytes(2), tracks, SINGLE if chunks.format == SINGLE else TOGETHER)


def _read_track(body: bytes, events: Events) -> EventTrack:
    messages = list[Event]()
    for tick, status, first, second, begin, end in zip(*(column.tolist() for column in events), strict=True):
        content = as_number(end - begin) + body[begin:end]
        if status == META and first == END_OF_TRACK[1]:
            continue  # readers hear what comes after it
        if status == META:
            messages.append(Event(tick, bytes([META, first]) + content))
        elif status in SYSEX:
            messages.append(Event(tick, bytes([status]) + content))
        elif 0x80 <= status < SYSEX[0]:
            values = [min(first, 127)] if status & 0xF0 in ONE_BYTE else [min(first, 127), min(second, 127)]
            messages.append(Event(tick, bytes([status, *values])))
    return EventTrack(messages, int(events.tick[-1]) if len(events.tick) else 0)


def write_events(file: EventFile) -> bytes:
    chunks = [b"MTrk" + len(body).to_bytes(4) + body for body in map(_bytes_of, file.tracks)]
    form = file.format if len(chunks) == 1 else TOGETHER
    return b"MThd" + (6).to_bytes(4) + form.to_bytes(2) + len(chunks).to_bytes(2) + file.division + b"".join(chunks)


MOST = 2**28 - 1  # ticks between two events; where more pass, texts without letters come between


def _bytes_of(track: EventTrack) -> bytes:
    out, before = bytearray(), 0
    for tick, data in [*track.events, Event(max(track.end, *(e.tick for e in track.events[-1:]), 0), END_OF_TRACK)]:
        for _ in range((tick - before) // (MOST + 1)):
            out += as_number(MOST) + bytes([META, TEXT, 0])
            before += MOST
        out += as_number(tick - before) + data
        before = tick
    return bytes(out)


def meta(tick: int, kind: int, text: str) -> Event:
    body = text.encode()
    return Event(tick, bytes([META, kind]) + as_number(len(body)) + body)


class Note(NamedTuple):
    """A note of a track: its ticks, and the places of its events; `last` is None without an end."""

    on: int
    off: int
    channel: int
    pitch: int
    velocity: int
    first: int
    last: int | None


def notes_of(track: EventTrack) -> list[Note]:
    """The notes of a track by their ends: an end is for the note that began first; an end before its strike makes a
    note without length."""
    sounding: dict[tuple[int, int], list[int]] = {}
    out = list[Note]()

    def end(first: int, tick: int, last: int | None) -> None:
        event = track.events[first]
        out.append(Note(event.tick, tick, event.data[0] & 15, event.data[1], event.data[2], first, last))

    for k in _in_pairs(track.events):
        event = track.events[k]
        if event.begins:
            sounding.setdefault((event.data[0] & 15, event.data[1]), []).append(k)
        elif event.ends and (strikes := sounding.get((event.data[0] & 15, event.data[1]))):
            end(strikes.pop(0), event.tick, k)
    for strikes in sounding.values():
        for first in strikes:
            end(first, track.end, None)
    return out


def _in_pairs(events: Sequence[Event]) -> list[int]:
    """The places of strikes and ends, each end after its strike."""
    places = np.array([k for k, event in enumerate(events) if event.begins or event.ends], np.int64)
    rows = ((e.data[0] % 16 * 128 + e.data[1], e.tick, e.begins) for e in (events[k] for k in places.tolist()))
    key, tick, is_on = np.array(list(rows), np.int64).reshape(-1, 3).T
    order = np.argsort(key, kind="stable")
    early = np.zeros(len(places), dtype=bool)
    early[order] = ends_first(key[order], tick[order], is_on[order] > 0)
    pairs: list[int] = places[np.lexsort((early, tick))].tolist()
    return pairs


def in_order(events: Iterable[Event]) -> list[Event]:
    """Events by tick, then ends of notes before beginnings."""
    return sorted(events, key=lambda event: (event.tick, event.begins - event.ends))


def with_events(track: EventTrack, without: Sequence[int], more: Sequence[Event]) -> EventTrack:
    """The track without the events at some places, and with `more`, the last of their ticks."""
    gone = set(without)
    events = [event for k, event in enumerate(track.events) if k not in gone]
    for event in in_order(more):
        at = _place(events, event)
        events.insert(at, event)
    return EventTrack(events, max([track.end, *(event.tick for event in more)]))


def _place(events: list[Event], new: Event) -> int:
    """The place of an event behind its tick, of an end before the notes that begin there."""
    low = len(events)
    while low and events[low - 1].tick > new.tick:
        low -= 1
    if not new.ends:
        return low
    while low and events[low - 1].tick == new.tick and events[low - 1].begins:
        low -= 1
    first = low
    while first and events[first - 1].tick == new.tick:
        first -= 1
    same = (k for k in range(first, low) if events[k].begins and _key(events[k]) == _key(new))
    return next(same, low)


def _key(event: Event) -> tuple[int | None, int]:
    return event.channel, event.data[1]
