"""What a score is made of: notes, bars, keys, tempi, clefs, and parts, which are staves."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import NamedTuple

from musictx.errors import MidiError
from musictx.music.notation.lyrics import Syllable, cut
from musictx.music.score import UNITS

MOST_QUARTERS = 100_000
MOST_BARS = 50_000
FINEST = UNITS // 8  # the shortest part of a bar that a time signature counts
SIMPLER = "write a meter of larger notes"
SLOWEST, FASTEST = 5.0, 1000.0  # quarters a minute
BEATS = {0, 6, 9, 12, 18, 24, 36, 48, 72, 96, 144}  # of marks: notes with and without a dot, or none
MODES = ("major", "minor", "dorian", "phrygian", "lydian", "mixolydian", "aeolian", "locrian", "ionian")
ONE_HAND = 20  # one hand plays at most so many times as many notes as the other
MIDDLE_C, WIDE = 60, 7  # a staff alone holds music that goes no further beyond middle C
MANY_AT_ONCE = 0.05  # of a part's notes


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


class Transposed(NamedTuple):
    """From where on a staff sounds so many semitones above the notes that players read; a clarinet in B flat -2."""

    onset: int
    semitones: int


@dataclass(frozen=True)
class Part:
    """A staff: its name, instrument (General MIDI, 0 is a piano), notes as they sound, and lyrics in order."""

    name: str
    program: int
    notes: tuple[Note, ...]
    lyrics: tuple[Syllable, ...] = ()
    transposed: tuple[Transposed, ...] = ()  # where a player changes the instrument, several
    clefs: tuple[Clef, ...] = field(default=(), compare=False)  # without one the notes say it
    # neighbours of one instrument share it; None: the file does not say, as MIDI, whose music may be equal
    group: int | None = field(default=None, compare=False)
    # those that a file gives its notes, 1 is the top; a unison has two
    voices: Mapping[Note, tuple[int, ...]] = field(default_factory=dict, compare=False, repr=False)
    abbreviation: str = ""
    # its own signatures, where the score's are not its; a horn has none, and so that of F where it sounds
    keys: tuple[Key, ...] | None = field(default=None, compare=False)
    origin: int | None = field(default=None, compare=False)  # its number in the `Source`

    @property
    def places(self) -> set[tuple[int, int]]:
        """The onset and pitch of each note."""
        return {(note.onset, note.pitch) for note in self.notes}

    def transposed_at(self, onset: int) -> int:
        """The semitones that it sounds there above the notes that players read."""
        return next((each.semitones for each in reversed(self.transposed) if each.onset <= onset), 0)

    def until(self, end: int) -> "Part":
        """What begins before `end`; notes end there."""
        before = [n for n in self.notes if n.onset < end]
        notes = tuple(n._replace(length=min(n.length, end - n.onset)) for n in before)
        voices = dict[Note, tuple[int, ...]]()
        for old, new in zip(before, notes, strict=True):
            if old in self.voices:
                voices[new] = tuple(sorted({*voices.get(new, ()), *self.voices[old]}))
        clefs = tuple(each for each in self.clefs if each.onset < end)
        keys = self.keys and tuple(each for each in self.keys if each.onset < end)
        lyrics = cut(self.lyrics, lambda at: at < end)
        moved = tuple(each for each in self.transposed if each.onset < end)
        return replace(self, notes=notes, lyrics=lyrics, clefs=clefs, voices=voices, keys=keys, transposed=moved)

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
    def at_once(self) -> int:
        """How many notes sound together at most; 1 of a line."""
        events = sorted((at, by) for note in self.notes for at, by in ((note.onset, 1), (note.offset, -1)))
        return 1 if self.is_line else max(accumulate(by for _, by in events))

    @property
    def is_wide(self) -> bool:
        """Whether it goes far beyond middle C both ways."""
        pitches = [note.pitch for note in self.notes]
        return bool(pitches) and min(pitches) < MIDDLE_C - WIDE and max(pitches) > MIDDLE_C + WIDE


def name_of(n: int, part: Part) -> str:
    """The name of part `n`, or its number."""
    return part.name or f"staff {n + 1}"
