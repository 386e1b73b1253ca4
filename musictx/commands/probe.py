"""musictx probe: learn labels, such as composers, from folders of MIDI files, on top of a frozen model."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from omegaconf import MISSING

from musictx.analysis.embedding import Embedder, Passage
from musictx.analysis.folds import Figures, LabelledVectors, choose_strength, cross_validate, in_words
from musictx.analysis.probe import MOST_SECONDS, About, Probe
from musictx.commands import check_way, check_within, open_and_print, print_table
from musictx.config.command import Command
from musictx.data.labelled import Labelled, check_labels, each_readable, folder_of, group_files, label_of
from musictx.data.source import Item, open_source
from musictx.errors import MidiError
from musictx.files import check_new, check_suffix, only_new
from musictx.generate.open_player import check_device
from musictx.generate.seeds import fit_grid
from musictx.model.packaged import PIANO, bundle_path
from musictx.model.tensors import tensors_hash
from musictx.music.read import MOST_BYTES, read_tracks
from musictx.setting import setting
from musictx.terminal import say
from musictx.tokenizers import Tokenizer


@dataclass
class ProbeConfig:
    """musictx probe: learn labels, such as composers, from folders of MIDI files, on top of a frozen model."""

    path: str = setting(MISSING, "a folder or zip with one folder for each label, and MIDI files in these", path=True)
    out: str = setting("outputs/labels.safetensors", "the file of labels to write, for `musictx classify`", path=True)
    bundle: str = setting(PIANO, "the model that listens; it does not change", path=True)
    layer: int | None = setting(None, "how many blocks come before the reading; null: two thirds of all")
    passage_seconds: float = setting(10.0, "length of a passage")
    passages: int = setting(10, "at most so many passages of a file are heard, spread over its music")
    drums: bool = setting(False, "include the files' drums")
    overwrite: bool = setting(False, "replace an existing file")
    device: str = setting("cpu", "cpu or cuda")


@dataclass(frozen=True)
class LabelledPassages(Labelled):
    passages: list[Passage]


def probe(config: ProbeConfig) -> None:
    device, out = check_device(config.device), Path(config.out)
    check_within(config, "passage_seconds", 1, int(MOST_SECONDS))
    check_within(config, "passages", 1)
    check_suffix("out", config.out, [".safetensors"])
    check_way("out", config.out, out.parent)
    check_new(config.overwrite, out)
    with open_source(Path(config.path)) as items:
        labels = check_labels(config.path, [label_of(item) for item in items])
        model, tokenizer, _ = open_and_print(config.bundle, device, continues=False)
        embedder = Embedder(model, tokenizer, config.layer, config.bundle)
        files = list(each_readable(items, lambda item: read(item, tokenizer, embedder, config)))
    check_labels(config.path, [file.label for file in files], labels)
    alike = group_files(files, labels)
    vectors = embed(files, labels, alike, embedder)
    figures = cross_validate(vectors, len(labels))
    sentence = show(figures, vectors, labels)
    strength = choose_strength(vectors, len(labels))
    (layer,) = vectors.fit(len(labels), [strength])
    origin = config.bundle, tensors_hash(bundle_path(config.bundle)), embedder.layer, config.passage_seconds
    Probe(layer, About(labels, *origin, sentence)).save(out)
    say(f"{out}: {len(labels)} labels; L2 {strength:g}, chosen by held-out files")


def read(item: Item, tokenizer: Tokenizer, embedder: Embedder, config: ProbeConfig) -> LabelledPassages:
    """The passages of a file. Raises MidiError for one that the model cannot read."""
    label = folder_of(item)
    tracks = read_tracks(item.load(MOST_BYTES), item.name, one_tempo=tokenizer.metrical)
    score = fit_grid(tracks.merge(config.drums), tokenizer, item.name, say)
    passages = embedder.passages(score, config.passage_seconds, config.passages)
    if not passages:
        raise MidiError(item.name, f"no passage of four notes that {tokenizer.name} ids can write")
    return LabelledPassages(item.name, label, score, passages)


def embed(files: list[LabelledPassages], labels: list[str], first: list[int], embedder: Embedder) -> LabelledVectors:
    """The vectors of all passages of all files."""
    ids = [embedder.tokenizer.encode(part.score).astype(np.int64) for file in files for part in file.passages]
    vectors = embedder.embed(ids)
    number = np.repeat(np.arange(len(files)), [len(file.passages) for file in files])
    return LabelledVectors(vectors, number, np.array([labels.index(file.label) for file in files]), np.array(first))


def show(figures: Figures, vectors: LabelledVectors, labels: list[str]) -> str:
    """Prints the held-out figures of all labels and of each; returns those of all, in a sentence."""
    rows = []
    for k, label in enumerate(labels):
        answers = figures.answers[vectors.label == k]
        mistakes = np.bincount(answers[answers != k], minlength=len(labels))
        other = f"{labels[mistakes.argmax()]}, {mistakes.max()}" if mistakes.any() else ""
        rows.append((label, len(answers), (answers == k).sum(), other))
    print_table(["label", "files", "right", "most often taken for"], rows)
    sentence = in_words(figures, labels, f"{len(vectors.label)} files")
    say(sentence)
    return sentence


COMMAND = Command("probe", only_new(probe), ProbeConfig, main="path")
