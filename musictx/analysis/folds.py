"""Nested cross-validation of labels (Cawley and Talbot 2010), by folds of whole files."""

from collections.abc import Sequence
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.analysis.bootstrap import Interval
from musictx.analysis.embedding import Vectors
from musictx.analysis.probe import Layer, fit

FOLDS = 5
STRENGTHS = (10.0, 1.0, 0.1, 0.01, 0.001, 0.0001)  # of L2, beside a mean loss


class LabelledVectors(NamedTuple):
    """Passages of F files: vectors (N, C), their file (N,), its label (F,), the first file much like it (F,)."""

    vectors: Vectors
    file: NDArray[Any]
    label: NDArray[Any]
    group: NDArray[Any]

    def of(self, files: NDArray[np.bool_]) -> "LabelledVectors":
        """Only the files where `files` (F,) is True."""
        number = np.cumsum(files) - 1
        rows = files[self.file]
        return LabelledVectors(self.vectors[rows], number[self.file[rows]], self.label[files], self.group[files])

    def means(self) -> Vectors:
        """(F, C), each file's mean over its passages."""
        total = np.zeros((len(self.label), self.vectors.shape[1]))
        np.add.at(total, self.file, self.vectors)
        means: Vectors = (total / np.bincount(self.file)[:, None]).astype(np.float32)
        return means

    def fit(self, labels: int, strengths: Sequence[float]) -> list[Layer]:
        """A layer for each strength; every file has the same weight."""
        passages = np.bincount(self.file)
        return fit(self.vectors, self.label[self.file], 1 / passages[self.file], labels, strengths)


def deal(label: NDArray[Any], group: NDArray[Any]) -> NDArray[np.int64]:
    """(F,) the fold of each file; alike files share one."""
    order = np.random.default_rng(0).permutation(len(label))
    fold_of: dict[int, int] = {}
    for f in order[np.argsort(label[order], kind="stable")].tolist():
        fold_of.setdefault(int(group[f]), len(fold_of) % FOLDS)
    return np.array([fold_of[int(g)] for g in group])


def choose_strength(vectors: LabelledVectors, labels: int) -> float:
    """The strength of L2 with the least log loss of held-out files."""
    fold, means = deal(vectors.label, vectors.group), vectors.means()
    nats = np.zeros(len(STRENGTHS))
    for k in np.unique(fold):
        is_test = fold == k
        if is_test.all():  # one group is left, as where two labels have two files each
            return STRENGTHS[0]
        for n, layer in enumerate(vectors.of(~is_test).fit(labels, STRENGTHS)):
            logits, label = layer.logits(means[is_test]), vectors.label[is_test]
            nats[n] += (np.logaddexp.reduce(logits, axis=1) - logits[np.arange(len(label)), label]).sum()
    return STRENGTHS[int(nats.argmin())]


class Figures(NamedTuple):
    """Answers (F,) of held-out files, beside always the commonest label."""

    answers: NDArray[np.int64]
    accuracy: Interval
    macro_f1: float
    commonest: int
    commonest_accuracy: float
    commonest_f1: float


def cross_validate(vectors: LabelledVectors, labels: int) -> Figures:
    """Classifies every file by a layer that has not seen its fold."""
    fold, means = deal(vectors.label, vectors.group), vectors.means()
    answers = np.zeros(len(vectors.label), np.int64)
    for k in np.unique(fold):
        is_test = fold == k
        training = vectors.of(~is_test)
        (layer,) = training.fit(labels, [choose_strength(training, labels)])
        answers[is_test] = layer.logits(means[is_test]).argmax(1)
    accuracy = share_interval(float((answers == vectors.label).mean()), len(np.unique(vectors.group)))
    commonest = int(np.bincount(vectors.label).argmax())
    always = np.full(len(answers), commonest)
    baseline = float((always == vectors.label).mean()), macro_f1(always, vectors.label, labels)
    return Figures(answers, accuracy, macro_f1(answers, vectors.label, labels), commonest, *baseline)


def in_words(figures: Figures, labels: list[str], count: str) -> str:
    """The figures in a sentence."""
    (mean, low, high), always = figures.accuracy, f"always saying {labels[figures.commonest]}"
    sentence = (
        f"held-out accuracy {mean:.2f} ({low:.2f} to {high:.2f}), macro F1 {figures.macro_f1:.2f}, {count}; {always}: "
        f"{figures.commonest_accuracy:.2f}, macro F1 {figures.commonest_f1:.2f}"
    )
    if mean <= figures.commonest_accuracy:
        return f"{sentence}; this is not better than {always}"
    if low <= figures.commonest_accuracy:
        return f"{sentence}; this is not surely better than {always}, so give more files"
    return sentence


def share_interval(share: float, n: int) -> Interval:
    """The 95 % interval of a share of n cases (Wilson with continuity correction, Newcombe 1998)."""
    # where all answers are right, a bootstrap would have no width
    z = 1.95996

    def low(p: float) -> float:
        root = sqrt(max(z * z - 1 / n + 4 * n * p * (1 - p) + 4 * p - 2, 0.0))
        return max((2 * n * p + z * z - 1 - z * root) / (2 * (n + z * z)), 0.0)

    return Interval(share, min(low(share), share), max(1 - low(1 - share), share))


def macro_f1(answers: NDArray[Any], label: NDArray[Any], labels: int) -> float:
    """The mean of F1 over the labels among answers or files."""
    counts = [(((answers == k) & (label == k)).sum(), (answers == k).sum() + (label == k).sum()) for k in range(labels)]
    return float(np.mean([2 * right / both for right, both in counts if both]))
