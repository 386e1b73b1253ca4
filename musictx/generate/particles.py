"""Sequential Monte Carlo: of several draws, those that needed the least steering replace the others.

Gordon et al. 1993; of language models Lew et al. 2023, arXiv 2306.03081. A row gains the model's own probability of the
targets, and loses its distance from them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from musictx.generate.engine import Stream

FEW = 0.5  # rows are drawn again where their weight lies on fewer than this share of them


def random_keys(random_seed: int, variation: int, particles: int) -> list[tuple[int, int]]:
    """The random keys of a variation's rows; the first is that without particles."""
    return [(random_seed, variation + (k << 32)) for k in range(particles)]


class Particles:
    """The log-weights of a stream's rows, `each` for one variation."""

    def __init__(self, stream: Stream, each: int, keys: Sequence[tuple[int, int]]) -> None:
        self.stream, self.each = stream, each
        self.worth = np.zeros(len(keys))  # (B,) logarithms
        self.chance = [np.random.default_rng([*key, each]) for key in keys[::each]]

    def look(self, counts: NDArray[np.bool_] | None = None, last: bool = False) -> NDArray[np.int64]:
        """Adds the gains of rows that count and, but at the `last` look, draws rows again: row b is then a copy of row
        rows[b], (B,)."""
        rows = np.arange(len(self.worth))
        if self.each == 1:
            return rows
        counts = np.ones(len(rows), dtype=bool) if counts is None else counts
        ease, tally, away = self.stream.gains()
        away, one = away[:, None], np.ones((len(rows), 1))
        self.worth += relative_gain(ease, tally, self.each, counts) - relative_gain(away, one, self.each, counts)
        if last:
            return rows
        for chance, group in zip(self.chance, rows.reshape(-1, self.each).copy(), strict=True):
            share = np.exp(self.worth[group] - self.worth[group].max())
            share /= share.sum()
            if 1 / (share**2).sum() < FEW * self.each:
                at = (np.arange(self.each) + chance.random()) / self.each
                rows[group] = group[np.minimum(np.searchsorted(share.cumsum(), at), self.each - 1)]
                self.worth[group] = 0.0
        if (rows != np.arange(len(rows))).any():
            self.stream.move(rows)
        return rows

    def best(self, whole: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """The row of each variation with the highest weight, a `whole` one if there is any."""
        worth = self.worth if whole is None else np.where(whole, self.worth + np.ptp(self.worth) + 1, self.worth)
        best: NDArray[np.int64] = worth.reshape(-1, self.each).argmax(1)
        return best + np.arange(0, len(self.worth), self.each)


def relative_gain(
    ease: NDArray[np.float64], tally: NDArray[np.float64], each: int, counts: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """(B,) the gain of each row, less the mean of its variation for as many ids; 0 where it does not count."""
    # by the number of ids: else each note would be a loss, and the music with the fewest would win
    ease, tally = ((x * counts[:, None]).reshape(-1, each, x.shape[1]) for x in (ease, tally))
    mean = ease.sum(1, keepdims=True) / np.maximum(tally.sum(1, keepdims=True), 1)
    gain: NDArray[np.float64] = (ease - tally * mean).sum(2).reshape(-1)
    return gain
