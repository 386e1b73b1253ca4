"""The label of a piece, and which notes decided: each is left out, and the log-odds of the label change."""

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

Hear = Callable[[Sequence[Score]], Vectors]  # scores -> (N, C)
LEAST = 4  # readings for each passage
# of all passages together without some of their notes: at most so many readings, or so few that they have so many ids
READINGS, READ_IDS = 300, 2**18
NAMED = 10  # notes that decided most


class Answer(NamedTuple):
    """For a piece: the logits (P, K) of its passages, which begin at `from_s`, their mean, and how far the log-odds of
    the winning label fall without each note (N,), NaN for notes that were not heard."""

    labels: list[str]
    from_s: list[float]
    logits: NDArray[np.float64]
    mean: NDArray[np.float64]  # (K,)
    fall: NDArray[np.float64]

    @property
    def label(self) -> str:
        return self.labels[int(self.mean.argmax())]

    @property
    def ranked(self) -> NDArray[np.int64]:
        """The heard notes by what they add to the label; the first decided most."""
        return np.argsort(-self.fall, kind="stable")[: np.count_nonzero(~np.isnan(self.fall))]  # NaN comes last

    @property
    def decided(self) -> NDArray[np.int64]:
        return self.ranked[self.fall[self.ranked] > 0][:NAMED]

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
            "notes": [note(n) for n in self.ranked.tolist()],
        }


def ask(score: Score, passages: Sequence[Passage], probe: Probe, embedder: Embedder) -> Answer:
    """Hears the passages of a piece, then hears them again without notes. Says how long that takes."""
    ids = np.mean([len(embedder.tokenizer.encode(passage.score)) for passage in passages])
    readings = max(min(READINGS, int(READ_IDS / ids)), LEAST * len(passages))
    most = 2 * len(passages) + min(readings, sum(len(passage.score) for passage in passages))
    waiting = Waiting(f"reading {most} passages, most without some of their notes (passages= asks for fewer)", most)
    hear = partial(embedder.vectors, waiting=waiting)
    logits = probe.layer.logits(hear([passage.score for passage in passages]))
    mean = logits.mean(0)
    fall = deciding_notes(score, passages, probe.about.passage_seconds, hear, probe.layer, int(mean.argmax()), readings)
    return Answer(probe.about.labels, [passage.from_s for passage in passages], logits, mean, fall)


def softmax(logits: NDArray[Any]) -> NDArray[np.float64]:
    """Probabilities (..., K) of logits (..., K)."""
    share: NDArray[np.float64] = np.exp(logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True))
    return share


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
    score: Score, passages: Sequence[Passage], length_s: float, hear: Hear, layer: Layer, label: int, readings: int
) -> NDArray[np.float64]:
    """(N,) how far the label's log-odds for the piece fall without each note; NaN for notes outside all passages.

    With more notes than `readings`, half the readings leave out neighbours together. The other half take the notes of
    the groups that matter most, one by one. `readings` are at least `LEAST` for each passage.
    """
    own = hear([passage.score for passage in passages])  # (P, C)
    before = log_odds(layer.logits(own.mean(0)), label)

    def falls(parts: Sequence[Group]) -> NDArray[np.float64]:
        """How far the log-odds fall without each part."""
        vectors = hear([without(passages[part.passage].score, part.notes) for part in parts])
        passage = [part.passage for part in parts]
        means = own.mean(0) + (vectors - own[passage]) / len(own)
        return before - log_odds(layer.logits(means), label)

    sizes = [len(passage.score) for passage in passages]
    whole = sum(sizes) <= readings
    parts = split(sizes, readings if whole else readings // 2)
    drops = falls(parts)
    change = [np.zeros(size) for size in sizes]
    for part, fall in zip(parts, drops, strict=True):
        change[part.passage][part.notes] = fall / len(part.notes)
    if not whole:
        ranked = [parts[n] for n in np.argsort(-drops, kind="stable")]
        single = [Group(part.passage, part.notes[n : n + 1]) for part in ranked for n in range(len(part.notes))]
        single = single[: readings - len(parts)]
        for part, fall in zip(single, falls(single), strict=True):
            change[part.passage][part.notes] = fall
    total = np.full(len(score), np.nan)
    for passage, fall in zip(passages, change, strict=True):
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
