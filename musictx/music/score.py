"""A piece of music: notes in seconds, and bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

COLUMNS = ("onset_s", "offset_s", "pitch", "velocity", "program")
DRUMS = 128  # the program of a drum kit; 0 … 127 are General MIDI's instruments


@dataclass(frozen=True, eq=False, init=False)
class Score:
    """Notes sorted by onset, then pitch, in read-only arrays (N,); every edit returns a new Score.

    `program` may be one number for all. Times are seconds from the beginning, `quarter_s` seconds a quarter note; the
    others are MIDI's. Raises ValueError for invalid values."""

    onset_s: NDArray[Any]  # (N,) float64
    offset_s: NDArray[Any]  # (N,) float64
    pitch: NDArray[Any]  # (N,) uint8
    velocity: NDArray[Any]  # (N,) uint8
    quarter_s: float  # the tempo that it is written in; edits carry it along
    program: NDArray[Any]  # (N,) uint8; 0 is the piano

    def __init__(
        self,
        onset_s: ArrayLike,
        offset_s: ArrayLike,
        pitch: ArrayLike,
        velocity: ArrayLike,
        quarter_s: float = 0.5,
        program: ArrayLike = 0,
    ) -> None:
        if not isinstance(quarter_s, Real) or not (np.isfinite(quarter_s) and quarter_s > 0):
            raise ValueError(f"a quarter note lasts more than 0 seconds: quarter_s is {quarter_s}")
        object.__setattr__(self, "quarter_s", float(quarter_s))
        onset, offset = (np.asarray(x, dtype=np.float64) for x in (onset_s, offset_s))
        named = {"pitch": pitch, "velocity": velocity, "program": program}
        pitch, velocity, program = (_whole(name, numbers) for name, numbers in named.items())
        program = np.broadcast_to(program, pitch.shape) if program.ndim == 0 else program
        _check((onset, offset, pitch, velocity, program))
        order = np.lexsort((program, velocity, offset, pitch, onset))
        columns: list[NDArray[Any]] = [onset, offset, *(x.astype(np.uint8) for x in (pitch, velocity, program))]
        for name, values in zip(COLUMNS, columns, strict=True):
            column = values[order]
            column.flags.writeable = False
            object.__setattr__(self, name, column)

    @classmethod
    def empty(cls) -> Score:
        """A score without notes."""
        return cls(np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0))

    @classmethod
    def merge(cls, scores: Sequence[Score], quarter_s: float = 0.5) -> Score:
        """All notes of several scores, at a tempo of `quarter_s` seconds a quarter note."""
        if not scores:
            return replace(cls.empty(), quarter_s=quarter_s)
        if len(scores) == 1 and scores[0].quarter_s == quarter_s:
            return scores[0]
        columns = {n: np.concatenate([getattr(s, n) for s in scores]) for n in COLUMNS}
        return cls(**columns, quarter_s=quarter_s)

    def __len__(self) -> int:
        return len(self.pitch)

    def __eq__(self, other: object) -> bool:
        """Whether the notes are the same; the tempo does not count."""
        if not isinstance(other, Score):
            return NotImplemented
        return all(np.array_equal(getattr(self, n), getattr(other, n)) for n in COLUMNS)

    @property
    def duration_s(self) -> float:
        """The end of the last note in seconds; 0 without notes."""
        return float(self.offset_s.max(initial=0.0))

    def clip(self, start_s: float, end_s: float) -> Score:
        """The notes that begin in [`start_s`, `end_s`), in seconds, cut off at its end; time 0 is `start_s`."""
        part = self.select((self.onset_s >= start_s) & (self.onset_s < end_s))
        offset = np.minimum(part.offset_s, end_s)
        return replace(part, onset_s=part.onset_s - start_s, offset_s=offset - start_s)

    def select(self, keep: NDArray[np.bool_]) -> Score:
        """The notes where `keep` (N,) is True."""
        return replace(self, **{name: getattr(self, name)[keep] for name in COLUMNS})

    def transpose(self, semitones: int) -> Score:
        """Moves every pitch, drums too. Raises ValueError when one would leave 0 … 127."""
        return replace(self, pitch=self.pitch.astype(np.int64) + semitones)

    def stretch(self, factor: float) -> Score:
        """Multiplies every time, and the tempo's `quarter_s`, by `factor`."""
        times = {name: getattr(self, name) * factor for name in ("onset_s", "offset_s", "quarter_s")}
        return replace(self, **times)


class Filled(NamedTuple):
    """The new notes (N,), and the borders of their region."""

    is_new: NDArray[np.bool_]
    from_s: float
    to_s: float


