"""Leads the moment at which a chord begins: time stops there, old notes that are foreign to it end, and its bass comes.

Without that the old chord sounds on, and the bass follows when the model would have played it anyway.
"""

import torch
from torch import Tensor

OCTAVE = 12  # above the lowest note of the chord before, a note is no bass
MOVING = ("chord", "old", "floor", "low")  # by row


class ChordChanges:
    """What has been struck in the chord before and in this one; for encodings with ids for the ends of notes."""

    def __init__(
        self, strength: float, outside: Tensor, pitch: Tensor, strikes: Tensor, ends: Tensor, keys: Tensor, down: Tensor
    ) -> None:
        """`outside` (U, V) the pitches foreign to each chord, (V,) `strikes`, `ends`, and the strikes of both, `keys`;
        (B, V + 1) the strikes of keys that are `down`."""
        self.strength, self.outside, self.pitch, self.keys = strength, outside, pitch[None], keys
        self.strikes, self.ends = strikes[None], ends[None]  # (1, V)
        self.chord = torch.full_like(down[:, :1], -1, dtype=torch.int64)  # (B, 1) the first one is new too
        self.old = down.clone()  # (B, V + 1) since before this chord
        high = torch.zeros_like(self.chord) + pitch.max()
        self.floor = high  # (B, 1) the lowest note struck in the chord before
        self.low = self.pitch.where(down[:, :-1], high).amin(1, keepdim=True)  # … and in this one

    def reach(self, chord: Tensor, down: Tensor) -> None:
        """It is the time of a chord (B, 1)."""
        new = chord != self.chord
        high = self.pitch.max()
        self.floor = self.low.where(new & (self.low < high), self.floor)
        self.low = high.where(new, self.low)
        self.old = down.where(new, self.old)
        self.chord = chord

    def strike(self, ids: Tensor) -> None:
        """One more token a row, (B,)."""
        struck = self.strikes[0].index_select(0, ids)[:, None]
        low = self.pitch[0].index_select(0, ids)[:, None].minimum(self.low)
        self.low = low.where(struck, self.low)
        self.old = self.old.scatter(1, self.keys.index_select(0, ids)[:, None], False)  # it ends, or begins again

    def lead(self, down: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What the logits gain: (B, V) of ends, (B, V) of strikes, which share it, and (B, 1) of waits."""
        outside = self.outside[self.chord[:, 0]]  # (B, V)
        foreign = self.old[:, :-1] & outside
        padded = torch.nn.functional.pad(foreign, (0, 1))
        ends = padded.index_select(1, self.keys) & self.ends
        high = self.pitch > self.floor + OCTAVE
        has_bass = (down[:, :-1] & ~(outside | high)).any(1, keepdim=True)
        lacks = ~has_bass & (self.low == self.pitch.max())  # one note is enough: a model may like no bass here
        waits = foreign.any(1, keepdim=True) | lacks
        return self.strength * ends, -self.strength * (high & lacks), -self.strength * waits

    def move(self, rows: Tensor) -> None:
        """Row b becomes what row rows[b] was, (B,)."""
        for name in MOVING:
            setattr(self, name, getattr(self, name)[rows])
