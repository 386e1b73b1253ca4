"""Percentile bootstrap over pieces (Efron and Tibshirani 1993, chapter 13)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from musictx.errors import UserError, counted

# the unit is a piece, not a token: tokens of one piece are alike, so resampling them would claim too much
TAILS = (0.025, 0.975)  # between them lie 95 % of the resamples
RESAMPLES = 2000


class Interval(NamedTuple):
    """The figure of the data itself, and its 95 % interval."""

    mean: float
    low: float
    high: float


def interval(values: ArrayLike, weights: ArrayLike | None = None) -> Interval:
    """The ratio of sums of `values` (N,) and `weights` (N,), by default their mean. Raises UserError."""
    numerators = np.asarray(values, dtype=np.float64)
    denominators = np.ones(len(numerators)) if weights is None else np.asarray(weights, dtype=np.float64)
    if not len(numerators):
        raise UserError("0 pieces", "an interval needs at least 1, better 30 or more")
    if not denominators.sum() > 0:
        raise UserError(f"{counted(len(numerators), 'piece has', 'pieces have')} nothing to measure by", "give others")
    counts = resample_counts(len(numerators), RESAMPLES, np.random.default_rng(0))
    with np.errstate(invalid="ignore"):  # a resample may have no weight: `percentiles` leaves it out
        figures = (counts @ numerators) / (counts @ denominators)
    return percentiles(float(numerators.sum() / denominators.sum()), figures)


def interval_of(statistic: Callable[..., NDArray[Any]], *arrays: NDArray[Any]) -> Interval:
    """The interval of a statistic of columns (N,), which makes (R,) of resamples (R, N)."""
    n = len(arrays[0])
    rows = np.random.default_rng(0).integers(0, n, (RESAMPLES, n))
    mean = float(statistic(*(a[None] for a in arrays))[0])
    return percentiles(mean, statistic(*(a[rows] for a in arrays)))


def resample_counts(n: int, resamples: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """(resamples, n) how often each of n pieces is in each resample."""
    return rng.multinomial(n, np.full(n, 1 / n), resamples).astype(np.float64)


def percentiles(mean: float, figures: NDArray[Any]) -> Interval:
    """The middle 95 % of the finite `figures` (R,)."""
    finite = figures[np.isfinite(figures)]
    low, high = np.quantile(finite, TAILS) if len(finite) else (mean, mean)
    return Interval(mean, float(low), float(high))
