"""The chords of a `Control` in time: their beginnings in each row of a batch, and the logits there."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from musictx.generate.control import SEED, Control
from musictx.generate.primer import Prompt
from musictx.music.curve import along
from musictx.music.harmony import LETTERS, ChordLine, Classes, parse_chords
from musictx.tokenizers import Tokenizer

CLOSE = 1e-6  # of a bar or a second: times are sums of floats
ANY = f"0 {'+'.join(LETTERS)}"  # chords of all notes
OCTAVE = 12  # above the lowest note of the chord before, a note is no bass
MOVING = ("chord", "old", "floor", "low")  # by row


class ChordClock:
    """The chords of each row, again and again, in seconds of new music."""

    def __init__(self, control: Control, tokenizer: Tokenizer, prompts: Sequence[Prompt]) -> None:
        lines_s = [control.lines_s(p.meter, p.start_s)[1] - p.start_s for p in prompts]
        n = np.arange(max(map(len, lines_s)), dtype=np.float64)
        self.units_s = np.array([along(n, n[: len(row)], row) for row in lines_s])  # (B, N) of what `begins` counts
        self.last_s = np.diff(self.units_s)  # (B, N - 1)
        lines = [line_after(p, control, tokenizer) for p in prompts]
        self.chords, begins, which = chord_table(lines)
        self.begins, self.which = np.array(begins), np.array(which)  # (B, K) each
        self.length = np.array([[line.length] for line in lines])  # (B, 1)
        self.ends = np.minimum(np.pad(self.begins[:, 1:], ((0, 0), (0, 1)), constant_values=np.inf), self.length)
        self.rows = np.arange(len(prompts))[:, None]

    def at(self, now_s: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The number of each row's chord at a time, and the second when the next begins, (B, 1) each."""
        unit = (self.units_s[:, 1:-1] <= now_s).sum(1, keepdims=True)  # the first and the last one go on
        at = unit + (now_s - self.units_s[self.rows, unit]) / self.last_s[self.rows, unit]
        at = np.maximum(at, 0) + CLOSE
        within = at % self.length
        k = (self.begins <= within).sum(1, keepdims=True) - 1
        after = self.ends[self.rows, k] + at - within  # in units
        unit = np.minimum(after.astype(np.int64), self.last_s.shape[1] - 1)
        next_s = self.units_s[self.rows, unit] + (after - unit) * self.last_s[self.rows, unit]
        return self.which[self.rows, k], next_s


def line_after(prompt: Prompt, control: Control, tokenizer: Tokenizer) -> ChordLine:
    """The chords of the music after a prompt."""
    seed_notes = tokenizer.decode(prompt.ids if control.chords == SEED else prompt.ids[:0], prompt.quarter_s)
    return parse_chords(control.chords_after(seed_notes, prompt.meter, prompt.start_s) or ANY)


def chord_table(lines: Sequence[ChordLine]) -> tuple[list[Classes], list[list[float]], list[list[int]]]:
    """The chords of all lines, each once (U); their beginnings, padded with infinity (B, K), and numbers (B, K)."""
    rows = [[chord.classes for chord in line.chords] for line in lines]
    chords, most = list(dict.fromkeys(each for row in rows for each in row)), max(map(len, rows))
    begins = [[*line.begins, *[np.inf] * most][:most] for line in lines]
    return chords, begins, [[*map(chords.index, row), *[0] * most][:most] for row in rows]


class ChordChanges:
    """The logits at a change of chord: time stops, foreign notes end, and the bass comes."""

    def __init__(
        self,
        strength: float,
        outside: NDArray[np.bool_],
        pitch: NDArray[np.int64],
        strikes: NDArray[np.bool_],
        ends: NDArray[np.bool_],
        keys: NDArray[np.int64],
        down: NDArray[np.bool_],
    ) -> None:
        """`outside` (U, V): pitches foreign to each chord; `keys` (V,): the strike of each strike and end.
        `down` (B, V + 1): strikes of keys that are down."""
        self.strength, self.pitch, self.ends, self.keys = strength, pitch, ends, keys
        self.outside = np.pad(outside, ((0, 0), (0, 1)))  # (U, V + 1)
        self.high = pitch.max()
        self.strike_pitch = np.where(strikes, pitch, self.high)  # (V,)
        self.chord = np.full((len(down), 1), -1)  # (B, 1) the first one is new too
        self.old = down.copy()  # (B, V + 1) since before this chord
        self.floor = np.full((len(down), 1), self.high)  # (B, 1) the lowest note struck in the chord before
        self.low = np.where(down[:, :-1], pitch, self.high).min(1, keepdims=True)  # … and in this one
        self.rows = np.arange(len(down))

    def reach(self, chord: NDArray[np.int64], down: NDArray[np.bool_]) -> None:
        """Moves each row to its `chord` (B, 1)."""
        new = chord != self.chord
        if not new.any():
            return
        self.floor = np.where(new & (self.low < self.high), self.low, self.floor)
        self.low = np.where(new, self.high, self.low)
        self.old = np.where(new, down, self.old)
        self.chord = chord

    def strike(self, ids: NDArray[np.int64]) -> None:
        """Takes one more token a row, (B,)."""
        self.low = np.minimum(self.low, self.strike_pitch[ids, None])
        self.old[self.rows, self.keys[ids]] = False  # it ends, or begins again

    def lead(self, down: NDArray[np.bool_]) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Terms of logits: (B, V) for ends, (B, V) for strikes, (B, 1) for waits."""
        outside = self.outside[self.chord[:, 0]]  # (B, V + 1)
        foreign = self.old & outside
        ends = foreign.take(self.keys, 1) & self.ends
        high = self.pitch > self.floor + OCTAVE
        has_bass = (down[:, :-1] & ~(outside[:, :-1] | high)).any(1, keepdims=True)
        lacks = ~has_bass & (self.low == self.high)  # one note is enough: a model may like no bass here
        waits = foreign.any(1, keepdims=True) | lacks
        return self.strength * ends, -self.strength * (high & lacks), -self.strength * waits

    def move(self, rows: NDArray[np.int64]) -> None:
        """Makes row b a copy of row rows[b], (B,)."""
        for name in MOVING:
            setattr(self, name, getattr(self, name)[rows])
