"""Tables of the ids in a stream of events: pitch, velocity, time."""

import numpy as np
from numpy.typing import NDArray

from musictx.tokenizers.vocab import Vocab

STEPS_PER_S = 100
VELOCITY_BIN = 4  # velocities per bin; 127 velocities fall into 32 bins
PITCHES = 128
NEVER = 2**62  # a step that no music reaches


class EventTable:
    """Events on a clock: NOTE_ON, NOTE_OFF, TIME_SHIFT, VELOCITY. The arrays are (V,)."""

    def __init__(self, vocab: Vocab) -> None:
        self.on, self.off, self.velocity = (vocab.mask(name) for name in ("NOTE_ON", "NOTE_OFF", "VELOCITY"))
        self.pitch = vocab.values("NOTE_ON", "NOTE_OFF")  # -1 where there is none
        self.bin = vocab.values("VELOCITY")
        self.steps = np.maximum(vocab.values("TIME_SHIFT"), 0)

    def place(self, ids: NDArray[np.integer]) -> tuple[NDArray[np.int64], int, int, int, bool]:
        """The place after ids (T,), in steps: onsets of sounding pitches (128,); now; the last note event; the last
        onset; whether there was a VELOCITY."""
        now = np.cumsum(self.steps[ids])  # (T,)
        note = np.flatnonzero(self.on[ids] | self.off[ids])
        onset = np.full(PITCHES, NEVER)
        # numpy keeps the last of several assignments to one place
        onset[self.pitch[ids[note]]] = np.where(self.on[ids[note]], now[note], NEVER)
        end = int(now[-1]) if len(ids) else 0
        last_note = int(now[note[-1]]) if len(note) else 0
        last_onset = int(now[self.on[ids]].max(initial=0))
        return onset, end, last_note, last_onset, bool(self.velocity[ids].any())