def merge_marked(old: Score, new: Score) -> tuple[Score, NDArray[np.bool_]]:
    """The notes of both scores, and which of them are the second's (N,)."""
    both, columns = (old, new), ("program", "velocity", "offset_s", "pitch", "onset_s")
    order = np.lexsort([np.concatenate([getattr(each, name) for each in both]) for name in columns])
    return Score.merge(both, old.quarter_s), order >= len(old)


def same_fields(a: object, b: object) -> bool:
    """Whether two dataclasses are of one type and have equal fields, arrays by their numbers."""
    if type(a) is not type(b):
        return False
    for each in fields(a):  # type: ignore[arg-type]
        x, y = getattr(a, each.name), getattr(b, each.name)
        is_array = isinstance(x, np.ndarray) or isinstance(y, np.ndarray)
        if each.compare and not (np.array_equal(x, y) if is_array else x == y):
            return False
    return True


def _whole(name: str, numbers: ArrayLike) -> NDArray[np.int64]:
    column = np.asarray(numbers)
    if column.dtype.kind == "f" and not (np.isfinite(column) & (column == np.rint(column))).all():
        raise ValueError(f"{name} must be whole numbers")
    return column.astype(np.int64)


def _check(columns: tuple[NDArray[Any], ...]) -> None:
    onset, offset, pitch, velocity, program = columns
    if {column.shape for column in columns} != {(pitch.size,)}:
        raise ValueError(f"columns differ in length: {', '.join(str(column.size) for column in columns)}")
    for what, bad in (
        ("onset_s must be finite and at least 0", ~np.isfinite(onset) | (onset < 0)),
        ("offset_s must be finite and not before onset_s", ~np.isfinite(offset) | (offset < onset)),
        ("pitch must be 0 … 127", (pitch < 0) | (pitch > 127)),
        ("velocity must be 1 … 127", (velocity < 1) | (velocity > 127)),
        ("program must be 0 … 127, or 128 for drums", (program < 0) | (program > DRUMS)),
    ):
        if bad.any():
            i = int(np.flatnonzero(bad)[0])
            raise ValueError(f"{what}; note {i} is ({onset[i]}, {offset[i]}, {pitch[i]}, {velocity[i]})")


MOST_BARS = 100_000  # a file that claims more is damaged
LEAST_BAR_S = 0.001  # … or shorter ones
UNITS = 24  # of a quarter: thirty-seconds and triplets of sixteenths are whole numbers of them


class Bars(NamedTuple):
    """Bar lines in seconds, and the number of the bar after each, 0 for an upbeat."""

    lines_s: NDArray[np.float64]  # (K,)
    numbers: NDArray[np.int64]  # (K,)


def beat_of(beats: int, unit: int) -> float:
    """The quarters in a beat of a time signature: 1.5 in 6/8, 9/8 and 12/8."""
    return 4 / unit * (3 if unit == 8 and beats % 3 == 0 and beats > 3 else 1)


