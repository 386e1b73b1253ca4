"""What is pre-training worth for labels? The notes of songs, and the composers of performances, from few files to all.

    OMP_NUM_THREADS=1 python studies/labels.py --archive maestro-v3.0.0-midi.zip --pop pop909.zip    # resumes

*Notes*: is a note of POP909 melody, bridge or piano? *Composers*: of the 14 with 20 or more performances in MAESTRO,
who wrote 20 s from the middle of a piece? From all performances also: who wrote the whole piece, by 8 windows of it?

Each kind of model gets `SECONDS` of CPU time, Muon, the same windows and augmentation, and its own rate: the one with
the least nats on training pieces that are set aside, between two that are worse. The rate is that of the middle size.
No model was trained on the held-out pieces: POP909's test songs, and performances of at most 20 titles of a composer in
MAESTRO's validation and test, without titles that its training has. MAESTRO writes some works in two ways: two or three
works are in both (K. 280, K. 466), and some are held out two to four times. They are read once for each model; of a
song, four windows. Intervals are over songs and performances. Set aside are three titles of a composer with all their
performances: of Mendelssohn 20 of 24, so "10 of each" are 134.
"""

import csv
import io
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
from numpy.typing import NDArray
from piano_music import stores
from shared import asked, options

from musictx.analysis.bootstrap import RESAMPLES, draw, percentiles
from musictx.config.app import settings
from musictx.config.mistakes import in_one_line
from musictx.data.dataset import Examples
from musictx.data.labelled_windows import LabelledCrops, LabelledData
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
SECONDS, BATCH, DECAY = 80.0, 16, 0.1
RATES = 5e-4, 1e-3, 2e-3  # more where the best has no neighbour
CLIP_S, WORKS, FEWEST = 20.0, 20, 20  # of a composer: held-out works, performances
ASIDE = {"notes": 27, "composers": 3}  # training pieces that choose the rate, of each label if each has its pieces
SIZES: dict[str, tuple[int | None, ...]] = {"notes": (10, 100, None), "composers": (1, 10, None)}
SPLITS = "train", "validation", "test", "whole"
PLAIN = build_tokenizer("performance")
OBJECTIVES = {"notes": "classify_notes", "composers": "classify"}


class Labels(NamedTuple):
    """A store with labels, and what each kind of model is asked."""

    task: str
    store: Store

    def config(self, kind: str, windows: int = 4) -> Any:
        words = [f"objective={OBJECTIVES[self.task]}", f"data.path={self.store.path}", "data.length=256"]
        config = settings("train", *words, f"data.score_batch_tokens={256 * windows}", *KINDS[kind])
        return sized_as_bundle(config)

    def data(self, kind: str, cycle: int, windows: int = 4) -> LabelledData:
        config, asked = self.config(kind, windows), OBJECTIVES[self.task]
        return LabelledData(
            config.data, self.store, build_objective(asked, None, self.store.tokenizer), BATCH, 0, cycle=cycle
        )

    def learn(self, kind: str, size: int | None, rate: float) -> tuple[Any, int]:
        """A model that learned, and its steps; `size` is how many pieces, of each composer if any, and None is all."""
        torch.manual_seed(0)
        config = self.config(kind)
        model = with_weights(new_model(config, self.store.tokenizer), config, self.store.tokenizer)
        data, train = self.data(kind, model.cycle), self.store.split("train")
        if size is not None:
            composer = [name.partition(": ")[0] if self.task == "composers" else "" for name in train.names]
            train = part(train, [i for i, c in enumerate(composer) if composer[:i].count(c) < size])
        crops = LabelledCrops(
            train, self.store.tokenizer, 256, 0, config.data.transpose, config.data.stretch, model.cycle
        )
        examples = Examples(crops, data.objective, 0)

        def loss(step: int) -> torch.Tensor:
            batch = examples.collate([examples[n] for n in range(step * BATCH, (step + 1) * BATCH)])
            with torch.autocast("cpu", torch.bfloat16):
                nats, n = data.objective.loss(model, batch)
            return nats / n.clamp(min=1)

        return model, timed.learn(model, loss, rate, timed.shares(SECONDS), DECAY)

    @torch.inference_mode()
    def answers(
        self, model: Any, kind: str, split: str, windows: int = 4
    ) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Logits (N, K) and right labels (N,) of each piece."""
        data = self.data(kind, model.cycle, windows)
        for example in data.pieces(split):
            with torch.autocast("cpu", torch.bfloat16):
                yield data.objective.of_piece(model, example)  # type: ignore[attr-defined]

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
    aside = ASIDE["notes"]
    return written(out, {"train": train[aside:], "validation": train[:aside], "test": test}, labels)


def composers(archive: Path, out: Path) -> Store:
    """MAESTRO with the composer of each performance; the test has clips, `whole` the same performances. No work is in
    two splits."""
    with zipfile.ZipFile(archive) as midi:
        table = next(name for name in midi.namelist() if name.endswith(".csv"))
        rows = list(csv.DictReader(io.StringIO(midi.read(table).decode())))
        folder, count = table.rpartition("/")[0], Counter(row["canonical_composer"] for row in rows)
        labels = sorted(name for name in count if count[name] >= FEWEST)
        grown, splits = with_labels(PLAIN, len(labels)), {name: list[Piece]() for name in SPLITS}
        split_of = {(r["canonical_composer"], r["canonical_title"]): "train" for r in rows if r["split"] == "train"}
        held: Counter[tuple[str, str]] = Counter()  # works that are set aside or held out, of each composer
        for i in np.random.default_rng(0).permutation(len(rows)).tolist():
            who, name = rows[i]["canonical_composer"], rows[i]["midi_filename"]
            if who not in labels:
                continue
            work, split = (who, rows[i]["canonical_title"]), "train"
            if rows[i]["split"] != "train":
                if work in split_of or held[who, "test"] == WORKS:
                    continue
                split = "test"
            elif split_of[work] == "validation" or held[who, "validation"] < ASIDE["composers"]:
                split = "validation"
            if split != "train":
                held[who, split] += split_of.get(work) != split
                split_of[work] = split
            score = read_tracks(midi.read(f"{folder}/{name}"), name).merge()
            score = replace(score, program=np.full(len(score), labels.index(who)))
            whole = piece(f"{who}: {name}", score, grown)
            middle_s = score.duration_s / 2
            clip = piece(f"{who}: {name}", score.clip(middle_s - CLIP_S / 2, middle_s + CLIP_S / 2), grown)
            splits[split].append(whole if split == "train" else clip)
            if split == "test":
                splits["whole"].append(whole)
    return written(out, splits, labels)


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
    args, _ = asked(parser)
    if args.pairs:
        KINDS["masked encoder with pairs"] = [f"init_from={args.pairs}"]
    for task in [args.task] if args.task else SIZES:
        path = args.out / task
        if (path / "manifest.json").exists():
            labels = Store(path, PLAIN.name).manifest.extra["labels"]
            store = written(path, {}, labels)
        elif task == "notes":
            store = notes(args.pop, Store(stores({"pop": args.pop}, args.out)["pop"], PLAIN.name), path)
        else:
            store = composers(args.archive, path)
        for kind in KINDS:
            measure(Labels(task, store), timed.Runs(args.out / f"{task}.json"), kind)


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
