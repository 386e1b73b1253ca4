"""musictx probe: learn labels, such as composers, from folders of MIDI files, on top of a frozen model."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from omegaconf import MISSING
from rich.console import Console
from rich.progress import track
from rich.table import Table

from musictx.analysis.embedding import Embedder, Passage
from musictx.analysis.folds import Figures, Heard, choose_strength, held_out
from musictx.analysis.probe import MOST_SECONDS, About, Probe
from musictx.commands import check_new, check_suffix, check_way
from musictx.config.command import Command
from musictx.data.similar import Signature, group, signature
from musictx.data.source import Item, open_source
from musictx.errors import ConfigError, MidiError, UserError
from musictx.files import only_new, printable
from musictx.generate.open_bundle import check_device, open_and_print
from musictx.generate.seeds import fit_grid
from musictx.model.bundle import tensors_hash
from musictx.model.packaged import PIANO, bundle_path
from musictx.music.read import MOST_BYTES, read_tracks
from musictx.music.score import Score
from musictx.setting import setting
from musictx.tokenizers import Tokenizer

FEWEST = 2  # files of a label: one to learn from, one to ask


@dataclass
class ProbeConfig:
    """musictx probe: learn labels, such as composers, from folders of MIDI files, on top of a frozen model."""

    path: str = setting(MISSING, "a folder or zip with one folder for each label, and MIDI files in these")
    out: str = setting("outputs/labels.safetensors", "the file of labels to write, for `musictx classify`")
    bundle: str = setting(PIANO, "the model that listens; it does not change")
    layer: int | None = setting(None, "how many blocks come before the reading; null: two thirds of all")
    passage_seconds: float = setting(10.0, "length of a passage")
    passages: int = setting(10, "at most so many passages of a file are heard, spread over its music")
    drums: bool = setting(False, "include the files' drums")
    overwrite: bool = setting(False, "replace an existing file")
    device: str = setting("cpu", "cpu or cuda")


class Labelled(NamedTuple):
    name: str
    label: str
    score: Score
    heard: list[Passage]


def probe(config: ProbeConfig) -> None:
    device, out = check_device(config.device), Path(config.out)
    if not 1 <= config.passage_seconds <= MOST_SECONDS:
        raise ConfigError("passage_seconds", got=config.passage_seconds, allowed=f"1 to {MOST_SECONDS:g}")
    if config.passages < 1:
        raise ConfigError("passages", got=config.passages, allowed="1 or more")
    check_suffix("out", config.out, [".safetensors"])
    check_new(config.overwrite, out)
    check_way("out", config.out, out.parent)
    with open_source(Path(config.path)) as items:
        labels = check_labels(config.path, [label_of(item) for item in items])
        model, tokenizer, _ = open_and_print(config.bundle, device, continues=False)
        embedder = Embedder(model, tokenizer, config.layer)
        files = list(read_files(items, tokenizer, embedder, config))
    check_labels(config.path, [file.label for file in files], labels)
    alike = group_files(files, labels)
    heard = hear(files, labels, alike, embedder)
    figures = held_out(heard, len(labels))
    said = show(figures, heard, labels)
    strength = choose_strength(heard, len(labels))
    (layer,) = heard.fit(len(labels), [strength])
    made_with = config.bundle, tensors_hash(bundle_path(config.bundle)), embedder.layer, config.passage_seconds
    Probe(layer, About(labels, *made_with, said)).save(out)
    print(f"{out}: {len(labels)} labels; L2 {strength:g}, chosen by held-out files")


def label_of(item: Item) -> str:
    """The first folder of its name; "" for a file outside all folders, or one that an archive's system added."""
    first, slash, _ = item.name.replace(os.sep, "/").partition("/")
    return first if slash and first != "__MACOSX" and not first.startswith(".") else ""


