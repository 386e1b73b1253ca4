"""A person's MIDI file, into which new notes are written: at its own tempo, on a track of their own or among the notes
of a part. All else that is in the file stays, event for event."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.errors import ConfigError
from musictx.music import midi_file as midi
from musictx.music.channels import CHANNELS, DRUM_CHANNEL
from musictx.music.chunks import read_chunks
from musictx.music.grid import STEPS_PER_QUARTER
from musictx.music.midi_file import Event, EventFile, EventTrack, Note, in_order, meta, notes_of, with_events
from musictx.music.pedal import Press, pedalled
from musictx.music.raw import read_raw
from musictx.music.score import DRUMS, Score
from musictx.music.ticks import PEDAL, PEDAL_DOWN, RawMidi, TempoMap
from musictx.music.write import MAX_MSPQ, TICKS_PER_QUARTER

CENTRE = bytes([0x00, 0x40])  # of a pitch bend
NAME = "musictx"  # of the track of new notes


class Part(NamedTuple):
    """A channel of a track that has notes; `number` counts them from 1."""

    number: int
    track: int
    channel: int
    name: str
    pitches: NDArray[np.int64]  # (N,)
    is_drums: bool


class Line(NamedTuple):
    """New notes of a track of its own."""

    name: str
    score: Score


class Filled(NamedTuple):
    """A gap as it is now, in seconds of the file: `new` notes, and all `others` that are heard. Some of these end or
    begin at its borders. Notes that begin at most `near_s` before a border count as behind it."""

    new: Score
    others: Score
    from_s: float
    to_s: float
    near_s: float


@dataclass(frozen=True)
class Project:
    """`clock` is that by which the file's notes became seconds; `part` (a name or number) the only one that is heard
    and written, None: all, of which `drums` only if they are asked for."""

    data: bytes
    clock: TempoMap
    part: str | None = None
    drums: bool = False

    def __reduce__(self) -> tuple[type["Project"], tuple[object, ...]]:
        """Without what is found again from the bytes: equal files are equal bytes then."""
        return Project, (self.data, self.clock, self.part, self.drums)

    @cached_property
    def file(self) -> EventFile:
        return midi.read_events(self.data)

    @cached_property
    def notes(self) -> list[list[Note]]:
        """Of each track."""
        return [notes_of(track) for track in self.file.tracks]

    @cached_property
    def parts(self) -> list[Part]:
        found = list[Part]()
        channels = read_raw(read_chunks(self.data, Counter()), Counter()).channels
        for t, track in enumerate(self.file.tracks):
            for raw in channels:
                if (mine := raw.notes[5] == t).any():
                    pitches, programs = raw.notes[2, mine], raw.notes[4, mine]
                    is_drums = bool((programs == DRUMS).all())
                    found.append(Part(len(found) + 1, t, raw.number % CHANNELS, track.name, pitches, is_drums))
        return found

    @cached_property
    def heard(self) -> list[Part]:
        """The parts that a model hears, and that a fill writes again. Raises ConfigError for one that is not there."""
        if self.part is None:
            return [part for part in self.parts if self.drums or not part.is_drums]
        named = [part for part in self.parts if self.part in (part.name, str(part.number))]
        if not named:
            there = ", ".join(f"{part.number} {part.name}".strip() for part in self.parts)
            raise ConfigError("part", got=self.part, allowed=f"the name or number of one: {there}")
        return named

    def alone(self) -> bytes:
        """The file with the notes of the heard parts only."""
        heard = {(part.track, part.channel) for part in self.heard}
        tracks = []
        for t, track in enumerate(self.file.tracks):
            kept = [e for e in track.events if not (e.begins or e.ends) or (t, e.channel) in heard]
            tracks.append(EventTrack(kept, track.end))
        return midi.write_events(self.file._replace(tracks=tracks))

    @classmethod
    def new(cls, quarter_s: float, signature: tuple[int, int] | None = None) -> "Project":
        """A file of a tempo and a meter, without notes."""
        mspq = min(max(round(quarter_s * 1e6), 1), MAX_MSPQ)
        events = [Event(0, b"\xff\x51\x03" + mspq.to_bytes(3))]
        beats, unit = signature or (4, 4)
        events.append(Event(0, bytes([0xFF, 0x58, 4, beats, unit.bit_length() - 1, 24, 8])))
        division = TICKS_PER_QUARTER.to_bytes(2)
        clock = TempoMap(RawMidi([], TICKS_PER_QUARTER, np.array([0]), np.array([mspq])))
        return cls(midi.write_events(EventFile(division, [EventTrack(events, 0)])), clock)

    def continued(
        self, lines: Sequence[Line], from_s: float, text: str = "", *, pedal: bool = False, seed: bool = True
    ) -> bytes:
        """The file up to `from_s`, and new lines after it; without the `seed` its clock, markers and names alone.
        Channels end there; tempo, meter and markers stay."""
        join, tracks = self.tick(from_s), list(self.file.tracks)
        if any(note.on >= join or note.off > join for notes in self.notes for note in notes):
            tracks = [_cut(*each, join) for each in zip(tracks, self.notes, strict=True)]
        new = self.written(lines, join, tracks, text=text, pedal=pedal, own=len(lines) > 1)
        if new:  # a pedal that the seed leaves down would sound for ever
            down = [c for c in range(CHANNELS) if _value(tracks, c, join, midi.CONTROL, PEDAL) >= PEDAL_DOWN]
            lifts = [Event(join, bytes([midi.CONTROL | c, PEDAL, 0])) for c in down]
            new[0] = with_events(new[0], [], [lift for lift in lifts if lift not in new[0].events])
        if not seed:
            tracks = [EventTrack([e for e in t.events if e.channel is None], t.end) for t in tracks]
        return midi.write_events(self.file._replace(tracks=tracks + new))

    def beside(self, lines: Sequence[Line], text: str = "", *, pedal: bool = False) -> bytes:
        """The file, and new lines from its beginning on."""
        new = self.written(lines, 0, self.file.tracks, text=text, pedal=pedal, own=True)
        return midi.write_events(self.file._replace(tracks=self.file.tracks + new))

    def filled(self, gap: Filled, text: str = "", *, pedal: bool = False) -> bytes:
        """The file with a gap of the heard parts written again; each new note goes to the part whose register it fits,
        or to a new track where that part's pedal is down."""
        first, last = self.tick(gap.from_s), self.tick(gap.to_s)
        on, off = (self.clock.ticks(x).tolist() for x in (gap.others.onset_s, gap.others.offset_s))
        others = dict(zip(zip(on, gap.others.pitch.tolist(), strict=True), off, strict=True))
        tracks = list(self.file.tracks)
        for t in sorted({part.track for part in self.heard}):
            channels = {part.channel for part in self.heard if part.track == t}
            notes = [note for note in self.notes[t] if note.channel in channels]
            tracks[t] = self._emptied(tracks[t], notes, first, last, gap.near_s, others)
        wet = {channel for channel in range(CHANNELS) if _is_down(tracks, channel, first, last)}
        whose = self._fitting(gap.new.pitch)
        for part in self.heard:
            mine = gap.new.select(whose == part.number)
            if len(mine) and part.channel not in wet:
                more = list(_events_of(self._ticks(mine), part.channel))
                tracks[part.track] = with_events(tracks[part.track], [], more)
        rest = gap.new.select(np.isin(whose, [part.number for part in self.heard if part.channel in wet]))
        if len(rest):
            tracks += self.written([Line(NAME, rest)], first, tracks, text=text, pedal=pedal, own=True)
        elif text:
            tracks[0] = with_events(tracks[0], [], [meta(0, midi.TEXT, text)])
        return midi.write_events(self.file._replace(tracks=tracks))

    def beside_beat_s(self, score: Score) -> float | None:
        """How far onsets lie from the nearest sixteenths of the file's beat, on average; None where it has no beat."""
        per = self.clock.ticks_per_quarter / STEPS_PER_QUARTER
        if not per or not len(score):
            return None
        nearest = np.rint(np.rint(self.clock.ticks_at(score.onset_s) / per) * per)
        return float(np.abs(self.clock.seconds(nearest) - score.onset_s).mean())

    def tick(self, at_s: float) -> int:
        return int(self.clock.ticks(np.array([at_s]))[0])

    def _ticks(self, score: Score) -> list[Note]:
        """Notes of a score in ticks, each at least one long."""
        on = self.clock.ticks(score.onset_s)
        off = np.maximum(self.clock.ticks(score.offset_s), on + 1)
        columns = zip(*(x.tolist() for x in (on, off, score.pitch, score.velocity)), strict=True)
        return [Note(on, off, 0, pitch, velocity, 0, None) for on, off, pitch, velocity in columns]

    def written(
        self,
        lines: Sequence[Line],
        from_tick: int,
        tracks: Sequence[EventTrack],
        *,
        text: str = "",
        pedal: bool = False,
        own: bool = False,
    ) -> list[EventTrack]:
        """New tracks: one for each line and program, and for notes of one pitch that overlap. A track has the channel
        that plays this program already, unless it shall have its `own`."""
        out, used = list[EventTrack](), set[int]()
        taken = {event.channel for track in tracks for event in track.events if event.channel is not None}
        each = [
            (name, int(program), layer)
            for name, score in lines
            for program in np.unique(score.program)
            for layer in _layers(self._ticks(score.select(score.program == program)))
        ]
        for name, program, notes in each:
            channel = DRUM_CHANNEL if program == DRUMS else None if own else self._channel(program, from_tick, tracks)
            if channel is None or (channel in used and program != DRUMS):
                free = [c for c in range(CHANNELS) if c not in taken | used | {DRUM_CHANNEL}]
                channel = free[0] if free else channel or 0
            used.add(channel)
            head = [meta(0, midi.NAME, name)]
            head += [meta(0, midi.TEXT, text)] if text and not out else []
            if program != DRUMS:
                head.append(Event(from_tick, bytes([midi.PROGRAM | channel, program])))
            keys, presses = pedalled(notes, self.clock) if pedal else (notes, [])
            events = [*head, *_fresh(tracks, channel, from_tick), *_events_of(keys, channel)]
            events = in_order([*events, *_pressed(presses, channel)])
            out.append(EventTrack(events, max(from_tick, events[-1].tick)))
        return out

    def _channel(self, program: int, tick: int, tracks: Sequence[EventTrack]) -> int | None:
        """The channel with the most notes of those that play this program at a tick."""
        of = Counter[int]()
        for part in self.heard:
            if not part.is_drums and _value(tracks, part.channel, tick, midi.PROGRAM) == program:
                of[part.channel] += len(part.pitches)
        return of.most_common(1)[0][0] if of else None

    def _fitting(self, pitch: NDArray[np.uint8]) -> NDArray[np.int64]:
        """(N,) the number of the heard part whose middle pitch is nearest."""
        middle = np.array([np.median(part.pitches) for part in self.heard])  # (P,)
        nearest = np.abs(pitch[:, None].astype(np.int64) - middle).argmin(1)
        numbers: NDArray[np.int64] = np.array([part.number for part in self.heard])[nearest]
        return numbers

    def _emptied(
        self,
        track: EventTrack,
        notes: Sequence[Note],
        first: int,
        last: int,
        near_s: float,
        others: dict[tuple[int, int], int],
    ) -> EventTrack:
        """A track without the notes of a gap. A note that reaches into it ends where `others` (onset and pitch -> end)
        says, and one that reaches out of it begins at the border if it is there."""
        gone, more = list[int](), list[Event]()
        near = [int(x) for x in self.clock.ticks(self.clock.seconds(np.array([first, last])) - near_s)]
        for note in notes:
            inside, crosses = near[0] <= note.on < near[1], note.on < near[0] and note.off > first
            if not inside and not crosses:
                continue
            head = bytes([note.pitch, note.velocity])
            off = midi.NOTE_OFF | note.channel
            if inside and (note.on, note.pitch) not in others:
                gone += [note.first] + ([note.last] if note.last is not None else [])
            elif (ends := others.get((note.on, note.pitch), first)) != note.off:
                gone += [note.last] if note.last is not None else []
                more.append(Event(max(ends, note.on + 1), bytes([off, note.pitch, 64])))
            if (until := others.get((last, note.pitch))) is not None and note.off > last:
                more += [Event(last, bytes([midi.NOTE_ON | note.channel]) + head)]
                more += [Event(max(min(until, note.off), last + 1), bytes([off, note.pitch, 64]))]
        return with_events(track, gone, more)


