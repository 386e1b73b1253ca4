"""A person's scores as seeds."""

from bisect import bisect_left, bisect_right
from collections.abc import Collection
from dataclasses import replace
from itertools import accumulate
from math import gcd
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from musictx.errors import ConfigError, TokenError, UserError
from musictx.generate.primer import ON_LINE_S, ROUNDED_S
from musictx.generate.primer import Part as Region
from musictx.music.channels import drums_of
from musictx.music.midi_file import EventTrack, read_events, with_events, write_events
from musictx.music.new_events import tempo_event
from musictx.music.notation.midi import KEPT, place_of, to_midi
from musictx.music.notation.midi_staves import staves_of
from musictx.music.notation.notation import Losses, Notation
from musictx.music.notation.parts import Tempo
from musictx.music.notation.swing import straight
from musictx.music.pace import pace_before
from musictx.music.project import Project
from musictx.music.read import kind_of_notation, read_bytes, read_tracks, score_of, whole
from musictx.music.repairs import say_repairs
from musictx.music.score import UNITS, Meter
from musictx.music.upbeat import SIGNATURE, completes_upbeat
from musictx.tokenizers.score import ScoreTokenizer
from musictx.tokenizers.score.slots import TUNE, slots_of

MOST_TICKS = 0x7FFF  # of a quarter


class ScoreSeed(NamedTuple):
    """A score with its file; `staves` say which part of the file each one is."""

    file: Path
    notation: Notation  # each keyboard on two staves
    slots: tuple[int | None, ...]  # of the staves
    staves: tuple[int, ...]
    places: list[list[tuple[int, int]]]  # the tracks and channels of each part
    loud: dict[tuple[int, int, int], int]  # the velocity of each part, onset and pitch, if the file is MIDI
    project: Project  # the MIDI file, or MIDI of the notation
    is_midi: bool
    meter: Meter
    remarks: tuple[str, ...]
    in_file: Losses  # what its MIDI file has and its notation lacks

    @property
    def later_meters(self) -> int:
        """How many time signatures the file has behind the last bar."""
        end = self.notation.end * int.from_bytes(self.project.file.division) / UNITS
        return sum(
            e.data.startswith(SIGNATURE) and e.tick >= end for track in self.project.file.tracks for e in track.events
        )

    @property
    def completes_upbeat(self) -> bool:
        return completes_upbeat(read_tracks(self.project.data, self.file))

    @property
    def used(self) -> list[int]:
        """The slots of staves with notes."""
        return [slot for slot in self.slots if slot is not None]


