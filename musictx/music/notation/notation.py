"""A score as notation has it: parts of exact notes, bars, keys, tempi."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate, groupby, pairwise
from threading import Lock
from typing import NamedTuple

from musictx.errors import MidiError
from musictx.music.notation.chord_symbols import ChordSymbol, over
from musictx.music.notation.lyrics import Syllable, cut
from musictx.music.score import UNITS

Losses = Counter[str]  # by kinds of `LOSSES`
MUSICXML = ".musicxml"
MUSIC21 = Lock()  # its remarks are caught for the whole process, so one thread at a time
MOST_PARTS = 64
MOST_QUARTERS = 100_000
MOST_BARS = 50_000
SIMPLER = "write a meter of larger notes"
SLOWEST, FASTEST = 5.0, 1000.0  # quarters a minute
BEATS = {0, 6, 9, 12, 18, 24, 36, 48, 72, 96, 144}  # of marks: notes with and without a dot, or none
MODES = ("major", "minor", "dorian", "phrygian", "lydian", "mixolydian", "aeolian", "locrian", "ionian")
KEYBOARDS = {*range(8), *range(16, 24), 46}  # programs of pianos, organs and the harp
ONE_HAND = 20  # one hand plays at most so many times as many notes as the other
MANY_AT_ONCE = 0.05  # of a part's notes
MIDDLE_C, WIDE = 60, 7  # a staff alone holds music that goes no further beyond middle C


class Note(NamedTuple):
    """Times in twenty-fourths of a quarter from the score's beginning; a MIDI pitch as it sounds."""

    onset: int
    length: int
    pitch: int

    @property
    def offset(self) -> int:
        return self.onset + self.length


class Bar(NamedTuple):
    """Where a bar begins, and its meter; an upbeat and a broken bar are shorter than that."""

    onset: int
    numerator: int
    denominator: int

    @property
    def full(self) -> int:
        """The length that the meter gives."""
        return UNITS * 4 * self.numerator // self.denominator

    def check(self, source: object) -> None:
        """Raises MidiError for a meter whose bars are no whole units."""
        if not self.numerator or UNITS * 4 * self.numerator % self.denominator:
            meter = f"{self.numerator}/{self.denominator}"
            raise MidiError(source, f"it has bars of {meter}, which are no whole twenty-fourths of a quarter", SIMPLER)

    def filled(self, end: int, source: object) -> "list[Bar]":
        """Bars of this meter from here to `end`; one in any case. Raises MidiError for more than any score has."""
        self.check(source)
        if (end - self.onset) // self.full > MOST_BARS:
            raise MidiError(source, f"it has more than {MOST_BARS:,} bars", "cut the score")
        return [self._replace(onset=at) for at in range(self.onset, max(end, self.onset + 1), self.full)]


class Key(NamedTuple):
    """From where on so many sharps are signed; flats are below 0. The mode is one of `MODES`, or not said."""

    onset: int
    sharps: int
    mode: str = ""


class Tempo(NamedTuple):
    """`beat` is the length of the note that its mark names; 0 for a tempo that is heard and not printed."""

    onset: int
    quarters_a_minute: float
    beat: int = UNITS

    @classmethod
    def within(cls, onset: int, quarters_a_minute: float, beat: int = UNITS) -> "Tempo":
        """One that programs can play; its mark names a quarter where no note head has that beat."""
        beat = beat if beat in BEATS else UNITS
        return cls(onset, min(max(float(quarters_a_minute), SLOWEST), FASTEST), beat)


UNSAID = Tempo(0, 120.0, 0)  # of a score without a tempo


class Clef(NamedTuple):
    """From where on a clef is written: its letter, its line from below, and octaves that its notes sound higher."""

    onset: int
    sign: str
    line: int
    octaves: int = 0