@dataclass(frozen=True)
class Meter:
    """The bars and beats of music, four quarters a bar without a file."""

    quarter_s: float = 0.5
    signature: tuple[int, int] = (4, 4)
    lines_s: NDArray[np.float64] | None = None  # (K,) a file's bar lines and one after its music; None: equal bars
    whole_s: float | None = None  # of bar 1, after an upbeat; None: the notes keep to no bar lines
    units_s: NDArray[np.float64] | None = field(default=None, compare=False)  # (U,) a file's twenty-fourths of quarters
    beats: NDArray[np.float64] | None = field(default=None, compare=False)  # (K,) quarters a beat, of each bar
    numbers: NDArray[np.int64] | None = field(default=None, compare=False)  # (K,) of the bars; None: from 1 on

    def __eq__(self, other: object) -> bool:
        """Whether the bars are the same."""
        return same_fields(self, other)

    @property
    def bar_s(self) -> float:
        """The length of the first bar."""
        beats, unit = self.signature
        return max(self.quarter_s * 4 * beats / unit, LEAST_BAR_S)

    def bars_s(self, until_s: float, more: int = 0) -> NDArray[np.float64]:
        """Bar lines in seconds up to one at or after `until_s`, and `more`; the last bar repeats, or the one before it
        where the last only completes the upbeat."""
        lines = self.lines_s if self.lines_s is not None and len(self.lines_s) else np.zeros(1)
        bar_s = float(np.diff(lines[-2:]).sum()) or self.bar_s
        if len(lines) > 3 and self.whole_s is not None and self.whole_s > lines[0]:
            whole_s = float(lines[-2] - lines[-3])
            bar_s = whole_s if abs(self.whole_s - lines[0] + bar_s - whole_s) < 1e-6 else bar_s
        missing = int(np.ceil(min(max(until_s - lines[-1], 0.0) / bar_s, MOST_BARS))) + more
        lines = np.concatenate([lines, lines[-1] + bar_s * np.arange(1, missing + 1)])
        upto: NDArray[np.float64] = lines[: int(np.searchsorted(lines, until_s - 1e-6)) + 1 + more]
        return upto

    def after(self, from_s: float, bars: float) -> float:
        """The second that lies `bars` after a moment."""
        lines = self.bars_s(from_s, more=min(int(np.ceil(bars)), MOST_BARS) + 1)
        at = np.interp(from_s, lines, np.arange(len(lines))) + bars
        return float(np.interp(at, np.arange(len(lines)), lines))

    def first_bar(self, lines_s: NDArray[np.float64]) -> int:
        """The number of the line that begins bar 1, after an upbeat."""
        return 0 if self.whole_s is None else int(np.searchsorted(lines_s, self.whole_s - 1e-6))

    def numbered(self, until_s: float) -> Bars:
        """All bar lines up to one at or after `until_s`."""
        lines = self.bars_s(until_s)
        own = np.arange(1, 2) - self.first_bar(lines) if self.numbers is None else self.numbers
        later = own[-1] + np.arange(1, max(len(lines) - len(own), 0) + 1)
        return Bars(lines, np.concatenate([own, later])[: len(lines)])

    def place(self, at_s: float) -> str:
        """A moment in words: its bar, or its time where no file says bars."""
        if self.lines_s is None:
            return f"at {at_s:.2f} s"
        lines, numbers = self.numbered(at_s)
        number = numbers[max(int(np.searchsorted(lines, at_s + 1e-6)) - 1, 0)]
        return f"in bar {number}" if number else "in the upbeat"

    def part(self, start_s: float, end_s: float) -> Meter:
        """The bars from `start_s`, its time 0, to `end_s` and after."""
        units_s = self._units()[0] - start_s
        if self.lines_s is None:
            return replace(self, units_s=units_s)
        lines, numbers = self.numbered(max(end_s, float(self.lines_s[-1])))
        first = max(int(np.searchsorted(lines, start_s + 1e-6, side="right")) - 1, 0)
        whole_s = None if self.whole_s is None else self.whole_s - start_s
        beats = None if self.beats is None else self.beats[min(first, len(self.beats) - 1) :]
        moved = lines[first:] - start_s
        return replace(self, lines_s=moved, whole_s=whole_s, units_s=units_s, numbers=numbers[first:], beats=beats)

    def beats_s(self, until_s: float) -> NDArray[np.float64]:
        """The beats in seconds up to one at or after `until_s`."""
        bars = self.quarters(self.bars_s(until_s, more=1))
        bar_beats = self.beats if self.beats is not None else np.array([beat_of(*self.signature)])
        steps = bar_beats[np.minimum(np.arange(len(bars) - 1), len(bar_beats) - 1)]
        every = [np.arange(begin, end - 1e-6, step) for (begin, end), step in zip(pairwise(bars), steps, strict=True)]
        moments = self.seconds(np.concatenate(every))
        upto: NDArray[np.float64] = moments[: int(np.searchsorted(moments, until_s - 1e-6)) + 1]
        return upto

    def quarters(self, at_s: ArrayLike) -> NDArray[np.float64]:
        """The quarters before each moment; the last one repeats."""
        seconds, (units, last_s) = np.asarray(at_s, dtype=np.float64), self._units()
        within = np.interp(seconds, units, np.arange(len(units)))
        before: NDArray[np.float64] = (within + np.maximum(seconds - units[-1], 0) / last_s) / UNITS
        return before

    def seconds(self, quarters: ArrayLike) -> NDArray[np.float64]:
        """The seconds after so many quarters."""
        at, (units, last_s) = np.asarray(quarters, dtype=np.float64) * UNITS, self._units()
        within = np.interp(at, np.arange(len(units)), units)
        moments: NDArray[np.float64] = within + np.maximum(at - (len(units) - 1), 0) * last_s
        return moments

    def _units(self) -> tuple[NDArray[np.float64], float]:
        """Twenty-fourths of quarters, and the length of later ones."""
        units: NDArray[np.float64] = np.array([0.0, self.quarter_s / UNITS]) if self.units_s is None else self.units_s
        return units, float(units[-1] - units[-2])
