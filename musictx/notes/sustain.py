"""The sustain pedal, written into the notes: what a pianist holds with the foot sounds on."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from musictx.notes.score import Score

PEDAL_DOWN = 64  # controller 64 at this value or above is down


def apply_sustain(score: Score, pedal_s: NDArray[np.float64], pedal_value: NDArray[np.integer]) -> Score:
    """A note let go while the pedal is down sounds until the pedal comes up or its pitch is struck again.

    `pedal_s`, `pedal_value` (K,): controller 64 in time. A pedal that never comes up lifts at the end of the
    music (as in Oore et al. 2018, section 3.1). No note gets shorter.
    """
    if not len(score) or not len(pedal_s):
        return score
    down = pedal_value >= PEDAL_DOWN
    turns = np.flatnonzero(np.diff(down, prepend=False))  # down, up, down, up …
    down_s, up_s = pedal_s[turns[::2]], pedal_s[turns[1::2]]
    if not len(down_s):
        return score
    up_s = np.append(up_s, max(score.duration_s, float(pedal_s[-1])))[: len(down_s)]

    last_down = np.searchsorted(down_s, score.offset_s, side="right") - 1
    held = (last_down >= 0) & (score.offset_s < up_s[last_down])
    until = np.minimum(up_s[last_down], _next_strike_s(score))
    offset = np.where(held, np.maximum(until, score.offset_s), score.offset_s)
    return replace(score, offset_s=offset)


def _next_strike_s(score: Score) -> NDArray[np.float64]:
    """When the pitch of each note is struck next, strictly later; infinity if never."""
    order = np.argsort(score.pitch, kind="stable")  # pitch by pitch, in time, as the notes are
    onset, pitch = score.onset_s[order], score.pitch[order]
    new = np.append(True, (onset[1:] != onset[:-1]) | (pitch[1:] != pitch[:-1]))
    first = np.flatnonzero(new)  # notes struck together share the next strike
    following = np.append(onset[first[1:]], np.inf)
    following[:-1][pitch[first[1:]] != pitch[first[:-1]]] = np.inf
    out = np.empty(len(score))
    out[order] = following[np.cumsum(new) - 1]
    return out
