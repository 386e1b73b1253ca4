"""A person's MIDI file for new notes; all else in it stays."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.errors import ConfigError
from musictx.music import midi_file as midi
from musictx.music.channel_use import place_for, rest_events, sound_of, value_of
from musictx.music.channels import CHANNELS, DRUM_CHANNEL
from musictx.music.chunks import Chunks, read_chunks
from musictx.music.grid import STEPS_PER_QUARTER
from musictx.music.midi_file import Event, EventFile, EventTrack, Note, in_order, meta, notes_of, with_events
from musictx.music.new_events import events_of, layers_of, pedal_events, tempo_event
from musictx.music.notation.midi import place_of
from musictx.music.notation.notation import Notation
from musictx.music.pace import pace_at
from musictx.music.pedal import forgotten_presses, let_go, lifts, with_pedal
from musictx.music.raw import read_raw
from musictx.music.score import DRUMS, Score
from musictx.music.ticks import RawMidi, TempoMap

NAME = "musictx"  # of the track of new notes
TICKS_PER_QUARTER = 480


class Part(NamedTuple):
    """A channel of a track that has notes, by its number from 1."""

    number: int
    track: int
    channel: int
    name: str
    pitches: NDArray[np.int64]  # (N,)
    is_drums: bool
    program: int  # of its first note


class Line(NamedTuple):
    """The notes of a new track."""

    name: str
    score: Score


@dataclass(frozen=True)
class Project:
    """`clock` turns ticks into seconds; `part`, a name or number, is the only one of the model, None: all, with `drums`
    or without."""

    data: bytes
    clock: TempoMap
    part: str | None = None
    drums: bool = False
    notation: Notation | None = None  # the score that the file is of

    def __reduce__(self) -> tuple[type["Project"], tuple[object, ...]]:
        """Equal files are equal bytes."""
        return Project, (self.data, self.clock, self.part, self.drums, self.notation)

    @cached_property
    def chunks(self) -> Chunks:
        return read_chunks(self.data, Counter())

    @cached_property
    def file(self) -> EventFile:
        return midi.events_of(self.chunks)

    @cached_property
    def notes(self) -> list[list[Note]]:
        return [notes_of(track) for track in self.file.tracks]

    @cached_property
    def raw(self) -> RawMidi:
        return read_raw(self.chunks, Counter())

    @cached_property
    def parts(self) -> list[Part]:
        parts, raw = list[Part](), self.raw
        for t in range(len(self.file.tracks)):
            for channel in raw.channels:
                if (mine := channel.notes[5] == t).any():
                    pitches, programs = channel.notes[2, mine], channel.notes[4, mine]
                    is_drums = bool((programs == DRUMS).all())
                    number, name = len(parts) + 1, raw.names[t]
                    parts.append(Part(number, t, channel.number % CHANNELS, name, pitches, is_drums, int(programs[0])))
        return parts

    @cached_property
    def model_parts(self) -> list[Part]:
        """The parts of the model. Raises ConfigError for a missing one."""
        if self.part is None:
            return [part for part in self.parts if self.drums or not part.is_drums]
        matches = [part for part in self.parts if self.part == str(part.number)]
        matches = matches or [part for part in self.parts if self.part == part.name]
        tracks, instruments = {part.track for part in matches}, self.notation.instruments if self.notation else []
        is_instrument = any(tracks <= {place_of(n)[0] for n in staves} for staves in instruments)
        is_one = len(tracks) == 1 and len({part.program for part in matches}) == 1  # as a guitar's strings
        if not (is_one or (matches and is_instrument)):
            there = ", ".join(f"{part.number} {part.name}".strip() for part in self.parts)
            why = "several parts have this name" if matches else ""
            raise ConfigError("part", got=self.part, why=why, allowed=f"the name or number of one: {there}")
        return matches

    def alone(self) -> bytes:
        """The file with the notes of the model's parts only."""
        channels = {(part.track, part.channel) for part in self.model_parts}
        tracks = []
        for t, track in enumerate(self.file.tracks):
            events = [e for e in track.events if not (e.begins or e.ends) or (t, e.channel) in channels]
            tracks.append(EventTrack(events, track.end))
        return midi.write_events(self.file._replace(tracks=let_go(tracks, self.raw.channels)))

    @classmethod
    def new(cls, quarter_s: float, signature: tuple[int, int] | None = None) -> "Project":
        """A file without notes."""
        events = [tempo_event(0, 60 / quarter_s)]
        beats, unit = signature or (4, 4)
        events.append(Event(0, bytes([0xFF, 0x58, 4, beats, unit.bit_length() - 1, 24, 8])))
        division = TICKS_PER_QUARTER.to_bytes(2)
        mspq = int.from_bytes(events[0].data[3:])
        clock = TempoMap(RawMidi([], TICKS_PER_QUARTER, np.array([0]), np.array([mspq])))
        return cls(midi.write_events(EventFile(division, [EventTrack(events, 0)])), clock)

    def continue_at(
        self,
        lines: Sequence[Line],
        from_s: float,
        text: str = "",
        *,
        pedal: bool = False,
        seed: bool = True,
        more: Mapping[int, Sequence[Event]] = {},
    ) -> bytes:
        """The file up to `from_s`, without the `seed` only its clock, markers and names, and new lines; `more` are new
        events of its own tracks."""
        join = self.tick(from_s)
        tracks = self.tracks_until(join)
        is_whole = all(note.on < join for notes in self.notes for note in notes)  # one that a person cuts has no end
        if is_whole and (tempo := pace_at(join, self.clock, self.raw)) is not None:
            tracks[0] = with_events(tracks[0], [], [tempo_event(join, tempo)])
        new = self.new_tracks(lines, join, tracks, text=text, pedal=pedal, shares=len(lines) == 1)
        ends = lifts(self.raw.channels, join)
        if new:
            new[0] = with_events(new[0], [], [lift for lift in ends if lift not in new[0].events])
        elif more:
            words = [meta(0, midi.TEXT, text)] if text else []
            tracks[min(more)] = with_events(tracks[min(more)], [], [*words, *ends])
        for t, events in more.items():
            channels = sorted({e.channel for e in events if e.channel is not None})
            rest = [e for channel in channels for e in rest_events(tracks, channel, join, goes_on=True)]
            tracks[t] = with_events(tracks[t], [], [*rest, *events])
        if not seed:
            tracks = [EventTrack([e for e in t.events if e.channel is None], t.end) for t in tracks]
        return midi.write_events(self.file._replace(tracks=tracks + new))

    def tracks_until(self, tick: int, *, whole: bool = True) -> list[EventTrack]:
        """The tracks without the music from a tick on; a `whole` file stays if its notes end before."""
        tracks, gone = list(self.file.tracks), forgotten_presses(self.raw.channels, self.clock, tick)
        if not whole or any(note.on >= tick or note.off > tick for notes in self.notes for note in notes):
            tracks = [_cut(*each, tick) for each in zip(tracks, self.notes, strict=True)]
        return [EventTrack([e for e in t.events if e not in gone], t.end) for t in tracks] if gone else tracks

    def until(self, at_s: float) -> "Project":
        """The file without the music after a moment, but for clock and markers."""
        tick = self.tick(at_s)
        tracks = self.tracks_until(tick)
        if tracks == self.file.tracks:
            return self
        return replace(self, data=midi.write_events(self.file._replace(tracks=let_go(tracks, self.raw.channels, tick))))

    def with_only(self, score: Score) -> "Project":
        """The file without notes of the model's parts that a score lacks."""
        counts = Counter(zip(self.clock.ticks(score.onset_s).tolist(), score.pitch.tolist(), strict=True))
        gone: dict[int, list[int]] = {}
        for part in sorted(self.model_parts, key=lambda part: -float(part.pitches.mean())):
            for note in (each for each in self.notes[part.track] if each.channel == part.channel):
                if counts[note.on, note.pitch] > 0:
                    counts[note.on, note.pitch] -= 1
                else:
                    gone.setdefault(part.track, []).extend(k for k in (note.first, note.last) if k is not None)
        tracks = [with_events(track, gone.get(t, []), []) for t, track in enumerate(self.file.tracks)]
        tracks = let_go(tracks, self.raw.channels)
        return replace(self, data=midi.write_events(self.file._replace(tracks=tracks))) if gone else self

    def beside(
        self, lines: Sequence[Line], text: str = "", *, pedal: bool = False, channel: int | None = None
    ) -> bytes:
        """The file and new lines from its beginning on, on a `channel` if it is free."""
        new = self.new_tracks(lines, 0, self.file.tracks, text=text, pedal=pedal, wished=channel)
        return midi.write_events(self.file._replace(tracks=self.file.tracks + new))

    def by_register(self, score: Score) -> list[tuple[int, Score]]:
        """New notes by the part whose median pitch is nearest."""
        middle = np.array([np.median(part.pitches) for part in self.model_parts])  # (P,)
        nearest = np.abs(score.pitch[:, None].astype(np.int64) - middle).argmin(1)
        return [
            (part.number, score.select(nearest == k)) for k, part in enumerate(self.model_parts) if (nearest == k).any()
        ]

    def beside_beat_s(self, score: Score) -> float | None:
        """The mean distance of onsets from the file's sixteenths, in seconds; None without a beat."""
        per = self.clock.ticks_per_quarter / STEPS_PER_QUARTER
        if not per or not len(score):
            return None
        nearest = np.rint(np.rint(self.clock.ticks_at(score.onset_s) / per) * per)
        return float(np.abs(self.clock.seconds(nearest) - score.onset_s).mean())

    def tick(self, at_s: float) -> int:
        return int(self.clock.ticks(np.array([at_s]))[0])

    def in_ticks(self, score: Score) -> list[Note]:
        """Notes in ticks, one or more long."""
        on = self.clock.ticks(score.onset_s)
        off = np.maximum(self.clock.ticks(score.offset_s), on + 1)
        columns = zip(*(x.tolist() for x in (on, off, score.pitch, score.velocity)), strict=True)
        return [Note(on, off, 0, pitch, velocity, 0, None) for on, off, pitch, velocity in columns]

    def new_tracks(
        self,
        lines: Sequence[Line],
        from_tick: int,
        tracks: Sequence[EventTrack],
        *,
        text: str = "",
        pedal: bool = False,
        shares: bool = False,
        wished: int | None = None,
    ) -> list[EventTrack]:
        """A track on its own channel for each line and program, and for overlaps of one pitch.

        It sounds like the part of this program, and `shares` that part's channel, or has the `wished` one, if nothing
        follows there."""
        out, used = list[EventTrack](), set[int]()
        each = [
            (name, int(program), layer)
            for name, score in lines
            for program in np.unique(score.program)
            for layer in layers_of(self.in_ticks(score.select(score.program == program)))
        ]
        for name, program, notes in each:
            like = self._channel(program, from_tick, tracks)
            number, is_quiet, state = DRUM_CHANNEL, False, list[Event]()
            if program != DRUMS:
                shared = like if shares and value_of(tracks, like or 0, from_tick, midi.PROGRAM) == program else wished
                number, is_quiet = place_for(tracks, notes, from_tick, used, shared, like)
                if is_quiet:
                    rest = rest_events(tracks, number, from_tick) if number < CHANNELS else []
                    change = Event(from_tick, bytes([midi.PROGRAM | number % CHANNELS, program]))
                    state = [*sound_of(tracks, like, number, program, from_tick), change, *rest]
            used.add(number)
            channel = number % CHANNELS
            head = [meta(0, midi.NAME, name)]
            head += [Event(0, bytes([midi.META, midi.PORT, 1, number // CHANNELS]))] if number >= CHANNELS else []
            head += [meta(0, midi.TEXT, text)] if text and not out else []
            keys, presses = with_pedal(notes, self.clock, from_tick) if pedal and is_quiet else (notes, [])
            events = in_order([*head, *state, *events_of(keys, channel), *pedal_events(presses, channel)])
            out.append(EventTrack(events, max(from_tick, events[-1].tick)))
        return out

    def _channel(self, program: int, tick: int, tracks: Sequence[EventTrack]) -> int | None:
        """The channel with the most notes of this program at a tick, or of all."""
        of, other = Counter[int](), Counter[int]()
        for part in self.model_parts:
            plays = value_of(tracks, part.channel, tick, midi.PROGRAM) == program
            (of if plays and not part.is_drums else other)[part.channel] += len(part.pitches)
        return (of or other).most_common(1)[0][0] if of or other else None


# of meta events, what belongs to the project and not to the notes: markers, cues, tempo, time code, meter, key
OF_PLACE = {0x06, 0x07, 0x51, 0x54, 0x58, 0x59}


def _cut(track: EventTrack, notes: Sequence[Note], tick: int) -> EventTrack:
    """The track without its music from a tick on, where sounding notes end."""
    gone = [k for k, e in enumerate(track.events) if e.tick >= tick and not _stays(e, tick)]
    if not gone and not any(note.off > tick for note in notes):
        return track
    gone += [k for note in notes if note.on < tick < note.off for k in [note.last] if k is not None]
    more = [Event(tick, bytes([midi.NOTE_OFF | n.channel, n.pitch, 64])) for n in notes if n.on < tick < n.off]
    events = with_events(track, gone, more).events
    return EventTrack(events, max([min(track.end, tick), *(event.tick for event in events[-1:])]))


def _stays(event: Event, tick: int) -> bool:
    return (event.tick == tick and event.ends) or (event.kind == midi.META and event.data[1] in OF_PLACE)
