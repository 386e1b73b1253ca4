"""A person's scores as seeds, and what is to be drawn in them: more bars, a gap, or the hands beside a tune."""

from bisect import bisect_left, bisect_right
from collections.abc import Collection
from dataclasses import replace
from math import gcd
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from musictx.errors import ConfigError, TokenError, UserError
from musictx.generate.primer import ON_LINE_S, ROUNDED_S
from musictx.generate.primer import Part as Region
from musictx.generate.requests import DEFAULT_S, Length
from musictx.generate.scores import Template, most_bars
from musictx.music.midi_file import EventFile, EventTrack, read_events, write_events
from musictx.music.notation.chord_symbols import over
from musictx.music.notation.lyrics import cut
from musictx.music.notation.midi import KEPT, place_of, staves_of, to_midi
from musictx.music.notation.notation import KEYBOARDS, Losses, Notation
from musictx.music.notation.parts import Bar, Part
from musictx.music.notation.swing import straight
from musictx.music.project import Project
from musictx.music.read import kind_of_notation, read_bytes, read_tracks, score_of, whole
from musictx.music.repairs import say_repairs
from musictx.music.score import UNITS, Meter
from musictx.music.upbeat import SIGNATURE, completes_upbeat
from musictx.tokenizers.score import ScoreTokenizer
from musictx.tokenizers.score.slots import LEFT, RIGHT, TUNE, slots_of

MOST_TICKS = 0x7FFF  # of a quarter
HANDS, NEW_PARTS = (RIGHT, LEFT), ("Piano", "Accompaniment")  # the second name where the first is taken


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
    staves, _ = staves_of(straight(project.file)[0])
    per_unit = int.from_bytes(project.file.division) / UNITS
    struck = ((n, note) for n, staff in enumerate(staves) for note in staff.notes if is_midi)
    loud = {(n, round(note.on / per_unit), note.pitch): note.velocity for n, note in struck}
    places = [staff.places for staff in staves] if is_midi else [[place_of(n)] for n in range(len(notation.parts))]
    divided = notation.divided
    numbers = tuple(n for n in range(len(notation.parts)) for _ in range(1 + (n in divided)))
    notation = notation.on_two_staves()
    asked = set[tuple[int, int]]()
    if part is not None or tune is not None:
        asked = asked_places(project if tune is None else replace(project, part=tune), file)
    mine = [n for n, home in enumerate(numbers) if asked.intersection(places[home])]
    slots = tuple(slots_of(notation, mine, None if tune is None else tune_of(notation, mine, tune, file)))
    try:
        tokenizer.sections(notation, slots, None)
    except TokenError as error:
        raise error.of(file) from None
    losses = Losses({kind: count for kind, count in losses.items() if not (is_midi and kind in KEPT)})
    lost = say_repairs(losses) + (say_repairs(tracks.repairs) if is_midi else [])  # notation has one list of both
    lost += [notation.swing.remark] * (is_midi and not notation.swing.is_straight)
    heard = [staff for staff, slot in zip(notation.parts, slots, strict=True) if slot is not None]
    if beside := sum(bool(staff.notes) for staff in notation.parts) - len(heard):
        lost.append(f"{beside} of {beside + len(heard)} staves are not heard and get no new notes")
    remarks = (f"{file}, as the model hears it: {'; '.join(lost)}",) if lost else ()
    meter = replace(tracks.meter(), before=notation.first - 1)
    return ScoreSeed(file, notation, slots, numbers, places, loud, project, is_midi, meter, remarks)


def tune_of(notation: Notation, staves: list[int], name: str, file: Path) -> int:
    """The staff of the part that a person calls the tune. Raises ConfigError for drums and for chords."""
    lines = [n for n in staves if notation.parts[n].notes and notation.parts[n].is_line]
    if len(staves) != 1 or not lines:
        why = "it plays several notes at once" if staves else "it has drums, which a score lacks"
        raise ConfigError("part", got=name, why=why, allowed="a part with one note at a time").of(file)
    return lines[0]


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
    return write_events(EventFile((per_quarter * factor).to_bytes(2), tracks))


