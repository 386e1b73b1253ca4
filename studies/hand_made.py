"""What do hand-made features give for the labels of studies/labels.py, without a model?

    OMP_NUM_THREADS=1 python studies/hand_made.py --out outputs/labels    # after labels.py; resumes

Stores, splits, held-out pieces and measures are those of studies/labels.py. For both tasks: the most frequent label of
the training, always; a linear SVM on features, from few pieces to all. For notes also: the highest sounding note is the
melody. Notes are judged where the models of 80 s read a song (`test`), and in the whole song (`whole`).

Of composers the SVM learns `CLIPS` random clips of each performance. It is asked the clips that models are asked. For
whole pieces it learns whole performances. C, and for clips also whether rare composers weigh more, are chosen on the
pieces set aside. Of whole performances none is set aside, so `FOLDS` folds of the training choose C. A work may be in
two of them, since a store names no works: these folds say little of new works.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import timed
import torch
from labels import CHORD_S, CLIP_S, PLAIN, SIZES, Budget, accuracy_and_f1
from numpy.typing import NDArray
from shared import asked, options

from musictx.config.mistakes import in_one_line
from musictx.data.store import Store
from musictx.music.score import Score
from musictx.tokenizers.labels import strikes, unmarked, with_labels

Array = NDArray[Any]
Answer = Callable[[Array], Array]  # features (N, F) to labels (N,)
C = 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 1.0
WAYS = {  # C, and whether rare labels weigh more
    "notes": list(product((1e-5, 1e-4, 1e-3, 1e-2, 0.1), (False,))),
    "clips": list(product(C, (False, True))),
    "pieces": list(product(C, (False,))),
}
BY_HAND = "composers, hand-made features, linear SVM"
MOST = 200_000  # notes that an SVM learns, a random sample of those of its songs
CLIPS, FEWEST_NOTES, FOLDS = 10, 9, 3
NEAR_S, LONGEST_S, SHORTEST_S = 2.0, 4.0, 0.01  # a note that began more than `LONGEST_S` ago no longer sounds
HIGHER = 6  # the column of a note's features that counts the higher notes that sound


def svm(x: Array, label: Array, c: float, balanced: bool = False) -> Answer:
    """A linear SVM on standardised features, one label against the rest: squared hinge, L2, also of the bias.
    `balanced`: the cases of a label weigh more, the fewer there are."""
    mean, scale = x.mean(0), x.std(0)
    scale[scale < 1e-12] = 1
    known, which, n = np.unique(label, return_inverse=True, return_counts=True)

    def rows(x: Array) -> torch.Tensor:
        return torch.from_numpy(np.column_stack([(x - mean) / scale, np.ones(len(x))]))

    inputs, own = rows(x), torch.from_numpy(which[:, None] == np.arange(len(known)))
    sign = torch.where(own, 1.0, -1.0).double()
    weight = torch.where(own, torch.from_numpy(len(x) / len(known) / n if balanced else np.ones(len(n))), 1.0)
    w = torch.zeros(inputs.shape[1], len(known), dtype=torch.float64, requires_grad=True)
    how: Any = {"max_iter": 2000, "max_eval": 4000, "history_size": 20, "line_search_fn": "strong_wolfe"}
    optimizer = torch.optim.LBFGS([w], tolerance_grad=1e-5, tolerance_change=1e-9, **how)

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        missed = (1 - sign * (inputs @ w)).clamp(min=0)
        total = (w.square().sum() / (2 * c) + (weight * missed.square()).sum()) / len(x)
        total.backward()
        return total

    optimizer.step(loss)
    return lambda x: known[(rows(x) @ w.detach()).argmax(1).numpy()]


def note_features(score: Score) -> Array:
    """(N, 18) of each note: itself, the notes that begin with it, those that sound, and those nearby."""
    on, pitch, velocity = score.onset_s, score.pitch.astype(float), score.velocity.astype(float)
    n, length = len(on), np.log(np.maximum(score.offset_s - on, SHORTEST_S))

    def pairs(before_s: float, after_s: float) -> tuple[Array, Array]:
        """Each note, in order, with each note that begins near it, or is it."""
        first, last = np.searchsorted(on, [on - before_s, on + after_s])
        note = np.repeat(np.arange(n), last - first)
        return note, np.arange(len(note)) - np.repeat(np.cumsum(last - first) - last, last - first)

    def total(values: Array) -> Array:
        return np.bincount(note, values, n)

    note, other = pairs(CHORD_S, CHORD_S)
    begin = [total(x) for x in (note >= 0, pitch[other] > pitch[note], pitch[other] < pitch[note])]
    note, other = pairs(LONGEST_S, CHORD_S)
    sounds = score.offset_s[other] > on[note] + 1.5 * SHORTEST_S
    held = [total(sounds & x) for x in (pitch[other] > pitch[note], pitch[other] < pitch[note])]
    note, other = pairs(NEAR_S, NEAR_S)
    first, count = np.searchsorted(note, np.arange(n)), total(note >= 0)
    keys = [
        np.add.reduceat(pitch[other], first) / count,
        *(f.reduceat(pitch[other], first) for f in (np.fmax, np.fmin)),
    ]
    loud = [total(velocity[other]) / count, np.fmax.reduceat(velocity[other], first)]
    near = [*(pitch - x for x in keys), *(velocity - x for x in loud), count]
    near += [total(velocity[other] == velocity[note]) / count, total(np.abs(pitch[other] - pitch[note])) / count]
    near += [length - total(length[other]) / count, total(pitch[other] > pitch[note]) / count]
    return np.column_stack([pitch, velocity, length, *begin, *held, *near])


def with_made(x: Array) -> Array:
    """(N, 27): the features of notes and nine made of them, since a linear SVM makes none."""
    flags = x[:, [6, 7]] == 0, x[:, 14:15] > 0.9
    return np.column_stack([x, x[:, 0] * x[:, 8] / 50, *flags, x[:, 8:13] ** 2 / 100])


def clip_features(score: Score) -> Array:
    """(132,) of a clip or piece: counts of pitch classes from the most frequent one, of intervals, lengths and so on.
    The last 27 depend on the key."""
    on, pitch, velocity = score.onset_s, score.pitch.astype(int), score.velocity.astype(int)
    length, wait, step = score.offset_s - on, np.diff(on), np.diff(pitch)
    of_class = np.bincount(pitch % 12, minlength=12) / len(on)

    def shares(values: Array, edges: Array) -> Array:
        return np.histogram(values, edges)[0] / len(values)

    times = shares(np.log10(length.clip(0.01, 10)), np.linspace(-2, 1, 13)), len(on) / score.duration_s
    waits = shares(np.log10(wait.clip(1e-3, 5)), np.linspace(-3, 0.7, 16)), (wait < 0.03).mean()
    steps = shares(step.clip(-24, 24), np.arange(-24.5, 25)), np.abs(step).mean(), (np.abs(step) == 12).mean()
    loud = shares(velocity, np.arange(0, 129, 16)), velocity.mean(), velocity.std()
    rest = (np.abs(step) <= 2).mean(), length.sum() / score.duration_s, pitch.std()
    keys = pitch.mean(), np.percentile(pitch, [5, 25, 75, 95]), shares(pitch, np.arange(21, 110, 4))
    return np.hstack([np.roll(of_class, -of_class.argmax()), *times, *waits, *steps, *loud, *rest, *keys])


class Case(NamedTuple):
    """Of the notes of a song, or of clips of a performance: features (N, F), labels (N,), and which models read."""

    x: Array
    label: Array
    read: Array


@cache
def cases(path: Path, split: str, clips: bool = False) -> list[Case]:
    """The pieces of a split; `clips`: random clips of each."""
    store, rng, found = Store(path, PLAIN.name), np.random.default_rng(0), list[Case]()
    tokenizer = with_labels(PLAIN, len(store.manifest.extra["labels"]))
    for ids in map(np.asarray, store.split(split)):
        plain, label = unmarked(tokenizer, ids)
        parts = [PLAIN.decode(plain)]
        if path.name == "notes":
            window = (strikes(tokenizer, ids) + 1) // Budget().length  # BOS comes first
            read = np.isin(window, np.linspace(0, (len(ids) - 1) // Budget().length, 4).round())
            found.append(Case(with_made(note_features(parts[0])), label, read))
            continue
        if clips:
            starts = rng.uniform(0, max(parts[0].duration_s - CLIP_S, 0.1), CLIPS)
            parts = [each for s in starts if len(each := parts[0].clip(s, s + CLIP_S)) >= FEWEST_NOTES]
        found.append(Case(np.array([clip_features(part) for part in parts]), label[: len(parts)], label[:1] >= 0))
    return found


def learned(learn: Sequence[Case], c: float, balanced: bool) -> Answer:
    x, label = np.concatenate([case.x for case in learn]), np.concatenate([case.label for case in learn])
    some = np.random.default_rng(0).permutation(len(x))[:MOST]
    return svm(x[some], label[some], c, balanced)


class Study:
    """The figures of a store of studies/labels.py."""

    def __init__(self, path: Path) -> None:
        store = Store(path, PLAIN.name)
        self.path, self.labels, names = path, store.manifest.extra["labels"], store.split("train").names
        self.is_notes = path.name == "notes"
        self.by = ["" if self.is_notes else name.partition(": ")[0] for name in names]

    def first(self, size: int | None) -> list[int]:
        """The training pieces that `Labels.learn` of studies/labels.py takes."""
        return [i for i, who in enumerate(self.by) if size is None or self.by[:i].count(who) < size]

    def judged(self, answer: Answer, split: str = "test") -> dict[str, Any]:
        k, confusion = len(self.labels), list[Array]()
        for case in cases(self.path, split):
            pairs = case.label * k + answer(case.x)
            confusion.append(np.array([np.bincount(each, minlength=k * k) for each in (pairs[case.read], pairs)]))
        read, whole = np.array(confusion).reshape(-1, 2, k, k).swapaxes(0, 1)
        return {"test": accuracy_and_f1(read)} | ({"whole": accuracy_and_f1(whole)} if self.is_notes else {})

    def most_frequent(self) -> dict[str, Any]:
        most = np.bincount(np.concatenate([case.label for case in cases(self.path, "train")])).argmax()
        return {"always": self.labels[most]} | self.judged(lambda x: np.full(len(x), most))

    def highest(self) -> dict[str, Any]:
        melody, others = self.labels.index("MELODY"), self.labels.index("PIANO")
        return self.judged(lambda x: np.where(x[:, HIGHER] == 0, melody, others))

    def svm(self, of: str, size: int | None = None) -> dict[str, Any]:
        """Of all ways the one with most right answers in what is set aside, where each song or clip counts the same."""
        train = cases(self.path, "train", clips=of == "clips")
        learn = [train[i] for i in self.first(size)]
        pairs = [(learn, cases(self.path, "validation"))]
        if of == "pieces":
            fold = [self.by[:i].count(who) % FOLDS for i, who in enumerate(self.by)]
            dealt = list(zip(learn, fold, strict=True))
            pairs = [([x for x, n in dealt if n != k], [x for x, n in dealt if n == k]) for k in range(FOLDS)]
        right = {way: list[float]() for way in WAYS[of]}
        for way, (known, aside) in product(right, pairs):
            answer = learned(known, *way)
            right[way] += [float((answer(case.x) == case.label).mean()) for case in aside]
        way = max(right, key=lambda way: np.mean(right[way]))
        chosen = {"C": way[0], "balanced": way[1], "set aside": np.mean(right[way])}
        return chosen | self.judged(learned(learn, *way), "whole" if of == "pieces" else "test")

    def runs(self) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
        """The name of each run, and how it is made."""
        yield f"{self.path.name}, always the most frequent label of the training", self.most_frequent
        if self.is_notes:
            yield "notes, the highest sounding note is MELODY, others PIANO", self.highest
        for size in SIZES[self.path.name]:
            n = len(self.first(size))
            if self.is_notes:
                yield f"notes, 27 hand-made features of notes, linear SVM, {n} songs", partial(self.svm, "notes", size)
            else:
                yield f"{BY_HAND}, {n} performances", partial(self.svm, "clips", size)
        if not self.is_notes:
            yield f"{BY_HAND}, {len(self.by)} performances, whole pieces", partial(self.svm, "pieces")


def main() -> None:
    args, _ = asked(options(__doc__, "out", out=Path("outputs/labels")))
    runs = timed.Runs(args.out / "hand-made.json")
    for study in (Study(args.out / "notes"), Study(args.out / "composers")):
        for name, make in study.runs():
            print(f"{name}: {runs.get(name, make)}", flush=True)


if __name__ == "__main__":
    with in_one_line():
        main()