def check_labels(path: str, of_files: list[str], labels: list[str] | None = None) -> list[str]:
    """The labels in alphabetical order; `labels` are those that were there before files were left out. Raises
    UserError."""
    labels = labels or sorted({*of_files} - {""})
    if len(labels) < 2:
        found = f"one label, {labels[0]}" if labels else "no folder with MIDI files"
        raise UserError(f"{path} has {found}", "give a folder with at least two folders, one for each label")
    for label in labels:
        if (n := of_files.count(label)) < FEWEST:
            what = f"{path}: label {label} has {n} file{'s' * (n != 1)} with music"
            raise UserError(what, f"give at least {FEWEST} of each label, better 20")
    return labels


def read_files(items: list[Item], tokenizer: Tokenizer, embedder: Embedder, config: ProbeConfig) -> Iterator[Labelled]:
    """The files that the model can read; prints why any other is left out."""
    for item in items:
        try:
            if not (label := label_of(item)):
                raise MidiError(item.name, "in no folder, so it has no label")
            tracks = read_tracks(item.load(MOST_BYTES), item.name, one_tempo=tokenizer.metrical)
            score = fit_grid(tracks.merge(config.drums), tokenizer, item.name)
            heard = embedder.passages(score, config.passage_seconds, config.passages)
            if not heard:
                raise MidiError(item.name, f"no passage of four notes that {tokenizer.name} ids can write")
            yield Labelled(item.name, label, score, heard)
        except MidiError as error:
            print(f"left out: {error}")


def group_files(files: list[Labelled], labels: list[str]) -> list[int]:
    """For each file the first that is nearly the same. Prints pairs of two labels; raises UserError for a label whose
    files are all the same music."""
    signatures: list[Signature] = [signature(file.score) for file in files]
    first = group(signatures)
    for n, file in zip(first, files, strict=True):
        if files[n].label != file.label:
            print(f"{file.name} is nearly the same music as {files[n].name}, but has another label")
    for label in labels:
        if len({n for n, file in zip(first, files, strict=True) if file.label == label}) < FEWEST:
            raise UserError(f"all files of label {label} are nearly the same music", "give another piece of it too")
    return first


def hear(files: list[Labelled], labels: list[str], alike: list[int], embedder: Embedder) -> Heard:
    """What the model hears in all passages of all files."""
    ids = [embedder.tokenizer.encode(part.score).astype(np.int64) for file in files for part in file.heard]
    console = Console(stderr=True)
    what = f"listening to {len(ids)} passages of {len(files)} files"
    found = dict(track(embedder.embed(ids), what, len(ids), console=console, disable=console.is_jupyter))
    vectors = np.stack([found[n] for n in range(len(ids))])
    number = np.repeat(np.arange(len(files)), [len(file.heard) for file in files])
    return Heard(vectors, number, np.array([labels.index(file.label) for file in files]), np.array(alike))


def show(figures: Figures, heard: Heard, labels: list[str]) -> str:
    """Prints the held-out figures of all labels and of each; returns those of all, in a sentence."""
    table = Table("label", "files", "right", "most often taken for", box=None)
    for k, label in enumerate(labels):
        said = figures.said[heard.label == k]
        wrong = np.bincount(said[said != k], minlength=len(labels))
        taken = f"{labels[wrong.argmax()]}, {wrong.max()}" if wrong.any() else ""
        table.add_row(printable(label), str(len(said)), str(int((said == k).sum())), printable(taken))
    Console(highlight=False, markup=False, width=120).print(table)
    accuracy, always = figures.accuracy, f"always saying {labels[figures.commonest]}"
    sentence = (
        f"held-out accuracy {accuracy.mean:.2f} ({accuracy.low:.2f} to {accuracy.high:.2f}), macro F1 "
        f"{figures.macro_f1:.2f}, {len(heard.label)} files; {always}: "
        f"{figures.commonest_accuracy:.2f}, macro F1 {figures.commonest_f1:.2f}"
    )
    if accuracy.mean <= figures.commonest_accuracy:
        sentence += f"; this is not better than {always}"
    elif accuracy.low <= figures.commonest_accuracy:
        sentence += f"; this is not surely better than {always}, so give more files"
    print(sentence)
    return sentence


COMMAND = Command("probe", only_new(probe), ProbeConfig)