def _cut(track: EventTrack, notes: Sequence[Note], tick: int) -> EventTrack:
    """The track without its channels' events from a tick on; notes that still sound end there."""
    gone = [k for k, e in enumerate(track.events) if e.channel is not None and e.tick >= tick and not _ends_at(e, tick)]
    gone += [k for note in notes if note.on < tick < note.off for k in [note.last] if k is not None]
    more = [Event(tick, bytes([midi.NOTE_OFF | n.channel, n.pitch, 64])) for n in notes if n.on < tick < n.off]
    return with_events(track, gone, more)


def _ends_at(event: Event, tick: int) -> bool:
    return event.tick == tick and event.ends


def _value(tracks: Sequence[EventTrack], channel: int, tick: int, kind: int, control: int | None = None) -> int:
    """What a channel has before a tick: its program, or the value of a control; 0 without any."""
    return _last(tracks, channel, tick, kind, control)[-1]


def _last(tracks: Sequence[EventTrack], channel: int, tick: int, kind: int, control: int | None = None) -> bytes:
    """The last event of a kind up to a tick; one byte of 0 without any."""
    found = (-1, bytes(1))
    for track in tracks:
        for event in track.events:
            if event.tick > tick:
                break
            if event.kind == kind and event.channel == channel and control in (None, event.data[1]):
                found = max((event.tick, event.data), found, key=lambda each: each[0])
    return found[1]


