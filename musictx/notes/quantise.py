"""What a grid of sixteenths does to notes: some are moved, some are tied, a few find no place."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.notes.grid import N_VOICES, STEPS_PER_QUARTER, held_notes
from musictx.notes.score import Score

BESIDE = 0.1  # sixteenths that a note may begin beside the grid: ticks are rounded, people are farther off


class Quantised(NamedTuple):
    """The notes that the grid has a place for, in their own time still, and how many fare otherwise there."""

    score: Score
    lost: int
    moved: int
    tied: int

    def told(self) -> str:
        """What a person should know of it; an empty text where the grid holds all as it is."""
        phrases = (
            (self.lost, f"leaves out {self.lost} as too short"),
            (self.moved, f"moves {self.moved} to its nearest step"),
            (self.tied, f"hears {self.tied} as held instead of struck again"),
        )
        words = ", ".join(phrase for count, phrase in phrases if count)
        return f"of its {len(self.score) + self.lost} notes the grid of sixteenths {words}" if words else ""


def quantise(score: Score) -> Quantised:
    """Where rounding makes more than four notes of what were four voices, the shortest are left out."""
    kept = score.select(~_graces(score))
    moved = int(beside_grid(kept).sum())
    return Quantised(kept, len(score) - len(kept), moved, len(kept) - len(held_notes(kept)))


def beside_grid(score: Score) -> NDArray[np.bool_]:
    """(N,) the notes that begin beside the sixteenths."""
    steps = score.onset_s * STEPS_PER_QUARTER / score.quarter_s
    beside: NDArray[np.bool_] = np.abs(steps - np.rint(steps)) > BESIDE
    return beside


def _graces(score: Score) -> NDArray[np.bool_]:
    """(N,) the notes that rounding to the grid makes too many: at a step where more than four sound, notes that begin
    and end there, the shortest first; but none in whose middle more than four sound in truth."""
    step_s, middle_s = score.quarter_s / STEPS_PER_QUARTER, (score.onset_s + score.offset_s) / 2
    onset, offset = np.rint(score.onset_s / step_s), np.rint(score.offset_s / step_s)
    in_truth = _sounding(score.onset_s, score.offset_s, middle_s)
    short = np.flatnonzero((offset <= onset) & (in_truth <= N_VOICES))
    short = short[np.lexsort(((score.offset_s - score.onset_s)[short], onset[short]))]
    too_many = _sounding(onset, np.maximum(offset, onset + 1), onset[short]) - N_VOICES
    rank = np.arange(len(short)) - np.searchsorted(onset[short], onset[short])  # within its step
    graces = np.zeros(len(score), dtype=bool)
    graces[short[rank < too_many]] = True
    return graces


def _sounding(begin: NDArray[Any], end: NDArray[Any], at: NDArray[Any]) -> NDArray[np.int64]:
    """(K,) how many of the N notes sound at each of K times; at its end a note does no more."""
    begun: NDArray[np.int64] = np.searchsorted(np.sort(begin), at, side="right")
    return begun - np.searchsorted(np.sort(end), at, side="right")
