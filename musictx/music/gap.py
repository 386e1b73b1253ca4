"""A gap of a person's file written again."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from musictx.music import midi_file as midi
from musictx.music.channel_use import is_down, is_free, lasts, value_of
from musictx.music.channels import CHANNELS
from musictx.music.midi_file import Event, Note, meta, notes_of, with_events
from musictx.music.new_events import events_of
from musictx.music.pedal import let_go
from musictx.music.project import NAME, Line, Part, Project
from musictx.music.score import DRUMS, Score
from musictx.music.ticks import FORGOTTEN_S, PEDAL, PEDAL_DOWN, sounding


class GapNotes(NamedTuple):
    """The notes of a gap, in seconds of the file: new ones by part number, and all `others` of these parts, as they are
    now."""

    new: Sequence[tuple[int, Score]]
    others: Score
    from_s: float
    to_s: float
    step_s: float  # a note is inside by its nearest step; 0: by its exact time
    parts: Sequence[int] = ()  # their numbers; none: all that are heard


class PartNote(NamedTuple):
    """A note of the file, its part, and the tick of its end with its pedal."""

    note: Note
    part: Part
    end: int


def fill_in(project: Project, gap: GapNotes, text: str = "", *, pedal: bool = False) -> bytes:
    """The file with new notes in the gap: in their parts, or on another track where the channel changes them, and with
    a `pedal`."""
    filling = Filling(project, gap)
    filling.lift_pedals()
    filling.empty()
    filling.add(pedal)
    return filling.to_bytes(text, pedal)


class Filling:
    """The file that `fill_in` changes."""

    def __init__(self, project: Project, gap: GapNotes) -> None:
        self.project, self.gap = project, gap
        self.first, self.last = project.tick(gap.from_s), project.tick(gap.to_s)
        self.parts = {part.number: part for part in project.parts}
        self.filled_parts = [self.parts[number] for number in gap.parts] or project.model_parts
        self.tracks = list(project.file.tracks)
        self.loose = list[Score]()  # notes that go to a track of their own

    def lift_pedals(self) -> None:
        """Lifts the pedals that only these parts have; nobody hears a forgotten one."""
        for channel in sorted({part.channel for part in self.filled_parts}):  # so that no note rings through the gap
            is_shared = any(part.channel == channel and part not in self.filled_parts for part in self.project.parts)
            raw, *others = (raw for raw in self.project.raw.channels if raw.number % CHANNELS == channel)
            spans = sounding(raw, self.project.clock)[2]
            spans = spans[(spans[:, 0] < self.gap.to_s) & (spans[:, 1] > self.gap.from_s)]
            if not is_shared and not others and len(spans) and (np.diff(spans) <= FORGOTTEN_S).all():
                self._lift(channel)

    def _lift(self, channel: int) -> None:
        def is_pedal(event: Event) -> bool:
            return event.kind == midi.CONTROL and event.channel == channel and event.data[1] == PEDAL

        at = [(e.tick, t, k) for t, track in enumerate(self.tracks) for k, e in enumerate(track.events) if is_pedal(e)]
        before, after = (
            value_of(self.tracks, channel, tick - 1, midi.CONTROL, PEDAL) for tick in (self.first, self.last)
        )
        places = [(tick, t) for tick, t, _ in at if tick < self.last]
        if not places:  # the first press lies in the last tick, behind the gap
            return
        home = max(places)[1]
        more = [Event(self.first, bytes([midi.CONTROL | channel, PEDAL, 0]))] if before >= PEDAL_DOWN else []
        if after >= PEDAL_DOWN and not any(tick == self.last for tick, _, _ in at):
            more.append(Event(self.last, bytes([midi.CONTROL | channel, PEDAL, after])))
        for t in {t for _, t, _ in at}:
            gone = [k for tick, of, k in at if of == t and self.first <= tick < self.last]
            self.tracks[t] = with_events(self.tracks[t], gone, more if t == home else [])

    def part_notes(self) -> list[PartNote]:
        """The notes of the parts to fill."""
        ends, out = dict[tuple[int, int, int, int], list[int]](), list[PartNote]()
        for raw in self.project.raw.channels:
            until = self.project.clock.ticks(sounding(raw, self.project.clock)[1])
            rows = zip(raw.notes[5].tolist(), raw.notes[0].tolist(), raw.notes[2].tolist(), until.tolist(), strict=True)
            for track, on, pitch, end in sorted(rows):
                ends.setdefault((track, raw.number % CHANNELS, on, pitch), []).append(end)
        for part in self.filled_parts:
            for note in sorted(notes_of(self.tracks[part.track]), key=lambda note: note.off):
                if note.channel == part.channel:
                    releases = ends.get((part.track, part.channel, note.on, note.pitch))
                    out.append(PartNote(note, part, releases.pop(0) if releases else note.off))
        return out

    def empty(self) -> None:
        """Takes the notes out of the gap; those that cross its borders end and begin as `others` do."""
        clock, others, rows = self.project.clock, self.gap.others, dict[tuple[int, int], list[int]]()
        columns = clock.ticks(others.onset_s), others.pitch, clock.ticks(others.offset_s)
        for on, pitch, end in sorted(zip(*(column.tolist() for column in columns), strict=True)):
            rows.setdefault((on, pitch), []).append(end)
        part_notes, strikes = self.part_notes(), set[tuple[int, int, int]]()  # strikes that are gone
        inside = self.inside([each.note.on for each in part_notes])
        gone = {part.track: list[int]() for part in self.filled_parts}
        more = {part.track: list[Event]() for part in self.filled_parts}
        for each in sorted(part_notes, key=lambda each: (-each.note.on, each.end)):
            note, channel, track = each.note, each.part.channel, each.part.track
            ends = rows.get((note.on, note.pitch), [])
            is_inside = note.on in inside
            until = None if is_inside else self.first if note.on < self.first else each.end  # of one unheard
            if ends:
                until = ends.pop(ends.index(each.end) if each.end in ends else 0)
            # under a pedal a strike that is gone ended it
            rings = (channel, note.pitch, each.end) in strikes and not lasts(self.tracks, channel, note.on, each.end)
            if note.on >= self.last or not (is_inside or each.end > self.first or rings):
                continue
            off = self._key_up(each, until) if until is not None else None
            if off != note.off:
                gone[track] += [note.first] if off is None else []
                gone[track] += [note.last] if note.last is not None else []
            if off is None:
                strikes.add((channel, note.pitch, note.on))
                self.loose += [self._alone(note._replace(off=until), each.part)] if until is not None else []
            elif off != note.off:
                more[track].append(Event(off, bytes([midi.NOTE_OFF | channel, note.pitch, 64])))
        for each in part_notes:  # those that sound out of the gap, if they begin again at its border
            note, ends = each.note, rows.get((self.last, each.note.pitch), [])
            if note.on < self.last < each.end in ends:
                ends.remove(each.end)
                off = note.off if note.off > self.last else max(each.end - 1, self.last + 1)
                more[each.part.track] += events_of([note._replace(on=self.last, off=off)], note.channel)
        for track, places in gone.items():
            self.tracks[track] = with_events(self.tracks[track], places, more[track])
        if any(gone.values()):
            self.tracks = let_go(self.tracks, self.project.raw.channels)

    def inside(self, ticks: Sequence[int]) -> set[int]:
        """The ticks at which notes begin inside the gap."""
        at_s = np.array([self.gap.from_s, self.gap.to_s, *self.project.clock.seconds(np.array(ticks, np.int64))])
        from_s, to_s, *steps = np.rint(at_s / self.gap.step_s) if self.gap.step_s else at_s
        return {tick for tick, step in zip(ticks, steps, strict=True) if from_s <= step < to_s}

    def _key_up(self, part_note: PartNote, until: int) -> int | None:
        """The release of a key whose note sounds to `until`; None where the channel cannot play it."""
        note, end, channel = part_note.note, part_note.end, part_note.part.channel
        if note.off <= self.first == until and not is_down(self.tracks, channel, until, until + 1):
            return note.off  # the pedal lets it go
        if until == end > self.last and is_down(self.tracks, channel, self.last, self.last + 1):
            return max(note.off, self.last + 1)  # the pedal holds it
        return self._fitting(channel, note.on, until)

    def _fitting(self, channel: int, on: int, off: int) -> int | None:
        """The release of a key, before a pedal comes down at the border; None for none."""
        early = off - 1 if off == self.last and off - 1 > on else off
        return next((at for at in (off, early) if lasts(self.tracks, channel, on, at)), None)

    def _alone(self, note: Note, part: Part) -> Score:
        program = value_of(self.tracks, part.channel, note.on, midi.PROGRAM)
        on_s, off_s = self.project.clock.seconds(np.array([note.on, note.off]))
        of = DRUMS if part.is_drums else program
        return Score([on_s], [off_s], [note.pitch], [note.velocity], program=of)

    def add(self, pedal: bool) -> None:
        """Puts new notes in their parts, if these play them unchanged."""
        sounds = [note for track in self.tracks for note in notes_of(track)]
        for number, score in self.gap.new:
            part, more, rest = self.parts[number], list[Note](), np.ones(len(score), dtype=bool)
            is_held = pedal or is_down(self.tracks, part.channel, self.first, self.last)
            for k, note in enumerate([] if is_held else self.project.in_ticks(score)):
                off = self._fitting(part.channel, note.on, note.off)
                if off is not None and is_free(note, part.channel, sounds, more):
                    rest[k] = False
                    more.append(note._replace(off=off))
            track = self.tracks[part.track]
            self.tracks[part.track] = with_events(track, [], list(events_of(more, part.channel)))
            self.loose += [score.select(rest)] if rest.any() else []

    def to_bytes(self, text: str, pedal: bool) -> bytes:
        if self.loose:
            notes = Score.merge(self.loose)
            from_tick = min(self.first, int(self.project.clock.ticks(notes.onset_s).min()))
            self.tracks += self.project.new_tracks([Line(NAME, notes)], from_tick, self.tracks, text=text, pedal=pedal)
        elif text:
            self.tracks[0] = with_events(self.tracks[0], [], [meta(0, midi.TEXT, text)])
        return midi.write_events(self.project.file._replace(tracks=self.tracks))