def read_score(
    file: Path,
    tokenizer: ScoreTokenizer,
    part: str | None = None,
    given: bytes | Notation | None = None,
    tune: str | None = None,
) -> ScoreSeed:
    """Reads a score, MIDI on a grid or notation, or what is `given` in place of the file; `part` is the only one that
    changes, `tune` the one that others go with. Raises UserError, which names the file, ConfigError for a part that is
    not there, and for a tune with chords."""
    if isinstance(given, Notation):
        notation, losses, data, is_midi = given, Losses(), to_midi(given), False
    else:
        data = read_bytes(file) if given is None else given
        notation, losses = score_of(data, file)
        is_midi = not kind_of_notation(data, file)
    if not any(each.notes for each in notation.parts):
        raise UserError(f"{file}: the score has no notes", "give one with music in it")
    tracks = read_tracks(data, file)
    midi = with_all_units(whole(data, file))
    project = Project(midi, read_tracks(midi, file).tempo_map, part, notation=None if is_midi else notation)
    drums = drums_of(project.raw.channels)
    staves, _ = staves_of(straight(project.file, drums)[0], drums)
    per_unit = int.from_bytes(project.file.division) / UNITS
    struck = ((n, note) for n, staff in enumerate(staves) for note in staff.notes if is_midi)
    loud = {(n, round(note.on / per_unit), note.pitch): note.velocity for n, note in struck}
    places = [staff.places for staff in staves] if is_midi else [[place_of(n)] for n in range(len(notation.parts))]
    asked = set[tuple[int, int]]()
    if part is not None or tune is not None:
        asked = asked_places(project if tune is None else replace(project, part=tune), file)
    lead = None
    if tune is not None:
        lead = tune_of(notation, [n for n, place in enumerate(places) if asked.intersection(place)], tune, file)
    divided = notation.divided - {lead}
    numbers = tuple(n for n in range(len(notation.parts)) for _ in range(1 + (n in divided)))
    notation = notation.on_two_staves(lead)
    mine = [n for n, home in enumerate(numbers) if asked.intersection(places[home])]
    slots = tuple(slots_of(notation, mine, None if lead is None else numbers.index(lead)))
    if lead is not None and slots[numbers.index(lead)] != TUNE:
        why = "it is a hand of a keyboard, and the other hand goes with it"
        raise ConfigError("part", got=tune, why=why, hint="leave it out").of(file)
    try:
        tokenizer.sections(notation, slots, None)
    except TokenError as error:
        raise error.of(file) from None
    in_file = Losses({kind: count for kind, count in losses.items() if is_midi and kind in KEPT})
    losses = losses - in_file
    lost = say_repairs(losses) + (say_repairs(tracks.repairs) if is_midi else [])  # notation has one list of both
    lost += [notation.swing.remark] * (is_midi and not notation.swing.is_straight)
    heard = [staff for staff, slot in zip(notation.parts, slots, strict=True) if slot is not None]
    if beside := sum(bool(staff.notes) for staff in notation.parts) - len(heard):
        lost.append(f"{beside} of {beside + len(heard)} staves are not heard and get no new notes")
    remarks = (f"{file}, as the model hears it: {'; '.join(lost)}",) if lost else ()
    meter = replace(tracks, numbers=notation.numbered).meter()
    return ScoreSeed(file, notation, slots, numbers, places, loud, project, is_midi, meter, remarks, in_file)


def tune_of(notation: Notation, staves: list[int], name: str, file: Path) -> int:
    """The number of the part that a person calls the tune. Raises ConfigError for drums and for chords."""
    lines = [n for n in staves if notation.parts[n].notes and notation.parts[n].is_line]
    if len(staves) != 1 or not lines:
        why = (
            f"it plays several notes at once{_first(notation, staves)}"
            if staves
            else "it has drums, which a score lacks"
        )
        raise ConfigError("part", got=name, why=why, allowed="a part with one note at a time").of(file)
    return lines[0]


def _first(notation: Notation, staves: Collection[int]) -> str:
    """Where the first note begins beside another of these staves."""
    notes = sorted(note for n in staves for note in notation.parts[n].notes)
    until = accumulate((note.offset for note in notes), max)
    beside = [note.onset for end, note in zip(until, notes[1:], strict=False) if note.onset < end]
    begins, numbers = notation.numbered.T
    return "".join(f", first in bar {numbers[bisect_right(begins, at) - 1]}" for at in beside[:1])


def with_all_units(data: bytes) -> bytes:
    """A MIDI file with a tick for each unit, so that new notes have exact places; what is there stays at its time."""
    file = read_events(data)
    per_quarter = int.from_bytes(file.division)
    factor = UNITS // gcd(UNITS, per_quarter)
    if factor == 1 or factor * per_quarter > MOST_TICKS:  # so many ticks that nobody hears one
        return data
    tracks = [
        EventTrack([event._replace(tick=event.tick * factor) for event in track.events], track.end * factor)
        for track in file.tracks
    ]
    return write_events(file._replace(division=(per_quarter * factor).to_bytes(2), tracks=tracks))