@dataclass(frozen=True)
class Part:
    """A staff: its name, instrument (General MIDI, 0 is a piano), notes as they sound, and lyrics in order."""

    name: str
    program: int
    notes: tuple[Note, ...]
    lyrics: tuple[Syllable, ...] = ()
    transposed: int = 0  # semitones that it sounds above the notes that players read; a clarinet in B flat -2
    clefs: tuple[Clef, ...] = field(default=(), compare=False)  # without one the notes say it
    # neighbours of one instrument share it; None: the file does not say, as MIDI, whose music may be equal
    group: int | None = field(default=None, compare=False)
    # those that a file gives its notes, 1 is the top; a unison has two
    voices: Mapping[Note, tuple[int, ...]] = field(default_factory=dict, compare=False, repr=False)
    abbreviation: str = ""
    origin: int | None = field(default=None, compare=False)  # its number in the `Source`

    @property
    def places(self) -> set[tuple[int, int]]:
        """The onset and pitch of each note."""
        return {(note.onset, note.pitch) for note in self.notes}

    def until(self, end: int) -> "Part":
        """What begins before `end`; notes end there."""
        before = [n for n in self.notes if n.onset < end]
        notes = tuple(n._replace(length=min(n.length, end - n.onset)) for n in before)
        voices = dict[Note, tuple[int, ...]]()
        for old, new in zip(before, notes, strict=True):
            if old in self.voices:
                voices[new] = tuple(sorted({*voices.get(new, ()), *self.voices[old]}))
        clefs = tuple(each for each in self.clefs if each.onset < end)
        lyrics = cut(self.lyrics, lambda at: at < end)
        return replace(self, notes=notes, lyrics=lyrics, clefs=clefs, voices=voices)

    def is_above(self, other: "Part") -> bool:
        """Whether it is the higher hand: each has music, and this one lies higher."""
        counts = len(self.notes), len(other.notes)
        return min(counts) * ONE_HAND > max(counts) and self.height > other.height

    @property
    def height(self) -> float:
        """The mean pitch; middle C without notes."""
        return sum(note.pitch for note in self.notes) / len(self.notes) if self.notes else MIDDLE_C

    @property
    def is_line(self) -> bool:
        """Whether hardly a note begins while an earlier one sounds."""
        until = overlaps = 0
        for note in self.notes:
            overlaps += note.onset < until
            until = max(until, note.offset)
        return overlaps <= MANY_AT_ONCE * len(self.notes)

    @property
    def is_wide(self) -> bool:
        """Whether it goes far beyond middle C both ways."""
        pitches = [note.pitch for note in self.notes]
        return bool(pitches) and min(pitches) < MIDDLE_C - WIDE and max(pitches) > MIDDLE_C + WIDE


class Source(NamedTuple):
    """A MusicXML file, as text, and what is heard of it: the notes of each staff, and where bars begin and end."""

    text: str
    notes: tuple[tuple[Note, ...], ...]
    spans: tuple[tuple[int, int], ...]
    until: int  # so many bars may come back


def name_of(n: int, part: Part) -> str:
    """The name of part `n`, or its number."""
    return part.name or f"staff {n + 1}"


