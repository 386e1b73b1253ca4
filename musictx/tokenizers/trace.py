"""Which note each token is about, and when: the bridge from attention over tokens to pictures of notes."""

from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.notes.score import Score

Indices = NDArray[np.int64]
Waiting = dict[tuple[int, int, int], list[int]]  # (program, pitch, step) -> notes of the score that are struck then


class Trace(NamedTuple):
    """The music of a piece's ids (T,), token by token."""

    score: Score  # (N,) as the tokens say it
    time_s: NDArray[Any]  # (T,) of the music when the token stands
    note: Indices  # (T,) the note of `score` that it belongs to; -1: none, as for a wait
    struck_by: Indices  # (N,) the token that begins each note


def waiting_notes(score: Score, step_s: float) -> Waiting:
    """The notes of a score on a grid, by what their tokens say of them."""
    waiting: Waiting = defaultdict(list)
    step = np.rint(score.onset_s / step_s).astype(np.int64)
    for n, key in enumerate(zip(score.program.tolist(), score.pitch.tolist(), step.tolist(), strict=True)):
        waiting[key].append(n)
    return waiting