def _is_down(tracks: Sequence[EventTrack], channel: int, first: int, last: int) -> bool:
    """Whether a channel's pedal is down at a moment between two ticks."""
    pressed = any(
        first <= event.tick < last
        and event.kind == midi.CONTROL
        and event.channel == channel
        and event.data[1] == PEDAL
        and event.data[2] >= PEDAL_DOWN
        for track in tracks
        for event in track.events
    )
    return pressed or _value(tracks, channel, first, midi.CONTROL, PEDAL) >= PEDAL_DOWN


def _fresh(tracks: Sequence[EventTrack], channel: int, tick: int) -> list[Event]:
    """What lets new notes of a channel sound as they are: the pedal up, no bend."""
    out = []
    if _value(tracks, channel, tick, midi.CONTROL, PEDAL) >= PEDAL_DOWN:
        out.append(Event(tick, bytes([midi.CONTROL | channel, PEDAL, 0])))
    if _last(tracks, channel, tick, midi.BEND)[1:] not in (b"", CENTRE):
        out.append(Event(tick, bytes([midi.BEND | channel]) + CENTRE))
    return out


def _events_of(notes: Iterable[Note], channel: int) -> Iterable[Event]:
    for note in notes:
        yield Event(note.on, bytes([midi.NOTE_ON | channel, note.pitch, note.velocity]))
        yield Event(note.off, bytes([midi.NOTE_OFF | channel, note.pitch, 64]))


def _pressed(presses: Iterable[Press], channel: int) -> Iterable[Event]:
    for press in presses:
        yield Event(press.down, bytes([midi.CONTROL | channel, PEDAL, 127]))
        yield Event(press.up, bytes([midi.CONTROL | channel, PEDAL, 0]))


def _layers(notes: list[Note]) -> list[list[Note]]:
    """Notes apart, so that no pitch overlaps itself on a channel."""
    layers, ends = list[list[Note]](), list[dict[int, int]]()
    for note in sorted(notes, key=lambda note: note[:5]):
        layer = next((i for i, end in enumerate(ends) if end.get(note.pitch, 0) <= note.on), len(layers))
        if layer == len(layers):
            layers.append([])
            ends.append({})
        layers[layer].append(note)
        ends[layer][note.pitch] = note.off
    return layers
