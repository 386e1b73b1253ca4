"""A MIDI file as its events: bytes with the tick at which each comes, nothing of them interpreted or lost."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

META, SYSEX, END_OF_TRACK = 0xFF, (0xF0, 0xF7), b"\xff\x2f\x00"
NOTE_OFF, NOTE_ON, CONTROL, PROGRAM, BEND = 0x80, 0x90, 0xB0, 0xC0, 0xE0  # their lower four bits are the channel
ONE_BYTE = (0xC0, 0xD0)  # kinds of channel events with one byte of data
NAME, TEXT = 0x03, 0x01  # of meta events


class Event(NamedTuple):
    """`data` begins with the status, also where the file leaves it out."""

    tick: int
    data: bytes

    @property
    def kind(self) -> int:
        """NOTE_ON and so on, for all channels; META or the first byte of a system message as it is."""
        return self.data[0] & 0xF0 if self.data[0] < 0xF0 else self.data[0]

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
                _, at = number(event.data, 2)
                return event.data[at:].decode("utf-8", "replace")
        return ""


class EventFile(NamedTuple):
    """`division` are the two bytes that say what a tick is."""

    division: bytes
    tracks: list[EventTrack]


def number(data: bytes, at: int) -> tuple[int, int]:
    """The number of variable length at a place, and the place after it. Raises IndexError at the end."""
    value = 0
    for _ in range(4):
        byte, at = data[at], at + 1
        value = value << 7 | byte & 127
        if byte < 128:
            break
    return value, at


def as_number(value: int) -> bytes:
    """The same as bytes."""
    out = [value & 127]
    while value := value >> 7:
        out.append(value & 127 | 128)
    return bytes(reversed(out))


def read_events(data: bytes) -> EventFile:
    """The events of an intact or repaired MIDI file. Raises ValueError for one that is none; a track ends where its
    bytes make no sense."""
    if data[:4] != b"MThd" or len(data) < 14:
        raise ValueError("no MIDI file")
    at, tracks = 8 + int.from_bytes(data[4:8]), list[EventTrack]()
    while at + 8 <= len(data):
        end = at + 8 + int.from_bytes(data[at + 4 : at + 8])
        if data[at : at + 4] == b"MTrk":
            tracks.append(_read_track(data[at + 8 : end]))
        at = end
    return EventFile(data[12:14], tracks)


def _read_track(data: bytes) -> EventTrack:
    events, tick = list[Event](), 0
    for delta, message in _messages(data):
        tick += delta
        if message[:2] == END_OF_TRACK[:2]:
            break
        events.append(Event(tick, message))
    return EventTrack(events, tick)


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    at, status = 0, 0
    while at < len(data):
        try:
            delta, at = number(data, at)
            if data[at] >= 0x80:
                status, at = data[at], at + 1
            begin = at
            if status == META:
                length, at = number(data, at + 1)
                at += length
            elif status in SYSEX:
                length, at = number(data, at)
                at += length
            elif 0x80 <= status < 0xF0:
                at += 1 if status & 0xF0 in ONE_BYTE else 2
            else:
                return
        except IndexError:
            return
        if at > len(data):
            return
        yield delta, bytes([status]) + data[begin:at]


def write_events(file: EventFile) -> bytes:
    """The bytes of a file of several tracks."""
    chunks = [b"MTrk" + len(body).to_bytes(4) + body for body in map(_bytes_of, file.tracks)]
    return b"MThd" + (6).to_bytes(4) + (1).to_bytes(2) + len(chunks).to_bytes(2) + file.division + b"".join(chunks)


def _bytes_of(track: EventTrack) -> bytes:
    out, before = bytearray(), 0
    for tick, data in track.events:
        out += as_number(tick - before) + data
        before = tick
    return bytes(out) + as_number(max(track.end - before, 0)) + END_OF_TRACK


def meta(tick: int, kind: int, text: str) -> Event:
    """An event with a text."""
    body = text.encode()
    return Event(tick, bytes([META, kind]) + as_number(len(body)) + body)


class Note(NamedTuple):
    """A note of a track: its ticks, and the places of both of its events; `last` is None for one that never ends."""

    on: int
    off: int
    channel: int
    pitch: int
    velocity: int
    first: int
    last: int | None


def notes_of(track: EventTrack) -> list[Note]:
    """The notes of a track, in order of their ends; of two that sound, an end is that of the one that began first."""
    sounding: dict[tuple[int, int], list[int]] = {}
    out = list[Note]()

    def end(first: int, tick: int, last: int | None) -> None:
        event = track.events[first]
        out.append(Note(event.tick, tick, event.data[0] & 15, event.data[1], event.data[2], first, last))

    for k, event in enumerate(track.events):
        if event.begins:
            sounding.setdefault((event.data[0] & 15, event.data[1]), []).append(k)
        elif event.ends and (begun := sounding.get((event.data[0] & 15, event.data[1]))):
            end(begun.pop(0), event.tick, k)
    for begun in sounding.values():
        for first in begun:
            end(first, track.end, None)
    return out


def in_order(events: Iterable[Event]) -> list[Event]:
    """Events by tick. At the same tick they keep their order, but notes end before others begin."""
    return sorted(events, key=lambda event: (event.tick, event.begins - event.ends))


def with_events(track: EventTrack, without: Sequence[int], more: Sequence[Event]) -> EventTrack:
    """The track without the events at some places, and with more of them, which come last at their tick, ends of notes
    first."""
    gone = set(without)
    events = [event for k, event in enumerate(track.events) if k not in gone]
    for event in in_order(more):
        at = _place(events, event)
        events.insert(at, event)
    return EventTrack(events, max([track.end, *(event.tick for event in more)]))


def _place(events: list[Event], new: Event) -> int:
    """Where an event belongs: behind all of its tick, an end of a note before the first note that begins there."""
    low = len(events)
    while low and events[low - 1].tick > new.tick:
        low -= 1
    if new.ends:
        while low and events[low - 1].tick == new.tick and events[low - 1].begins:
            low -= 1
    return low
