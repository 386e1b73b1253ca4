"""Leads the moment at which a chord begins: time stops there, old notes that are foreign to it end, and its bass comes.

Without that the old chord sounds on, and the bass follows when the model would have played it anyway.
"""

import numpy as np
from numpy.typing import NDArray

OCTAVE = 12  # above the lowest note of the chord before, a note is no bass
MOVING = ("chord", "old", "floor", "low")  # by row


class ChordChanges:
    """The keys struck in the chord before and in this one; for encodings with ids for the ends of notes."""

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
        """`outside` (U, V) the pitches foreign to each chord, (V,) `strikes`, `ends`, and the strikes of both, `keys`;
        (B, V + 1) the strikes of keys that are `down`."""
        self.strength, self.pitch, self.ends, self.keys = strength, pitch, ends, keys
        self.outside = np.pad(outside, ((0, 0), (0, 1)))  # (U, V + 1)
        self.high = pitch.max()
        self.struck = np.where(strikes, pitch, self.high)  # (V,)
        self.chord = np.full((len(down), 1), -1)  # (B, 1) the first one is new too
        self.old = down.copy()  # (B, V + 1) since before this chord
        self.floor = np.full((len(down), 1), self.high)  # (B, 1) the lowest note struck in the chord before
        self.low = np.where(down[:, :-1], pitch, self.high).min(1, keepdims=True)  # … and in this one
        self.rows = np.arange(len(down))

    def reach(self, chord: NDArray[np.int64], down: NDArray[np.bool_]) -> None:
        """It is the time of a chord (B, 1)."""
        new = chord != self.chord
        if not new.any():
            return
        self.floor = np.where(new & (self.low < self.high), self.low, self.floor)
        self.low = np.where(new, self.high, self.low)
        self.old = np.where(new, down, self.old)
        self.chord = chord

    def strike(self, ids: NDArray[np.int64]) -> None:
        """One more token a row, (B,)."""
        self.low = np.minimum(self.low, self.struck[ids, None])
        self.old[self.rows, self.keys[ids]] = False  # it ends, or begins again

    def lead(self, down: NDArray[np.bool_]) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """The gains of logits: (B, V) of ends, (B, V) of strikes, which share it, and (B, 1) of waits."""
        outside = self.outside[self.chord[:, 0]]  # (B, V + 1)
        foreign = self.old & outside
        ends = foreign.take(self.keys, 1) & self.ends
        high = self.pitch > self.floor + OCTAVE
        has_bass = (down[:, :-1] & ~(outside[:, :-1] | high)).any(1, keepdims=True)
        lacks = ~has_bass & (self.low == self.high)  # one note is enough: a model may like no bass here
        waits = foreign.any(1, keepdims=True) | lacks
        return self.strength * ends, -self.strength * (high & lacks), -self.strength * waits

    def move(self, rows: NDArray[np.int64]) -> None:
        """Row b becomes a copy of row rows[b], (B,)."""
        for name in MOVING:
            setattr(self, name, getattr(self, name)[rows])