def until(seed: ScoreSeed, part: Region) -> ScoreSeed:
    """The first bars of a score, as many as `part` says; bar 1 follows an upbeat, and silence. Raises ConfigError for
    an end beyond the music, UserError for seconds without notes."""
    old, lines_s = seed.notation, seconds_at([end for _, end in seed.notation.spans], seed)
    first = min(max(old.silent_bars, old.has_upbeat), len(old.bars) - 1)
    numbers = [*dict.fromkeys(old.numbers[first:])]
    if part.bars is not None:
        following = numbers[part.bars :]
        count = bisect_left(old.numbers, following[0]) if following else len(old.bars)
    else:
        seconds = part.seconds if part.seconds is not None else part.until_s
        if part.until_s is not None and part.until_s > lines_s[-1] + ROUNDED_S:
            allowed = f"more than 0 and at most {lines_s[-1]:.2f}, where the music ends"
            raise ConfigError("from_s", got=part.until_s, allowed=allowed).of(seed.file)
        count = len(old.bars) if seconds is None else int((lines_s < seconds - ON_LINE_S).sum()) + 1
    if count >= len(old.bars):
        less = part.beyond(len(numbers), float(lines_s[-1]))
        return seed._replace(remarks=(*seed.remarks, *(f"{seed.file}: {remark}" for remark in less)))
    notation = old.first_bars(count)
    end = notation.end
    if not any(each.notes for each in notation.parts):
        raise UserError(f"{seed.file}: no notes to continue", "raise seed_seconds= or from_s=, or leave it out")
    project = seed.project.until(float(seconds_at(end, seed)))
    loud = {place: velocity for place, velocity in seed.loud.items() if place[1] < end}
    return seed._replace(notation=notation, project=project, loud=loud)


def at_pace(seed: ScoreSeed, join: int) -> ScoreSeed:
    """A score that slows down to its end, with the tempo before that from where new bars begin; a line says so. One
    whose file has later tempi keeps these."""
    old, clock = seed.notation, seed.project.clock
    tempi = [(tempo.onset, tempo.quarters_a_minute) for tempo in old.tempi]
    speed = pace_before(tempi, [*(bar.onset for bar in old.bars), old.end])
    at = round(join * clock.ticks_per_quarter / UNITS)
    if speed is None or clock.tempo[-1] >= at:
        return seed
    file = seed.project.file
    tracks = [with_events(file.tracks[0], [], [tempo_event(at, speed)]), *file.tracks[1:]]
    data = write_events(file._replace(tracks=tracks))
    read = read_tracks(data, seed.file)
    beats = (tempo.beat for tempo in old.tempi if tempo.beat and tempo.quarters_a_minute == speed)
    mark = Tempo(join, speed, next(beats, UNITS))
    return seed._replace(
        notation=replace(old, tempi=(*old.tempi, mark)),
        project=replace(seed.project, data=data, clock=read.tempo_map),
        meter=replace(read, numbers=old.numbered).meter(),
        remarks=(*seed.remarks, f"{seed.file}: it slows down to its end; new bars have the tempo before"),
    )


def seconds_at(units: ArrayLike, seed: ScoreSeed) -> NDArray[np.float64]:
    """Units in seconds of the file, which may swing."""
    clock = seed.project.clock
    return clock.seconds(np.rint(seed.notation.swing.played(units) * (clock.ticks_per_quarter / UNITS)))


def free_slots(seed: ScoreSeed) -> list[int]:
    """The slots that get new music. Raises ConfigError for a part that is not there."""
    if seed.project.part is None:
        return seed.used
    mine = asked_places(seed.project, seed.file)
    pairs = zip(seed.staves, seed.slots, strict=True)
    slots = [slot for n, slot in pairs if slot is not None and mine.intersection(seed.places[n])]
    if not slots:
        why = "it has drums, which a score lacks"
        raise ConfigError("part", got=seed.project.part, why=why, allowed="another").of(seed.file)
    return slots


def asked_places(project: Project, file: Path) -> set[tuple[int, int]]:
    """The tracks and channels of the asked part. Raises ConfigError for one that is not there."""
    try:
        return {(part.track, part.channel) for part in project.model_parts}
    except ConfigError as error:
        raise error.of(file) from None
