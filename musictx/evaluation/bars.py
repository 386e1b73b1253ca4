"""Bars that come again: how alike bars are by the distance between them, and how many are repeated outright.

The likeness of two bars is the share of their notes that they have in common (as in Museformer, Yu et al. 2022): one
and the same pitch, place in the bar and length, both in sixteenths. Music whose beats nobody has written down has no
bars to compare.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from musictx.errors import ConfigError
from musictx.notes.score import DRUMS, Score

STEPS_PER_QUARTER = 4
Bar = frozenset[tuple[int, int, int]]  # (place, pitch, length), in sixteenths


def bars(score: Score, bar_quarters: float = 4.0) -> list[Bar]:
    """Each bar's notes from the beginning to the last onset, without drums; empty bars are empty sets. Raises
    ConfigError for a bar that holds no sixteenth."""
    steps = round(bar_quarters * STEPS_PER_QUARTER)
    if steps < 1:
        raise ConfigError(f"bar_quarters={bar_quarters}: give a quarter of a quarter or more")
    score = score.select(score.program != DRUMS)
    if not len(score):
        return []
    step_s = score.quarter_s / STEPS_PER_QUARTER
    onset, offset = (np.rint(x / step_s).astype(np.int64) for x in (score.onset_s, score.offset_s))
    found: list[set[tuple[int, int, int]]] = [set() for _ in range(int(onset.max()) // steps + 1)]
    for at, pitch, length in zip(onset.tolist(), score.pitch.tolist(), (offset - onset).tolist(), strict=True):
        found[at // steps].add((at % steps, pitch, length))
    return [frozenset(bar) for bar in found]


def likeness(one: Bar, other: Bar) -> float:
    """0 to 1; NaN where a bar is empty, since silence repeats nothing."""
    return len(one & other) / len(one | other) if one and other else float("nan")


def likeness_over_lags(score: Score, lags: Sequence[int], bar_quarters: float = 4.0) -> NDArray[np.float64]:
    """(L,) the mean likeness of bars so many bars apart; NaN where there is no such pair."""
    music = bars(score, bar_quarters)
    out = np.full(len(lags), np.nan)
    for k, lag in enumerate(lags):
        if lag < 1:
            raise ConfigError(f"lag {lag}: give 1 bar or more")
        pairs = [likeness(a, b) for a, b in zip(music, music[lag:], strict=False)]
        pairs = [x for x in pairs if np.isfinite(x)]
        out[k] = np.mean(pairs) if pairs else np.nan
    return out


def repeated_share(score: Score, from_bar: int = 0, bar_quarters: float = 4.0) -> float:
    """The share of the bars from `from_bar` on, silent ones left out, that are note for note an earlier bar; NaN where
    there is none."""
    music = bars(score, bar_quarters)
    again = [music[n] in music[:n] for n in range(from_bar, len(music)) if music[n]]
    return float(np.mean(again)) if again else float("nan")
