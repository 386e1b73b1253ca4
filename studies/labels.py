"""What is pre-training worth for labels? The notes of songs, and the composers of performances, from few files to all.

    OMP_NUM_THREADS=1 python studies/labels.py --archive maestro-v3.0.0-midi.zip --pop pop909.zip    # resumes
    python studies/labels.py --archive maestro-v3.0.0-midi.zip --pop pop909.zip --steps 500          # on a GPU

*Notes*: is a note of POP909 melody, bridge or piano? *Composers*: of those with 10 or more works in MAESTRO, who wrote
20 s from the middle of a piece? From all performances also: who wrote the whole piece, by 8 windows of it?

Each kind of model gets `SECONDS` of CPU time, Muon, the same windows and augmentation, and its own rate: the one with
the least nats on training pieces that are set aside, between two that are worse. The rate is that of the middle size.
With `--steps`, each gets as many steps on a GPU, of more and longer windows.

Performances of a composer are of one work if they share a title, or `SHARED` of the pitch sequences of the shorter:
MAESTRO lists a few works under two composers: Debussy's Général Lavine also as Chopin's (set aside), Beethoven's Eroica
Variations also as Chopin's (both held out), K. 576 and Op. 60 twice in the training. D. 841 to 843 look like movements
of D. 840. Nothing is left out for this. No model was trained on the held-out pieces: POP909's test songs, and one
performance of each work in MAESTRO's validation and test that its training has not. They are read once for each model;
of a song, four windows. Intervals are over songs and works. A fifth of a composer's works is set aside, at least one,
those of fewest performances: one performance of each, 30 clips in all.
"""

import csv
import io
import re
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import timed
import torch
from baseline_runs import part
from lightning.fabric.utilities import move_data_to_device
from numpy.typing import NDArray
from piano_music import stores
from shared import asked, options
from torch.utils.data import DataLoader

from musictx.analysis.bootstrap import RESAMPLES, draw, percentiles
from musictx.config.app import settings
from musictx.config.mistakes import in_one_line
from musictx.data.dataset import Examples
from musictx.data.labelled_windows import LabelledCrops, LabelledData
from musictx.data.similar import Links
from musictx.data.source import open_source
from musictx.data.store import Corpus, Piece, Store, write_store
from musictx.music.read import read_tracks
from musictx.music.score import Score
from musictx.objectives import build_objective
from musictx.tokenizers import Tokenizer, build_tokenizer
from musictx.tokenizers.labels import labels_of, marked, with_labels
from musictx.training.fit import new_model
from musictx.training.labelled import by_track
from musictx.training.start import sized_as_bundle, with_weights

KINDS: dict[str, list[str]] = {
    "encoder from nothing": ["model=encoder", "model.n_layers=6"],
    "masked encoder": ["init_from=encoder"],
    "piano model": ["init_from=piano"],
    "vit": ["model=vit"],
    "se_resnet": ["model=se_resnet"],
    "se_resnet without gates": ["model=se_resnet", "model.gates=false"],
}
SECONDS, DECAY = 80.0, 0.1
RATES = 5e-4, 1e-3, 2e-3  # more where the best has no neighbour
CLIP_S, FEWEST = 20.0, 10  # works of a composer
ASIDE = 27  # songs that choose the rate
RUN, CHORD_S = 6, 0.035  # notes of a pitch sequence; those that begin closer together are in order of pitch
SHARED = 0.04  # from 0.045 to 0.96 are of one work, a part or another version of the work; below 0.03 nothing is
SIZES: dict[str, tuple[int | None, ...]] = {"notes": (10, 100, None), "composers": (1, 10, None)}
SPLITS = "train", "validation", "test", "whole"
PLAIN = build_tokenizer("performance")
OBJECTIVES = {"notes": "classify_notes", "composers": "classify"}


class Budget(NamedTuple):
    """How much a model learns, and where."""

    steps: int | None = None  # None: `SECONDS` of CPU time
    device: str = "cpu"
    batch: int = 16
    length: int = 256  # ids of a window
    workers: int = 0

    def shares(self) -> Iterator[float]:
        return timed.shares(SECONDS) if self.steps is None else (n / self.steps for n in range(self.steps))