def until(seed: ScoreSeed, part: Region) -> ScoreSeed:
    """The first bars of a score, as many as `part` says; bar 1 follows an upbeat, and silence. Raises ConfigError for
    an end beyond the music, UserError for seconds without notes."""
    old = seed.notation
    if part.bars is not None:
        count = part.bars + max(silent_bars(old), old.has_upbeat)
    else:
        seconds = part.seconds if part.seconds is not None else part.until_s
        lines_s = seconds_at([end for _, end in old.spans], seed)
        if part.until_s is not None and part.until_s > lines_s[-1] + ROUNDED_S:
            allowed = f"more than 0 and at most {lines_s[-1]:.2f}, where the music ends"
            raise ConfigError("from_s", got=part.until_s, allowed=allowed).of(seed.file)
        count = len(old.bars) if seconds is None else int((lines_s < seconds - ON_LINE_S).sum()) + 1
    if count >= len(old.bars):
        return seed
    notation = old.first_bars(count)
    end = notation.end
    if not any(each.notes for each in notation.parts):
        raise UserError(f"{seed.file}: no notes to continue", "raise seed_seconds= or from_s=, or leave it out")
    project = seed.project.until(float(seconds_at(end, seed)))
    loud = {place: velocity for place, velocity in seed.loud.items() if place[1] < end}
    return seed._replace(notation=notation, project=project, loud=loud)


def silent_bars(notation: Notation) -> int:
    """How many bars are before the first note, as in a DAW."""
    first = min(note.onset for part in notation.parts for note in part.notes)
    return sum(end <= first for _, end in notation.spans)


def seconds_at(units: ArrayLike, seed: ScoreSeed) -> NDArray[np.float64]:
    """Units in seconds of the file, which may swing."""
    clock = seed.project.clock
    return clock.seconds(np.rint(seed.notation.swing.played(units) * (clock.ticks_per_quarter / UNITS)))


def continued(seed: ScoreSeed, part: Region, length: Length) -> tuple[ScoreSeed, Template]:
    """The part of a score that goes on, and new bars for all its staves. Raises UserError for bars without notes,
    ConfigError for too many new ones."""
    first = until(seed, part)
    old, is_whole = first.notation, first is seed
    bar = meter_of_rest(old)
    slots = free_slots(seed)
    count, most = bars_of(length, old, bar), most_bars(len(seed.used))
    if count > most:
        most_s = int(most * bar.full / _units_a_second(old))
        name, got, allowed = ("bars", count, most) if length.seconds is None else ("seconds", length.seconds, most_s)
        why = f"{count} new bars for {len(seed.used)} part{'s' * (len(seed.used) != 1)}"
        hint = "then go on with the result"
        raise ConfigError(f"Length.{name}", got=got, why=why, allowed=f"at most {allowed}", hint=hint).of(seed.file)
    template = more_bars(old, seed.slots, count, fill=is_whole)
    return first, replace(template, free=frozenset(each for each in template.free if each[0] in slots))


def more_bars(old: Notation, slots: tuple[int | None, ...], count: int, fill: bool = True) -> Template:
    """New bars for all parts with a slot, behind the last bar line; `fill` gives a last bar that is not full rests, but
    for one that goes back to an upbeat."""
    last, meter = old.bars[-1], meter_of_rest(old)
    goes_back = old.source is not None and old.source.ends_in_repeat
    end = max(old.end, last.onset + last.full) if fill and not goes_back else old.end
    bars = [meter._replace(onset=end + k * meter.full) for k in range(count)]
    notation = replace(old, bars=(*old.bars, *bars), end=end + count * meter.full)
    numbers = range(len(old.bars), len(notation.bars))
    free = frozenset((slot, n) for slot in slots if slot is not None for n in numbers)
    return Template(notation, slots, free, TUNE, old)


