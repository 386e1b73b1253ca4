"""The repetition guard: notices a row that goes in circles or sits still, and warms it until it has left."""

import numpy as np
from numpy.typing import NDArray

LOOK = 128  # tokens that must repeat: two bars of a chorale, some seconds of a performance
LONGEST_LAG = 64  # so that a loop has gone round twice at least
ALIKE = 0.95  # the share of tokens that repeat
FEW = 4  # different tokens in `LOOK`: one note drummed, or one chord held
WARMER, WARMEST = 1.25, 3.0  # factors on the temperature: for every look at which it goes on, and in all


def caught(rows: NDArray[np.integer]) -> NDArray[np.bool_]:
    """(B,) True where the last tokens of a row (B, T) repeat those up to `LONGEST_LAG` earlier, or are but a few."""
    if rows.shape[1] < LOOK + LONGEST_LAG:
        return np.zeros(len(rows), dtype=bool)
    tail = rows[:, -LOOK - LONGEST_LAG :]
    now = tail[:, LONGEST_LAG:]  # (B, LOOK)
    earlier = np.lib.stride_tricks.sliding_window_view(tail[:, :-1], LOOK, axis=1)  # (B, LONGEST_LAG, LOOK)
    loops = ((earlier == now[:, None]).mean(-1) >= ALIKE).any(-1)
    different = (np.diff(np.sort(now, axis=1), axis=1) != 0).sum(1) + 1
    still: NDArray[np.bool_] = loops | (different <= FEW)
    return still


def warmed(factor: NDArray[np.float64], rows: NDArray[np.integer]) -> NDArray[np.float64]:
    """The factor (B,) on each row's temperature after one more look: 1 as soon as a row has left its loop."""
    return np.where(caught(rows), np.minimum(factor * WARMER, WARMEST), 1.0)
