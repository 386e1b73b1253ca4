"""The key of a score, and of each beat of a chorale grid, by the profiles of Krumhansl and Kessler (1982)."""

import numpy as np
from numpy.typing import NDArray

from musictx.music.grid import REST, STEPS_PER_QUARTER
from musictx.music.score import DRUMS, Score

MAJOR = (6.35, 2.23, 3.48, 2.33, 4.38, 4.09, 2.52, 5.19, 2.39, 3.66, 2.29, 2.88)
MINOR = (6.33, 2.68, 3.52, 5.38, 2.60, 3.53, 2.54, 4.75, 3.98, 2.69, 3.34, 3.17)
CONTEXT = 8  # beats before a beat, and as many after it
LEAST_LEAD = 1e-6  # correlation by which the best key leads; less is a tie


def tonics(grid: NDArray[np.integer]) -> NDArray[np.int64]:
    """(T,) the tonic's pitch class at each step of a grid (T, 4); -1 for a tie."""
    beats = -(-len(grid) // STEPS_PER_QUARTER)
    steps = np.zeros((beats * STEPS_PER_QUARTER, 12), np.int64)
    step, voice = np.nonzero(grid != REST)
    np.add.at(steps, (step, grid[step, voice] % 12), 1)
    before = np.zeros((beats + 1, 12), np.int64)  # steps of each pitch class before a beat
    before[1:] = np.cumsum(steps.reshape(beats, STEPS_PER_QUARTER, 12).sum(1), axis=0)
    beat = np.arange(beats)
    histogram = before[np.minimum(beat + CONTEXT, beats)] - before[np.maximum(beat - CONTEXT, 0)]  # (beats, 12)
    correlations = np.max([_correlation(histogram, profile) for profile in (MAJOR, MINOR)], axis=0)  # (beats, 12)
    order = np.sort(correlations, axis=1)
    tonics_of_beats = np.where(order[:, -1] - order[:, -2] > LEAST_LEAD, correlations.argmax(1), -1)
    return np.repeat(tonics_of_beats, STEPS_PER_QUARTER)[: len(grid)]


def key_of(score: Score) -> tuple[int, str] | None:
    """The pitch class of the tonic, and `major` or `minor`; None for a tie."""
    music = score.select(score.program != DRUMS)
    histogram = np.bincount(music.pitch % 12, weights=music.offset_s - music.onset_s, minlength=12)
    correlations = np.concatenate([_correlation(histogram[None], profile)[0] for profile in (MAJOR, MINOR)])  # (24,)
    best, second = np.sort(correlations)[[-1, -2]]
    if best - second <= LEAST_LEAD:
        return None
    mode, tonic = divmod(int(correlations.argmax()), 12)
    return tonic, ("major", "minor")[mode]


def _correlation(
    histogram: NDArray[np.integer] | NDArray[np.floating], profile: tuple[float, ...]
) -> NDArray[np.float64]:
    """(N, 12) of histograms (N, 12) with a profile on each tonic; 0 for a flat histogram."""
    keys = np.stack([np.roll(profile, tonic) for tonic in range(12)]) - np.mean(profile)  # (12, 12)
    deviation = histogram - histogram.mean(1, keepdims=True)
    length = np.linalg.norm(deviation, axis=1, keepdims=True) * np.linalg.norm(keys[0])
    result: NDArray[np.float64] = deviation @ keys.T / np.maximum(length, 1e-9)
    return result