def meter_of_rest(notation: Notation) -> Bar:
    """A bar of the meter in which a score goes on: the last, unless the last bar only completes the upbeat, as MIDI has
    it."""
    bars, last = notation.bars, notation.bars[-1]
    if len(bars) > 2 and last[1:] != bars[-2][1:] and bars[1].onset + last.full == bars[-2].full:
        return bars[-2]
    return last


def bars_of(length: Length, notation: Notation, bar: Bar) -> int:
    """A length in whole bars, at the last tempo."""
    if length.bars is None:
        seconds = DEFAULT_S if length.seconds is None else length.seconds
        return max(round(seconds * _units_a_second(notation) / bar.full), 1)
    return int(length.bars)


def _units_a_second(notation: Notation) -> float:
    """At the last tempo."""
    return notation.tempi[-1].quarters_a_minute / 60 * UNITS


def with_gap(seed: ScoreSeed, from_bar: int, to_bar: int) -> Template:
    """A score without some bars, of all parts or of the one that `read_score` was given; bar 1 follows an upbeat.
    Raises ConfigError for bars and parts that are not there."""
    old = seed.notation
    most = old.numbers[-1]
    if not old.first <= from_bar <= to_bar <= most:
        why, allowed = f"to_bar={to_bar}", f"bars from {old.first} to {most}"
        raise ConfigError("from_bar", got=from_bar, why=why, allowed=allowed).of(seed.file)
    bars = range(bisect_left(old.numbers, from_bar), bisect_right(old.numbers, to_bar))
    slots = free_slots(seed)
    free = frozenset((slot, n) for slot in slots for n in bars)
    parts = tuple(
        _without(part, old, bars) if slot in slots else part for part, slot in zip(old.parts, seed.slots, strict=True)
    )
    return Template(replace(old, parts=parts), seed.slots, free, TUNE, old)


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


def _without(part: Part, notation: Notation, bars: Collection[int]) -> Part:
    lines = [bar.onset for bar in notation.bars]

    def stays(onset: int) -> bool:
        return bisect_right(lines, onset) - 1 not in bars

    notes = tuple(note for note in part.notes if stays(note.onset))
    return replace(part, notes=notes, lyrics=cut(part.lyrics, stays))


def accompanied(seed: ScoreSeed) -> Template:
    """The hands that a score lacks, from its first bar to the last, or from the first note of a MIDI file; what it has
    is a bar ahead. Raises UserError where both are there."""
    new = [slot for slot in HANDS if slot not in seed.used]
    if not new:
        raise UserError(f"{seed.file}: it has both hands already", "give a tune or a right hand alone")
    old, parts, slots = seed.notation, [*seed.notation.parts], [*seed.slots]
    places, group = {n: n for n in range(len(parts))}, len(parts)  # a number that no instrument has
    are_new = [hand in new for hand in HANDS]
    if empty := [pair for pair in old.keyboards if [not parts[n].notes for n in pair] == are_new]:
        slots[empty[0][0]], slots[empty[0][1]] = HANDS
    elif len(new) == 1:  # beside the other hand, as of one keyboard
        at = slots.index(RIGHT + LEFT - new[0])
        like = parts[at] if parts[at].group is not None else replace(parts[at], group=group)
        hand = Part(like.name, like.program if like.program in KEYBOARDS else 0, (), group=like.group)
        parts[at : at + 1] = [hand, like] if new[0] == RIGHT else [like, hand]
        slots.insert(at + (new[0] == LEFT), new[0])
        places = {n: n + (n > at or (n == at and new[0] == RIGHT)) for n in places}
    else:
        name = next(name for name in NEW_PARTS if name not in {part.name for part in parts[-1:]})
        parts += [Part(name, 0, (), group=group)] * 2
        slots += new
    first = silent_bars(old) if seed.is_midi else 0  # a bar of rests is written for a purpose
    free = frozenset((slot, n) for slot in new for n in range(first, len(old.bars)))
    whole = replace(old, parts=tuple(parts), symbols=over(old.symbols, places))
    heard = replace(old, parts=tuple(part for part in old.parts if part.notes))  # a hand in an empty staff is new too
    return Template(whole, tuple(slots), free, min(seed.used), heard)
