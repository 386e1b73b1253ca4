"""What every id of an encoding does to the music: the tables from which a sampler knows which id may come next."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.tokenizers.vocab import Vocab

NEVER = 2**62  # a step that no music reaches


class EventPlace(NamedTuple):
    """Where a stream of events stands: `struck` (128,) the step each sounding pitch was struck at, NEVER for silent
    ones; the step now; the step at which silence began, if it is silent; whether a velocity has been said."""

    struck: NDArray[np.int64]
    now: int
    silent_since: int
    has_velocity: bool


class EventGrammar:
    """Events on a clock: NOTE_ON, NOTE_OFF, TIME_SHIFT, VELOCITY in this order. Its arrays are (V,)."""

    def __init__(self, vocab: Vocab, steps_per_s: float) -> None:
        self.vocab, self.steps_per_s = vocab, steps_per_s
        self.on, self.off, self.velocity = (vocab.mask(name) for name in ("NOTE_ON", "NOTE_OFF", "VELOCITY"))
        at = np.arange(vocab.size)
        self.pitch = np.where(self.on | self.off, at % 128, 0)
        shift = vocab.row("TIME_SHIFT")
        self.steps = np.where(vocab.mask("TIME_SHIFT"), at - vocab.offsets["TIME_SHIFT"] + shift.lo, 0)

    def of(self, vocab: Vocab) -> "EventGrammar":
        """The same rules over a vocabulary that has more ids."""
        return EventGrammar(vocab, self.steps_per_s)

    def place(self, ids: NDArray[np.integer]) -> EventPlace:
        """Where the music stands after ids (T,), whatever they are."""
        now = np.cumsum(self.steps[ids])  # (T,)
        note = np.flatnonzero(self.on[ids] | self.off[ids])
        struck = np.full(128, NEVER)
        # of several assignments to one place numpy keeps the last
        struck[self.pitch[ids[note]]] = np.where(self.on[ids[note]], now[note], NEVER)
        end = int(now[-1]) if len(ids) else 0
        silent_since = int(now[note[-1]]) if len(note) else 0
        return EventPlace(struck, end, silent_since, bool(self.velocity[ids].any()))


class GridGrammar:
    """A grid read voice by voice: `pitch` (V,) of every id, REST for silence and all that is no music."""

    def __init__(self, vocab: Vocab, voices: int, steps_per_quarter: int, rest: int) -> None:
        self.vocab, self.voices, self.steps_per_quarter = vocab, voices, steps_per_quarter
        pitch = vocab.row("PITCH")
        self.lo, self.hi, self.rest = pitch.lo, pitch.hi, rest
        is_pitch, at = vocab.mask("PITCH"), np.arange(vocab.size)
        self.pitch: NDArray[np.int64] = np.where(is_pitch, at - vocab.offsets["PITCH"] + pitch.lo, rest)

    def of(self, vocab: Vocab) -> "GridGrammar":
        """The same rules over a vocabulary that has more ids."""
        return GridGrammar(vocab, self.voices, self.steps_per_quarter, self.rest)

    def grid(self, ids: NDArray[np.integer]) -> NDArray[np.int64]:
        """(steps, voices) the whole steps of ids (T,)."""
        whole = len(ids) // self.voices * self.voices
        grid: NDArray[np.int64] = self.pitch[ids[:whole]].reshape(-1, self.voices)
        return grid
