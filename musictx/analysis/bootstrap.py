"""How sure a figure is: percentile bootstrap over pieces (Efron and Tibshirani 1993, chapter 13).

The unit is a piece, not a token: tokens of one piece are alike, so drawing them one by one would claim too much.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from musictx.errors import ConfigError, UserError

CONFIDENCE, RESAMPLES = 0.95, 2000


class Interval(NamedTuple):
    """A figure of the data itself, and the interval in which its resamples fall."""

    mean: float
    low: float
    high: float


def interval(
    values: ArrayLike,
    weights: ArrayLike | None = None,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    random_seed: int = 0,
) -> Interval:
    """The ratio of sums of `values` (N,) and `weights` (N,), by default 1 each: the mean.

    For nats per token give each piece's summed nats and its tokens. Raises UserError.
    """
    top = np.asarray(values, dtype=np.float64)
    bottom = np.ones(len(top)) if weights is None else np.asarray(weights, dtype=np.float64)
    if not len(top):
        raise UserError("0 pieces", "an interval needs at least 1, better 30 or more")
    if not 0 < confidence < 1:
        raise ConfigError("confidence", got=confidence, allowed="a share between 0 and 1, such as 0.95")
    if resamples < 1:
        raise ConfigError("resamples", got=resamples, allowed="1 or more, such as 2000")
    if len(bottom) != len(top) or (bottom < 0).any() or not bottom.sum() > 0:
        raise UserError(f"{len(bottom)} weights for {len(top)} pieces", "give each one of 0 or more, not all 0")
    drawn = draw(len(top), resamples, np.random.default_rng(random_seed))
    with np.errstate(invalid="ignore"):  # a resample may have no weight: `percentiles` leaves it out
        figures = (drawn @ top) / (drawn @ bottom)
    return percentiles(float(top.sum() / bottom.sum()), figures, confidence)


def interval_of(statistic: Callable[..., NDArray[Any]], *arrays: NDArray[Any]) -> Interval:
    """Any statistic of columns (N,), with a row for each piece, resampled together.

    `statistic` takes each resampled column, (R, N), and returns (R,).
    """
    n = len(arrays[0])
    rows = np.random.default_rng(0).integers(0, n, (RESAMPLES, n))
    mean = float(statistic(*(a[None] for a in arrays))[0])
    return percentiles(mean, statistic(*(a[rows] for a in arrays)), CONFIDENCE)


def draw(n: int, resamples: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """(resamples, n) how often each of n pieces is in each resample."""
    return rng.multinomial(n, np.full(n, 1 / n), resamples).astype(np.float64)


def percentiles(mean: float, figures: NDArray[Any], confidence: float) -> Interval:
    """The middle share `confidence` of `figures` (R,), without those that are NaN or infinite."""
    tail = (1 - confidence) / 2
    finite = figures[np.isfinite(figures)]
    low, high = np.quantile(finite, (tail, 1 - tail)) if len(finite) else (mean, mean)
    return Interval(mean, float(low), float(high))