class Labels(NamedTuple):
    """A store with labels, and what each kind of model is asked."""

    task: str
    store: Store
    budget: Budget = Budget()

    def config(self, kind: str, windows: int = 4) -> Any:
        length = self.budget.length
        words = [f"objective={OBJECTIVES[self.task]}", f"data.path={self.store.path}", f"data.length={length}"]
        config = settings("train", *words, f"data.score_batch_tokens={length * windows}", *KINDS[kind])
        return sized_as_bundle(config)

    def data(self, kind: str, cycle: int, windows: int = 4) -> LabelledData:
        config = self.config(kind, windows)
        objective = build_objective(OBJECTIVES[self.task], None, self.store.tokenizer)
        return LabelledData(config.data, self.store, objective, self.budget.batch, 0, cycle=cycle)

    def learn(self, kind: str, size: int | None, rate: float) -> tuple[Any, int]:
        """A model that learned, and its steps; `size` is how many pieces, of each composer if any, and None is all."""
        torch.manual_seed(0)
        config = self.config(kind)
        model = with_weights(new_model(config, self.store.tokenizer), config, self.store.tokenizer)
        data, train = self.data(kind, model.cycle), self.store.split("train")
        if size is not None:
            composer = [name.partition(": ")[0] if self.task == "composers" else "" for name in train.names]
            train = part(train, [i for i, c in enumerate(composer) if composer[:i].count(c) < size])
        augmentation = config.data.transpose, config.data.stretch, model.cycle
        crops = LabelledCrops(train, self.store.tokenizer, self.budget.length, 0, *augmentation)
        examples, device = Examples(crops, data.objective, 0), self.budget.device
        how: Any = {"num_workers": self.budget.workers, "collate_fn": examples.collate}
        batches = iter(DataLoader(examples, self.budget.batch, sampler=range(2**31), **how))
        model.to(device)

        def loss(_: int) -> torch.Tensor:
            with torch.autocast(device, torch.bfloat16):
                nats, n = data.objective.loss(model, move_data_to_device(next(batches), device))
            return nats / n.clamp(min=1)

        return model, timed.learn(model, loss, rate, self.budget.shares(), DECAY)

    @torch.inference_mode()
    def answers(
        self, model: Any, kind: str, split: str, windows: int = 4
    ) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Logits (N, K) and right labels (N,) of each piece."""
        data = self.data(kind, model.cycle, windows)
        for example in data.pieces(split):
            with torch.autocast(self.budget.device, torch.bfloat16):
                logits, label = data.objective.of_piece(  # type: ignore[attr-defined]
                    model, move_data_to_device(example, self.budget.device)
                )
            yield logits.float().cpu(), label.cpu()

    def nats(self, kind: str, rate: float) -> float:
        """Of a case, on the pieces set aside; each piece counts the same."""
        model, _ = self.learn(kind, SIZES[self.task][1], rate)
        said = [
            torch.nn.functional.cross_entropy(*each) for each in self.answers(model, kind, "validation") if len(each[1])
        ]
        return float(torch.stack(said).mean())

    def figures(self, kind: str, size: int | None, rate: float) -> dict[str, Any]:
        k = len(self.store.manifest.extra["labels"])
        model, steps = self.learn(kind, size, rate)
        found: dict[str, Any] = {"rate": rate, "steps": steps}
        for split, windows in (("test", 4), ("whole", 8))[: 1 + (size is None and self.task == "composers")]:
            confusion = []
            for logits, label in self.answers(model, kind, split, windows):
                pairs = label * k + logits.argmax(1)
                confusion.append(torch.bincount(pairs, minlength=k * k).reshape(k, k).numpy())
            found[split] = accuracy_and_f1(np.array(confusion))
        return found


def accuracy_and_f1(confusion: NDArray[Any]) -> dict[str, list[float]]:
    """Of (U, K, K) cases of U songs or works by label and answer: shares with their intervals."""
    drawn = np.concatenate([np.ones((1, len(confusion))), draw(len(confusion), RESAMPLES, np.random.default_rng(0))])
    total = np.tensordot(drawn, confusion, 1)  # (R, K, K)
    right, there = np.einsum("rkk->rk", total), total.sum(1) + total.sum(2)
    with np.errstate(invalid="ignore"):
        shares = {"accuracy": right.sum(1) / total.sum((1, 2)), "macro F1": np.nanmean(2 * right / there, 1)}
    return {name: list(percentiles(float(each[0]), each[1:])) for name, each in shares.items()}


def notes(pop: Path, songs: Store, out: Path) -> Store:
    """POP909 with the label of each note: the training songs of the store `songs`, and its test songs."""
    with open_source(pop, (".mid",)) as items:
        files, labels = by_track(str(pop), items, PLAIN)
    score_of = {file.name: file.score for file in files}
    grown = with_labels(PLAIN, len(labels))
    train, test = (
        [piece(n, score_of[n], grown) for n in songs.split(s).names if n in score_of] for s in ("train", "test")
    )
    train = [train[i] for i in np.random.default_rng(0).permutation(len(train))]
    return written(out, {"train": train[ASIDE:], "validation": train[:ASIDE], "test": test}, labels)


def composers(archive: Path, out: Path) -> Store:
    """MAESTRO with the composer of each performance; the test has clips, `whole` the same performances. No work is in
    two splits."""
    with zipfile.ZipFile(archive) as midi:
        table = next(name for name in midi.namelist() if name.endswith(".csv"))
        rows = list(csv.DictReader(io.StringIO(midi.read(table).decode())))
        names = [f"{table.rpartition('/')[0]}/{row['midi_filename']}" for row in rows]
        scores = [read_tracks(midi.read(name), name).merge() for name in names]
    by = [row["canonical_composer"] for row in rows]
    work = works(by, [row["canonical_title"] for row in rows], scores)
    of = {who: Counter(w for w, name in zip(work, by, strict=True) if name == who) for who in by}
    labels = sorted(who for who in of if len(of[who]) >= FEWEST)
    grown, splits = with_labels(PLAIN, len(labels)), {name: list[Piece]() for name in SPLITS}
    learned = {w for w, row in zip(work, rows, strict=True) if row["split"] == "train"}
    aside = set[int]()
    for who in labels:
        rarest = sorted(learned & set(of[who]), key=lambda w: (of[who][w], w))
        aside |= set(rarest[: max(len(rarest) // 5, 1)])
    used = set[int]()  # works that are set aside or held out: one performance of each
    for i in np.random.default_rng(0).permutation(len(rows)).tolist():
        is_train = rows[i]["split"] == "train"
        if by[i] not in labels or work[i] in used or (work[i] in learned) != is_train:
            continue
        split = "test" if not is_train else "validation" if work[i] in aside else "train"
        score = replace(scores[i], program=np.full(len(scores[i]), labels.index(by[i])))
        whole = piece(f"{by[i]}: {rows[i]['midi_filename']}", score, grown)
        if split == "train":
            splits[split].append(whole)
            continue
        used.add(work[i])
        middle_s = score.duration_s / 2
        clip = score.clip(middle_s - CLIP_S / 2, middle_s + CLIP_S / 2)
        splits[split].append(piece(whole.name, clip, grown))
        if split == "test":
            splits["whole"].append(whole)
    return written(out, splits, labels)


def works(composers: list[str], titles: list[str], scores: list[Score]) -> list[int]:
    """For each performance the first one of the same work."""
    runs, links, heard = [sequences(score) for score in scores], Links[int](), dict[str, list[int]]()
    title = [re.sub(r"\W+", " ", name.lower()).replace("complete", "").strip() for name in titles]
    for i, who in enumerate(composers):
        for j in heard.setdefault(who, []):
            shared = len(np.intersect1d(runs[i], runs[j], assume_unique=True)) / min(len(runs[i]), len(runs[j]))
            if title[i] == title[j] or shared > SHARED:
                links.join(i, j)
        heard[who].append(i)
    return [links.first(i) for i in range(len(scores))]


def sequences(score: Score) -> NDArray[np.int64]:
    """All runs of `RUN` pitches, each once, as numbers; milliseconds do not change the order in a chord."""
    chord = np.cumsum(np.diff(score.onset_s, prepend=0) > CHORD_S)
    pitch = score.pitch[np.lexsort((score.pitch, chord))].astype(np.int64)
    return np.unique(np.lib.stride_tricks.sliding_window_view(pitch, RUN) @ 128 ** np.arange(RUN))


def piece(name: str, score: Score, grown: Tokenizer) -> Piece:
    """A score, whose programs are the numbers of labels."""
    ids = PLAIN.encode(score)
    return Piece(name, marked(grown, ids, labels_of(PLAIN, ids, score)), score.duration_s)


def written(out: Path, splits: dict[str, list[Piece]], labels: list[str]) -> Store:
    if not (out / "manifest.json").exists():
        write_store(out, PLAIN, Corpus(out.name, "of the study alone"), splits, [], {"labels": labels})
    store = Store(out, PLAIN.name)
    store.tokenizer = with_labels(PLAIN, len(labels))
    return store


def main() -> None:
    parser = options(__doc__, "archive", "pop", "out", out=Path("outputs/labels"))
    parser.add_argument("--pairs", help="a masked encoder with the second task, to measure too")
    parser.add_argument("--task", choices=SIZES, help="one of the two; default: both")
    parser.add_argument("--kinds", nargs="*", help="only these kinds of models")
    parser.add_argument("--steps", type=int, help="on a GPU; default: a CPU's time")
    args, _ = asked(parser)
    budget = Budget() if args.steps is None else Budget(args.steps, "cuda", 32, 512, 2)
    if args.pairs:
        KINDS["masked encoder with pairs"] = [f"init_from={args.pairs}"]
    for task in [args.task] if args.task else SIZES:
        path = args.out / task
        if (path / "manifest.json").exists():
            store = written(path, {}, Store(path, PLAIN.name).manifest.extra["labels"])
        elif task == "notes":
            store = notes(args.pop, Store(stores({"pop": args.pop}, args.out)["pop"], PLAIN.name), path)
        else:
            store = composers(args.archive, path)
        runs = timed.Runs(args.out / (f"{task}.json" if args.steps is None else f"{task}-{args.steps}.json"))
        for kind in args.kinds or KINDS:
            measure(Labels(task, store, budget), runs, kind)


def measure(study: Labels, runs: timed.Runs, kind: str) -> None:
    """The figures of a kind of model for each size, at its rate."""

    def nats(rate: float) -> float:
        return float(runs.get(f"{kind}, rate {rate:g}", lambda: {"nats": study.nats(kind, rate)})["nats"])

    rate = timed.bracketed(RATES, nats)
    for size in SIZES[study.task]:
        name = f"{kind}, {size or 'all'}"
        print(f"{study.task}, {name}: {runs.get(name, partial(study.figures, kind, size, rate))}", flush=True)


if __name__ == "__main__":
    with in_one_line():
        main()
