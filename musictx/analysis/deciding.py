"""Which notes decided on a label: each is left out, and the log-odds of the label change."""

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.analysis.embedding import Passage, Vectors
from musictx.analysis.probe import Layer
from musictx.music.score import Score

Hear = Callable[[Sequence[Score]], Vectors]  # scores -> (N, C)
LEAST = 4  # readings for each passage


class Group(NamedTuple):
    """Neighbouring notes of a passage, by their numbers in its score."""

    passage: int
    notes: NDArray[np.int64]


def log_odds(logits: NDArray[Any], label: int) -> NDArray[np.float64]:
    """(...,) the logarithm of p / (1 - p) of a label, of logits (..., K)."""
    others = np.delete(logits, label, axis=-1)
    odds: NDArray[np.float64] = logits[..., label] - np.logaddexp.reduce(others, axis=-1)
    return odds


def deciding_notes(
    score: Score, heard: Sequence[Passage], length_s: float, hear: Hear, layer: Layer, label: int, readings: int
) -> NDArray[np.float64]:
    """(N,) how far the label's log-odds for the piece fall without each note; NaN for notes outside all passages.

    With more notes than `readings`, half the readings leave out neighbours together. The other half take the notes of
    the groups that matter most, one by one. `readings` are at least `LEAST` for each passage.
    """
    own = hear([passage.score for passage in heard])  # (P, C)
    before = log_odds(layer.logits(own.mean(0)), label)

    def falls(parts: Sequence[Group]) -> NDArray[np.float64]:
        """How far the log-odds fall without each part."""
        vectors = hear([without(heard[part.passage].score, part.notes) for part in parts])
        passage = [part.passage for part in parts]
        means = own.mean(0) + (vectors - own[passage]) / len(own)
        return before - log_odds(layer.logits(means), label)

    sizes = [len(passage.score) for passage in heard]
    whole = sum(sizes) <= readings
    parts = split(sizes, readings if whole else readings // 2)
    found = falls(parts)
    change = [np.zeros(size) for size in sizes]
    for part, fall in zip(parts, found, strict=True):
        change[part.passage][part.notes] = fall / len(part.notes)
    if not whole:
        ranked = [parts[n] for n in np.argsort(-found, kind="stable")]
        single = [Group(part.passage, part.notes[n : n + 1]) for part in ranked for n in range(len(part.notes))]
        single = single[: readings - len(parts)]
        for part, fall in zip(single, falls(single), strict=True):
            change[part.passage][part.notes] = fall
    total = np.full(len(score), np.nan)
    for passage, fall in zip(heard, change, strict=True):
        inside = (score.onset_s >= passage.from_s) & (score.onset_s < passage.from_s + length_s)
        total[inside] = np.nan_to_num(total[inside]) + fall  # passages may overlap
    return total


def split(sizes: Sequence[int], most: int) -> list[Group]:
    """All notes of passages of so many notes each, in at most `most` parts as small as that allows; no part is a whole
    passage."""
    parts = next(n for size in count(1) if sum(n := [max(-(-all // size), 2) for all in sizes]) <= most)
    return [
        Group(passage, notes)
        for passage, (all, n) in enumerate(zip(sizes, parts, strict=True))
        for notes in np.array_split(np.arange(all), n)
    ]


def without(score: Score, notes: NDArray[np.int64]) -> Score:
    return score.select(~np.isin(np.arange(len(score)), notes))
