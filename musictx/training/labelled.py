"""From a folder of labelled files to a store, and how well a model knows the labels of pieces that it has not seen."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from musictx.analysis.folds import deal, figures_of, in_words, share_interval
from musictx.config.train import TrainConfig
from musictx.data.labelled import Labelled, check_labels, each_readable, folder_of, group_files, label_of
from musictx.data.labelled_windows import LabelledData
from musictx.data.source import Item, open_source
from musictx.data.store import Corpus, Piece, Store, write_store
from musictx.errors import ConfigError, MidiError, TokenError, UserError
from musictx.files import printable
from musictx.model.bundle import load_bundle
from musictx.model.header import read_header
from musictx.model.packaged import bundle_path
from musictx.music.read import MOST_BYTES, read_tracks
from musictx.music.score import Score
from musictx.objectives import Example, find_objective
from musictx.objectives.classify import Classify
from musictx.objectives.classify_notes import ClassifyNotes
from musictx.terminal import say
from musictx.tokenizers import Tokenizer, build_tokenizer
from musictx.tokenizers.labels import MOST_LABELS, labels_of, marked, with_labels
from musictx.training.run_folder import store_hash

FEWEST = 3  # files of a label: to learn from, to choose the best weights, to measure
FEWEST_NOTES = 4
SPLITS = {0: "test", 1: "validation"}  # by fold; the others are to learn from


def is_labelled(config: TrainConfig) -> bool:
    """Whether the objective learns labels from a folder of files, not from a store."""
    return issubclass(find_objective(config.objective), Classify)


def labelled_store(config: TrainConfig, folder: Path) -> Store:
    """Reads the files of `data.path` into a new store in `folder`, in which every note's label follows its strike. A
    fifth of the files is for the choice of the best weights, and a fifth for the figures at the end; files that are
    nearly the same are in one split. Raises UserError."""
    path, tokenizer = config.data.path, build_tokenizer(config.tokenizer.name)
    of_notes = issubclass(find_objective(config.objective), ClassifyNotes)
    with_labels(tokenizer, 1)  # refuses encodings without labels before the long reading
    with open_source(Path(path)) as items:
        files, labels = (by_track if of_notes else by_folder)(path, items, tokenizer)
    if len(labels) > MOST_LABELS:
        raise UserError(f"{path} has {len(labels)} labels", f"give at most {MOST_LABELS}")
    grown, group = with_labels(tokenizer, len(labels)), group_files(files, [] if of_notes else labels, FEWEST)
    dealt_by = np.array([0 if of_notes else labels.index(file.label) for file in files])
    fold = deal(dealt_by, np.array(group), each_label=True)
    splits: dict[str, list[Piece]] = {"train": [], "validation": [], "test": []}
    to_learn: set[int] = set()
    for file, k in zip(files, fold.tolist(), strict=True):
        ids = tokenizer.encode(file.score)
        ids = marked(grown, ids, labels_of(tokenizer, ids, file.score))
        splits[SPLITS.get(k, "train")].append(Piece(file.name, ids, file.score.duration_s))
        to_learn |= set(file.score.program.tolist()) if k not in SPLITS else set()
    for label in sorted(set(range(len(labels))) - to_learn):
        raise UserError(f"{path}: label {labels[label]} is in no file to learn from", "give more files")
    corpus = Corpus(printable(Path(path).resolve().stem), "not stated")
    different = len({g for g, k in zip(group, fold.tolist(), strict=True) if SPLITS.get(k) == "test"})
    write_store(folder, tokenizer, corpus, splits, [], {"labels": labels, "different_in_test": different})
    store = Store(folder, tokenizer.name)
    store.tokenizer = grown
    store.manifest.extra["data"] = store_hash(store)
    check_same_files(config, store)
    return store


def check_same_files(config: TrainConfig, store: Store) -> None:
    """Raises ConfigError for a bundle that learned labels of other files: these may be held out now."""
    before = {} if config.init_from is None else read_header(bundle_path(config.init_from)).objective
    if "labels" in before and before.get("data") != store.manifest.extra["data"]:
        why = "it learned labels of other files, some of which may be held out now"
        raise ConfigError("init_from", got=config.init_from, why=why, hint="leave it out, or give the same files")


def by_folder(path: str, items: list[Item], tokenizer: Tokenizer) -> tuple[list[Labelled], list[str]]:
    """Files, whose notes have the number of their folder as program, and all labels. Prints which are left out; raises
    UserError."""
    labels = check_labels(path, [label_of(item) for item in items], fewest=FEWEST)

    def read(item: Item) -> Labelled:
        label, tracks = folder_of(item), read_tracks(item.load(MOST_BYTES), item.name)
        score = replace(tracks.merge(), program=np.array(labels.index(label)))
        return Labelled(item.name, label, checked(item, score, tokenizer))

    files = list(each_readable(items, read))
    check_labels(path, [file.label for file in files], labels, FEWEST)
    return files, labels


def by_track(path: str, items: list[Item], tokenizer: Tokenizer) -> tuple[list[Labelled], list[str]]:
    """Files, whose notes have the number of their track's name as program, and all labels; drums, tracks without a
    name and names in few files are left out. Prints which files and names are left out; raises UserError."""

    def read(item: Item) -> tuple[Item, list[tuple[str, Score]]]:
        tracks = read_tracks(item.load(MOST_BYTES), item.name).tracks
        named = [(track.name.strip(), track.score) for track in tracks if len(track.score) and not track.is_drums]
        named = [(name, score) for name, score in named if name]
        if len({name for name, _ in named}) < 2:
            raise MidiError(item.name, "it has no two tracks with names and notes, so its notes have no labels")
        checked(item, Score.merge([score for _, score in named]), tokenizer)
        return item, named

    songs = list(each_readable(items, read))
    if not songs:
        raise UserError(f"{path} has no file with two named tracks", "give files whose tracks have the names of labels")
    names = [name for _, named in songs for name in {name for name, _ in named}]
    count = Counter(names)
    rare = sorted(name for name in count if count[name] < FEWEST)
    if rare and len(count) - len(rare) > 1:
        say(f"left out: tracks in fewer than {FEWEST} files: {printable(', '.join(rare))}")
        songs = [(item, [track for track in named if track[0] not in rare]) for item, named in songs]
        songs, names = [song for song in songs if song[1]], [name for name in names if name not in rare]
    labels = check_labels(path, names, fewest=FEWEST)
    files = []
    for item, named in songs:
        parts = [replace(score, program=np.array(labels.index(name))) for name, score in named]
        files.append(Labelled(item.name, "", Score.merge(parts)))
    return files, labels


def checked(item: Item, score: Score, tokenizer: Tokenizer) -> Score:
    """The score. Raises MidiError for music that is too short, or that the encoding cannot write."""
    if len(score) < FEWEST_NOTES:
        raise MidiError(item.name, f"fewer than {FEWEST_NOTES} notes")
    try:
        tokenizer.encode(score)
    except TokenError as error:
        raise MidiError(item.name, error.what) from None
    return score


@torch.inference_mode()
def judge(bundle: Path, data: LabelledData, device: str) -> str:
    """How well a bundle knows the labels of the test split, whose files nothing has seen, in a sentence. The shares are
    those of pieces or of notes; notes of one piece are alike, so the interval counts different pieces in both cases."""
    model, header = load_bundle(bundle, device)
    objective, labels = data.objective, header.objective["labels"]
    assert isinstance(objective, Classify)
    said, truth = [], []  # a row of answers a piece
    for (ids,), targets in data.pieces("test"):
        logits, label = objective.of_piece(model, Example((ids.to(device),), targets.to(device)))
        said.append(logits.argmax(1).cpu().numpy())
        truth.append(label.cpu().numpy())
    all_said, all_truth = np.concatenate(said), np.concatenate(truth)
    different = data.store.manifest.extra["different_in_test"]
    accuracy = share_interval(float((all_said == all_truth).mean()), different)
    asked = f"{len(truth)} files"
    if isinstance(objective, ClassifyNotes):
        asked = f"{len(all_truth):,} notes of {asked}"
    return in_words(figures_of(all_said, all_truth, len(labels), accuracy), labels, asked)
