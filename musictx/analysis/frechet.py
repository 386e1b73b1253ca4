"""The Fréchet distance between embeddings of two sets of passages (Kilgour et al. 2019, for sound)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.analysis.bootstrap import percentiles

DIRECTIONS = 16
RESAMPLES = 200
FEWEST, FEWEST_PASSAGES = 4, 8

Floats = NDArray[np.floating]


class Frechet(NamedTuple):
    """The distance with its interval over pieces; `p` is the share of shuffles as far apart.

    `floor`: the mean between random halves of the real pieces; `halved`: between as few real and generated ones.
    """

    mean: float
    low: float
    high: float
    floor: float
    halved: float
    p: float


def frechet(a: Floats, b: Floats) -> float:
    """The squared Wasserstein distance of two normal distributions that fit (N, K) and (M, K)."""
    root = _root(_covariance(a))
    both = np.linalg.eigvalsh(root @ _covariance(b) @ root)
    distance = ((a.mean(0) - b.mean(0)) ** 2).sum() + np.trace(_covariance(a) + _covariance(b))
    return float(distance - 2 * np.sqrt(np.maximum(both, 0)).sum())


def _covariance(x: Floats) -> NDArray[np.float64]:
    return np.atleast_2d(np.cov(x, rowvar=False, bias=True)).astype(np.float64)


def _root(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    values, vectors = np.linalg.eigh(matrix)
    root: NDArray[np.float64] = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    return root


def compare_passages(real: list[Floats], generated: list[Floats]) -> Frechet | str:
    """The distance of the passages (N, C) of real and generated pieces; or why there is none."""
    for whose, passages in (("the composers'", real), ("the model's", generated)):
        if len(passages) < FEWEST or sum(map(len, passages)) < FEWEST_PASSAGES:
            count = f"{len(passages)} of {whose} continuations have passages to hear, {sum(map(len, passages))} in all"
            return f"{count}; it needs {FEWEST} with {FEWEST_PASSAGES} passages: give more pieces= or length_seconds="
    n, rng = len(real), np.random.default_rng(0)
    real_rows, generated_rows = np.arange(n), np.arange(n, n + len(generated))
    orders = [rng.permutation(n + len(generated)) for _ in range(RESAMPLES)]
    pieces, pool = whiten(real, [*real, *generated]), whiten([*real, *generated], [*real, *generated])
    value = _between(pieces, real_rows, generated_rows)
    distances = [
        _between(pieces, rng.choice(real_rows, n), rng.choice(generated_rows, len(generated_rows)))
        for _ in range(RESAMPLES)
    ]
    samples = np.maximum(np.array(distances) - np.mean(distances) + value, 0.0)  # equal pieces in a resample widen it
    # the bias falls as 1 / pieces, so halves have twice as much: `halved` is the figure to compare with the floor
    half = min(n // 2, len(generated_rows))
    halves = [(rng.permutation(real_rows), rng.permutation(generated_rows)[:half]) for _ in range(RESAMPLES)]
    floor = np.mean([_between(pieces, a[:half], a[-half:]) for a, _ in halves])
    halved = np.mean([_between(pieces, a[:half], b) for a, b in halves])
    # only directions that know no labels are fair to all shuffles
    shuffled_distances = [_between(pool, order[:n], order[n:]) for order in orders]
    distance = _between(pool, real_rows, generated_rows)
    p = (1 + sum(x >= distance for x in shuffled_distances)) / (1 + RESAMPLES)
    return Frechet(*percentiles(value, samples), float(floor), float(halved), p)


def whiten(reference: list[Floats], pieces: list[Floats]) -> list[NDArray[np.float64]]:
    """Each piece (N, C) in the reference's main directions, (N, K), each of variance 1 there."""
    passages = np.concatenate(reference).astype(np.float64)
    # scaled by the real passages alone, so all models of a comparison have one scale
    mean, k = passages.mean(0), min(DIRECTIONS, len(passages) // 8)
    _, scale, axes = np.linalg.svd(passages - mean, full_matrices=False)
    axes = axes[:k].T / np.maximum(scale[:k], 1e-3 * scale[0] + 1e-9) * np.sqrt(len(passages))  # (C, K)
    return [(x - mean) @ axes for x in pieces]


def _between(pieces: list[NDArray[np.float64]], first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    return frechet(*(np.concatenate([pieces[i] for i in numbers]) for numbers in (first, second)))
