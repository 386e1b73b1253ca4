"""A piece's label, and how far its log-odds fall without each note."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.analysis.embedding import Embedder, Passage, Vectors
from musictx.analysis.probe import Layer, Probe
from musictx.music.harmony import pitch_name
from musictx.music.score import Score
from musictx.waiting import Waiting

Embed = Callable[[Sequence[Score]], Vectors]  # scores -> (N, C)
LEAST_READINGS = 4  # readings for each passage
# of all passages together without some of their notes: at most so many readings, or so few that they have so many ids
MOST_READINGS, MOST_READ_IDS = 300, 2**18
MOST_NOTES = 10  # notes that decided most


class Answer(NamedTuple):
    """Logits of P passages, their mean, and how far the label's log-odds fall without each note."""

    labels: list[str]
    from_s: list[float]  # beginnings of the passages
    logits: NDArray[np.float64]  # (P, K)
    mean: NDArray[np.float64]  # (K,)
    fall: NDArray[np.float64]  # (N,), NaN outside all passages

    @property
    def label(self) -> str:
        return self.labels[int(self.mean.argmax())]

    @property
    def ranking(self) -> NDArray[np.int64]:
        """Numbers of the notes in passages; the first adds most to the label."""
        return np.argsort(-self.fall, kind="stable")[: np.count_nonzero(~np.isnan(self.fall))]  # NaN comes last

    @property
    def top_notes(self) -> NDArray[np.int64]:
        return self.ranking[self.fall[self.ranking] > 0][:MOST_NOTES]

    def facts(self, score: Score) -> dict[str, Any]:
        """All figures as JSON; the notes that decided most come first."""

        def by_label(logits: NDArray[Any]) -> dict[str, float]:
            return dict(zip(self.labels, softmax(logits).round(6).tolist(), strict=True))

        def note(n: int) -> dict[str, Any]:
            pitch = int(score.pitch[n])
            place = {"onset_s": float(score.onset_s[n]), "pitch": pitch, "note": pitch_name(pitch)}
            return place | {"log_odds": float(self.fall[n])}

        return {
            "label": self.label,
            "probability": by_label(self.mean),
            "log_odds": float(log_odds(self.mean, int(self.mean.argmax()))),
            "passages": [
                {"from_s": from_s, "probability": by_label(logits)}
                for from_s, logits in zip(self.from_s, self.logits, strict=True)
            ],
            "notes": [note(n) for n in self.ranking.tolist()],
        }


def attribute(score: Score, passages: Sequence[Passage], probe: Probe, embedder: Embedder) -> Answer:
    """Classifies a piece, then again without some notes."""
    ids = np.mean([len(embedder.tokenizer.encode(passage.score)) for passage in passages])
    readings = max(min(MOST_READINGS, int(MOST_READ_IDS / ids)), LEAST_READINGS * len(passages))
    total = 2 * len(passages) + min(readings, sum(len(passage.score) for passage in passages))
    waiting = Waiting(f"reading {total} passages, most without some of their notes (passages= asks for fewer)", total)
    embed = partial(embedder.vectors, waiting=waiting)
    logits = probe.layer.logits(embed([passage.score for passage in passages]))
    mean = logits.mean(0)
    fall = log_odds_falls(
        score, passages, probe.about.passage_seconds, embed, probe.layer, int(mean.argmax()), readings
    )
    return Answer(probe.about.labels, [passage.from_s for passage in passages], logits, mean, fall)


def softmax(logits: NDArray[Any]) -> NDArray[np.float64]:
    """Probabilities (..., K) of logits (..., K)."""
    share: NDArray[np.float64] = np.exp(logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True))
    return share


class Group(NamedTuple):
    """Neighbouring notes of a passage, by number."""

    passage: int
    notes: NDArray[np.int64]


def log_odds(logits: NDArray[Any], label: int) -> NDArray[np.float64]:
    """log(p / (1 - p)) of a label (...,), of logits (..., K)."""
    others = np.delete(logits, label, axis=-1)
    odds: NDArray[np.float64] = logits[..., label] - np.logaddexp.reduce(others, axis=-1)
    return odds


def log_odds_falls(
    score: Score, passages: Sequence[Passage], length_s: float, embed: Embed, layer: Layer, label: int, readings: int
) -> NDArray[np.float64]:
    """(N,) how far the label's log-odds fall without each note; NaN outside all passages."""
    vectors = embed([passage.score for passage in passages])  # (P, C)
    odds = log_odds(layer.logits(vectors.mean(0)), label)

    def falls(parts: Sequence[Group]) -> NDArray[np.float64]:
        partial_vectors = embed([without(passages[part.passage].score, part.notes) for part in parts])
        passage = [part.passage for part in parts]
        means = vectors.mean(0) + (partial_vectors - vectors[passage]) / len(vectors)
        return odds - log_odds(layer.logits(means), label)

    sizes = [len(passage.score) for passage in passages]
    one_by_one = sum(sizes) <= readings
    parts = split(sizes, readings if one_by_one else readings // 2)
    # where notes are many, half the readings leave out neighbours together, the others the notes of the most important
    # groups
    part_falls = falls(parts)
    note_falls = [np.zeros(size) for size in sizes]
    for part, fall in zip(parts, part_falls, strict=True):
        note_falls[part.passage][part.notes] = fall / len(part.notes)
    if not one_by_one:
        ranking = [parts[n] for n in np.argsort(-part_falls, kind="stable")]
        singles = [Group(part.passage, part.notes[n : n + 1]) for part in ranking for n in range(len(part.notes))]
        singles = singles[: readings - len(parts)]
        for part, fall in zip(singles, falls(singles), strict=True):
            note_falls[part.passage][part.notes] = fall
    total = np.full(len(score), np.nan)
    for passage, fall in zip(passages, note_falls, strict=True):
        is_inside = (score.onset_s >= passage.from_s) & (score.onset_s < passage.from_s + length_s)
        total[is_inside] = np.nan_to_num(total[is_inside]) + fall  # passages may overlap
    return total


def split(sizes: Sequence[int], most: int) -> list[Group]:
    """All notes of passages in at most `most` parts, each smaller than its passage."""
    parts = next(n for size in count(1) if sum(n := [max(-(-all // size), 2) for all in sizes]) <= most)
    return [
        Group(passage, notes)
        for passage, (all, n) in enumerate(zip(sizes, parts, strict=True))
        for notes in np.array_split(np.arange(all), n)
    ]


def without(score: Score, notes: NDArray[np.int64]) -> Score:
    return score.select(~np.isin(np.arange(len(score)), notes))
