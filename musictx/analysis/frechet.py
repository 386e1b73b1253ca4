"""The Fréchet distance between two sets of passages, as a model hears them (Kilgour et al. 2019, for sound).

Both sets become normal distributions in the directions in which they vary most, each scaled to a variance of 1. Few
passages always seem apart, so the distance between halves of the composers' own pieces lies beside the figure. Figures
by another model's ears, or of passages of another length, do not compare.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.analysis.bootstrap import percentiles

DIRECTIONS = 16
RESAMPLES = 200

Floats = NDArray[np.floating]


class Frechet(NamedTuple):
    """The distance with its interval over pieces; `halves`: between halves of the real pieces, mean; `p`: how often
    pieces with shuffled labels are as far apart."""

    mean: float
    low: float
    high: float
    halves: float
    p: float


def frechet(a: Floats, b: Floats) -> float:
    """The squared Wasserstein distance of two normal distributions that fit (N, K) and (M, K)."""
    root = _root(_covariance(a))
    both = np.linalg.eigvalsh(root @ _covariance(b) @ root)
    apart = ((a.mean(0) - b.mean(0)) ** 2).sum() + np.trace(_covariance(a) + _covariance(b))
    return float(apart - 2 * np.sqrt(np.maximum(both, 0)).sum())


def _covariance(x: Floats) -> NDArray[np.float64]:
    return np.atleast_2d(np.cov(x, rowvar=False, bias=True)).astype(np.float64)


def _root(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    values, vectors = np.linalg.eigh(matrix)
    found: NDArray[np.float64] = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    return found


def compare_passages(real: list[Floats], generated: list[Floats], random_seed: int = 0) -> Frechet | None:
    """The passages (N, C) of each real and each generated piece. None for fewer than four pieces of either, or for
    fewer than eight passages."""
    if min(len(real), len(generated)) < 4 or min(sum(map(len, real)), sum(map(len, generated))) < 8:
        return None
    pooled = np.concatenate([*real, *generated]).astype(np.float64)
    centred = pooled - pooled.mean(0)
    k = min(DIRECTIONS, len(pooled) // 8)
    _, scale, axes = np.linalg.svd(centred, full_matrices=False)
    axes = axes[:k].T / np.maximum(scale[:k], 1e-9) * np.sqrt(len(pooled))  # (C, K)
    pieces = [x.astype(np.float64) @ axes for x in (*real, *generated)]
    chance, n = np.random.default_rng(random_seed), len(real)

    def between(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
        return frechet(*(np.concatenate([pieces[i] for i in numbers]) for numbers in (first, second)))

    own, other = np.arange(n), np.arange(n, len(pieces))
    value = between(own, other)
    resampled = [between(chance.choice(own, n), chance.choice(other, len(other))) for _ in range(RESAMPLES)]
    halves, shuffled = [], []
    for _ in range(RESAMPLES):
        order = chance.permutation(own)
        halves.append(between(order[: n // 2], order[n // 2 :]))
        order = chance.permutation(len(pieces))
        shuffled.append(between(order[:n], order[n:]))
    p = (1 + sum(x >= value for x in shuffled)) / (1 + RESAMPLES)
    moved = np.maximum(np.array(resampled) - np.mean(resampled) + value, 0.0)  # equal pieces in a resample widen it
    return Frechet(*percentiles(value, moved), float(np.mean(halves)), p)
