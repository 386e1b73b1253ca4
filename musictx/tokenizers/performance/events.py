"""What every id of a stream of events does, as tables: whoever draws, plays or follows such ids reads them here."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.tokenizers.vocab import Vocab

STEPS_PER_S = 100
VELOCITY_BIN = 4  # velocities per bin; 127 velocities fall into 32 bins
NEVER = 2**62  # a step that no music reaches


class EventPlace(NamedTuple):
    """Where a stream of events stands: `struck` (P,) the step each sounding pitch was struck at, from the lowest on,
    NEVER for silent ones; the step now; the step at which silence began, if it is silent; whether a velocity has been
    said."""

    struck: NDArray[np.int64]
    now: int
    silent_since: int
    has_velocity: bool


class EventTable:
    """Events on a clock: NOTE_ON, NOTE_OFF, TIME_SHIFT, VELOCITY. Its arrays are (V,); P pitches from `lo` on."""

    def __init__(self, vocab: Vocab) -> None:
        self.on, self.off, self.velocity = (vocab.mask(name) for name in ("NOTE_ON", "NOTE_OFF", "VELOCITY"))
        self.lo, self.n_pitches = vocab.row("NOTE_ON").lo, int(self.on.sum())
        self.pitch = vocab.values("NOTE_ON", "NOTE_OFF")  # -1 where there is none
        self.bin = vocab.values("VELOCITY")
        self.steps = np.maximum(vocab.values("TIME_SHIFT"), 0)

    def place(self, ids: NDArray[np.integer]) -> EventPlace:
        """Where the music stands after ids (T,), whatever they are."""
        now = np.cumsum(self.steps[ids])  # (T,)
        note = np.flatnonzero(self.on[ids] | self.off[ids])
        struck = np.full(self.n_pitches, NEVER)
        # of several assignments to one place numpy keeps the last
        struck[self.pitch[ids[note]] - self.lo] = np.where(self.on[ids[note]], now[note], NEVER)
        end = int(now[-1]) if len(ids) else 0
        silent_since = int(now[note[-1]]) if len(note) else 0
        return EventPlace(struck, end, silent_since, bool(self.velocity[ids].any()))