@dataclass(frozen=True)
class Notation:
    """All staves, and the bars that they share; `end` is the end of the last bar. Without `keys` nobody said any."""

    parts: tuple[Part, ...]
    bars: tuple[Bar, ...]
    end: int
    keys: tuple[Key, ...] = (Key(0, 0),)
    tempi: tuple[Tempo, ...] = (UNSAID,)
    symbols: tuple[ChordSymbol, ...] = ()
    title: str = ""
    composer: str = ""
    lyricist: str = ""
    arranger: str = ""
    rights: str = ""
    first: int = field(default=1, compare=False)  # the number of the first whole bar; an excerpt has its own
    source: Source | None = field(default=None, compare=False, repr=False)  # its bars are written again as they are
    key_from: "Notation | None" = field(
        default=None, compare=False, repr=False
    )  # whose notes say a key that nobody said

    @property
    def size(self) -> str:
        """How many staves and bars, in words."""
        staves = f"{len(self.parts)} staves" if len(self.parts) > 1 else "1 staff"
        return f"{staves}, {len(self.bars)} bars" if len(self.bars) > 1 else f"{staves}, 1 bar"

    @property
    def spans(self) -> list[tuple[Bar, int]]:
        """Each bar with where it ends."""
        ends = [*(bar.onset for bar in self.bars[1:]), self.end]
        return list(zip(self.bars, ends, strict=True))

    @property
    def spans_in_units(self) -> list[tuple[int, int]]:
        """Where each bar begins and ends."""
        return [(bar.onset, end) for bar, end in self.spans]

    @property
    def has_upbeat(self) -> bool:
        """Whether the first bar is shorter than its meter, and another follows."""
        return len(self.bars) > 1 and self.bars[1].onset < self.bars[0].full

    @property
    def numbers(self) -> list[int]:
        """The number of each bar: an upbeat's is the one before `first`; both parts of a bar that a repeat sign divides
        have the same."""
        numbers, rest = [self.first - self.has_upbeat], 0
        for (before, begin), (bar, end) in pairwise(self.spans):
            rest = before.full - (begin - before.onset) if not rest else 0  # what the bar before lacks
            completes = numbers[-1] >= self.first and before[1:] == bar[1:] and 0 < rest == end - bar.onset
            rest *= completes
            numbers.append(numbers[-1] + (not completes))
        return numbers

    def first_bars(self, count: int) -> "Notation":
        """The first `count` bars; notes end with them."""
        if count >= len(self.bars):
            return self
        end = self.bars[count].onset
        source = self.source and self.source._replace(until=min(self.source.until, count))
        return replace(
            self,
            source=source,
            parts=tuple(part.until(end) for part in self.parts),
            bars=self.bars[:count],
            end=end,
            keys=tuple(each for each in self.keys if each.onset < end),
            tempi=tuple(each for each in self.tempi if each.onset < end),
            symbols=tuple(each for each in self.symbols if each.onset < end),
        )

    def without_doubles(self, places: Collection[int], losses: Losses) -> "Notation":
        """Without those of some staves whose notes another staff of their instrument has, as of tablature."""
        others = [part for n, part in enumerate(self.parts) if n not in places]

        def is_double(part: Part) -> bool:
            return any(part.group == each.group and {*part.notes} <= {*each.notes} for each in others)

        stay = [n for n, part in enumerate(self.parts) if n not in places or not is_double(part)]
        losses["tablatures"] += len(self.parts) - len(stay)
        symbols = over(self.symbols, {old: new for new, old in enumerate(stay)})
        return replace(self, parts=tuple(self.parts[n] for n in stay), symbols=symbols)

    def with_symbols_apart(self) -> "Notation":
        """With chord symbols of one place over equal shares of the note that begins there, as lead sheets mean them; it
        counts until its bar or the next symbol."""
        together = {onset: list(same) for onset, same in groupby(self.symbols, key=lambda each: each.onset)}
        if len(together) == len(self.symbols):
            return self
        lines, symbols = [end for _, end in self.spans], list[ChordSymbol]()
        notes = [note for part in reversed(self.parts) for note in part.notes]  # at one place the first part's counts
        note_ends = {note.onset: note.offset for note in notes}
        for onset, following in zip(together, [*together, self.end][1:], strict=True):
            line = lines[min(bisect_right(lines, onset), len(lines) - 1)]
            share, same = min(line, following, note_ends.get(onset, line)) - onset, together[onset]
            symbols += [each._replace(onset=onset + k * share // len(same)) for k, each in enumerate(same)]
        return replace(self, symbols=tuple(symbols))

    def with_texts(self, given: "Notation", new_from: float, new_to: float) -> tuple["Notation", int]:
        """With the title, people, rights, chord symbols, transposing staves and all verses of a score that it goes on
        from; and how many syllables have no staff any more.

        Staves that are new in a region get no words there, and if all are new no chord symbols. A syllable may have no
        note."""
        given, places = given.on_two_staves(), dict[int, int]()
        before = [(name_of(n, part), n, part) for n, part in enumerate(given.parts)]
        parts, lost, stays = list[Part](), sum(len(part.lyrics) for part in given.parts), False
        for part in self.parts:
            alike = [
                (len(part.places & each.places), -k) for k, (name, _, each) in enumerate(before) if name == part.name
            ]
            common, place = max(alike, default=(0, 0))
            if not common:
                parts.append(part)
                continue
            _, n, like = before.pop(-place)
            places[n] = len(parts)
            lost -= len(like.lyrics)
            new, old = ({at for at in each.places if new_from <= at[0] < new_to} for each in (part, like))
            stays |= bool(new) and new == old
            lyrics = like.lyrics if new == old else cut(like.lyrics, lambda at: not new_from <= at < new_to)
            parts.append(replace(like, name=part.name, program=part.program, notes=part.notes, lyrics=lyrics))
        symbols = over((each for each in given.symbols if stays or not new_from <= each.onset < new_to), places)
        modes = {key[:2]: key for key in given.keys}
        keys = tuple(modes.get(key[:2], key) for key in self.keys)
        marks = {(tempo.onset, round(tempo.quarters_a_minute)): tempo for tempo in given.tempi}
        tempi = tuple(marks.get((each.onset, round(each.quarters_a_minute)), each) for each in self.tempi)
        texts = {name: getattr(given, name) for name in ("title", "composer", "lyricist", "arranger", "rights")}
        texts["source"] = given.source
        return replace(self, parts=tuple(parts), symbols=symbols, keys=keys, tempi=tempi, **texts), lost

    def followed_by(self, other: "Notation", onset: int) -> "Notation":
        """The staves and chord symbols of both, the other's from `onset` on."""
        first = len(self.parts)
        later = (
            replace(
                part,
                name=name_of(n, part),
                group=None if part.group is None else part.group + first,
                origin=None,
                notes=tuple(each._replace(onset=each.onset + onset) for each in part.notes),
                lyrics=tuple(each._replace(onset=each.onset + onset) for each in part.lyrics),
                clefs=tuple(each._replace(onset=each.onset + onset) for each in part.clefs),
                voices={each._replace(onset=each.onset + onset): voice for each, voice in part.voices.items()},
            )
            for n, part in enumerate(other.parts)
        )
        symbols = (each._replace(onset=each.onset + onset, staff=each.staff + first) for each in other.symbols)
        return replace(self, parts=(*self.parts, *later), symbols=(*self.symbols, *symbols))

    @property
    def instruments(self) -> list[tuple[int, ...]]:
        """The staves of each instrument that has several, from the top: as the file says, else as music looks."""
        said = [(group, [n for n, _ in same]) for group, same in groupby(enumerate(self.parts), lambda x: x[1].group)]
        return sorted([*self._guessed, *(tuple(same) for group, same in said if group is not None and len(same) > 1)])

    @property
    def keyboards(self) -> list[tuple[int, int]]:
        """The two hands of each keyboard, the higher staff first."""
        programs = [part.program for part in self.parts]
        return [(same[0], same[1]) for same in self.instruments if KEYBOARDS.issuperset(programs[n] for n in same)]

    @property
    def _guessed(self) -> list[tuple[int, int]]:
        """The two staves of each keyboard that the file does not name as one: neighbours of one instrument, whose names
        do not differ. Lines of a choir are none."""
        pairs: list[tuple[int, int]] = []
        lines = [part.is_line for part in self.parts]
        for n, (upper, lower) in enumerate(pairwise(self.parts)):
            is_named_apart = upper.name and lower.name and upper.name != lower.name
            is_unsaid = upper.group is None and lower.group is None and not is_named_apart
            is_one = upper.program in KEYBOARDS and upper.program == lower.program and is_unsaid
            if is_one and upper.is_above(lower) and (len(self.parts) == 2 or not (lines[n] and lines[n + 1])):
                pairs.append((n, n + 1))
        taken = set[int]()
        # chords first: the line above them is a voice
        for pair in sorted(pairs, key=lambda pair: lines[pair[0]] + lines[pair[1]]):
            if taken.isdisjoint(pair):
                taken.update(pair)
            else:
                pairs.remove(pair)
        return pairs

    @property
    def divided(self) -> set[int]:
        """The parts that get two staves: wide ones of a keyboard, whose notes are on one."""
        paired = {n for staves in self.instruments for n in staves}
        parts = enumerate(self.parts)
        return {n for n, part in parts if n not in paired and part.program in KEYBOARDS and part.is_wide}

    @property
    def given_staves(self) -> list[int]:
        """The number of each staff where the halves of a divided one are one again, as in the source."""
        pairs = pairwise([None, *(part.origin for part in self.parts)])
        return [n - 1 for n in accumulate(each is None or each != before for before, each in pairs)]

    def on_given_staves(self) -> "Notation":
        """With one staff for each that the source has, where `on_two_staves` divided it."""
        places, parts = self.given_staves, list[Part]()
        for place, part in zip(places, self.parts, strict=True):
            if place == len(parts):
                parts.append(part)
                continue
            upper = parts[place]
            notes, lyrics = sorted({*upper.notes, *part.notes}), sorted((*upper.lyrics, *part.lyrics))
            parts[place] = replace(upper, notes=tuple(notes), lyrics=tuple(lyrics))
        return replace(self, parts=tuple(parts), symbols=over(self.symbols, dict(enumerate(places))))

    def on_two_staves(self) -> "Notation":
        """With two staves for each keyboard that has one, and is wide."""
        staves, divided, places = list[Part](), self.divided, dict[int, int]()
        for n, part in enumerate(self.parts):
            places[n] = len(staves)
            if n not in divided:
                staves.append(part)
                continue
            above = {note.onset for note in part.notes if note.pitch >= MIDDLE_C}
            for is_upper in (True, False):
                mine = tuple(note for note in part.notes if (note.pitch >= MIDDLE_C) == is_upper)
                sung = tuple(each for each in part.lyrics if (each.onset in above) == is_upper)
                clefs = () if part.origin is None else part.clefs
                staves.append(replace(part, notes=mine, lyrics=sung, clefs=clefs))
        return replace(self, parts=tuple(staves), symbols=over(self.symbols, places))
