"""A score as notation has it: parts of exact notes, bars, keys, tempi."""

from dataclasses import dataclass
from typing import NamedTuple

from musictx.music.score import UNITS

MOST_PARTS = 64
MOST_QUARTERS = 100_000


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


class Key(NamedTuple):
    """From where on so many sharps are signed; flats are below 0."""

    onset: int
    sharps: int


class Tempo(NamedTuple):
    onset: int
    quarters_a_minute: float


@dataclass(frozen=True)
class Part:
    """A staff: its name, instrument (General MIDI, 0 is a piano) and notes in order."""

    name: str
    program: int
    notes: tuple[Note, ...]


@dataclass(frozen=True)
class Notation:
    """All staves, and the bars that they share; `end` is the end of the last bar."""

    parts: tuple[Part, ...]
    bars: tuple[Bar, ...]
    end: int
    keys: tuple[Key, ...] = (Key(0, 0),)
    tempi: tuple[Tempo, ...] = (Tempo(0, 120.0),)

    @property
    def spans(self) -> list[tuple[Bar, int]]:
        """Each bar with where it ends."""
        ends = [*(bar.onset for bar in self.bars[1:]), self.end]
        return list(zip(self.bars, ends, strict=True))
