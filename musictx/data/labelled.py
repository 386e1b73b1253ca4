"""Files with labels: the first folder of a file says its label."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from musictx.data.similar import Signature, group, signature
from musictx.data.source import Item
from musictx.errors import MidiError, UserError
from musictx.music.score import Score
from musictx.terminal import say

FEWEST = 2  # files of a label: one to learn from, one to ask
T = TypeVar("T")


@dataclass(frozen=True)
class Labelled:
    """A file, the label of its folder, and its music."""

    name: str
    label: str
    score: Score


def label_of(item: Item) -> str:
    """The first folder of its name; "" for a file outside all folders, or one that an archive's system added."""
    first, slash, _ = item.name.replace(os.sep, "/").partition("/")
    return first if slash and first != "__MACOSX" and not first.startswith(".") else ""


def check_labels(path: str, of_files: Sequence[str], labels: list[str] | None = None) -> list[str]:
    """The labels in alphabetical order; `labels` are those that were there before files without music were left out.
    Raises UserError."""
    music = " with music" * (labels is not None)
    labels = labels or sorted({*of_files} - {""})
    if len(labels) < 2:
        found = f"one label, {labels[0]}" if labels else "no folder with MIDI files"
        raise UserError(f"{path} has {found}", "give a folder with at least two folders, one for each label")
    for label in labels:
        if (n := of_files.count(label)) < FEWEST:
            what = f"{path}: label {label} has {n} file{'s' * (n != 1)}{music}"
            raise UserError(what, f"give at least {FEWEST} of each label, better 20")
    return labels


def each_readable(items: Iterable[Item], read: Callable[[Item], T]) -> Iterator[T]:
    """What `read` makes of each file; prints why it raised MidiError for any other."""
    for item in items:
        try:
            made = read(item)
        except MidiError as error:
            say(f"left out: {error}")
        else:
            yield made


def folder_of(item: Item) -> str:
    """The label of a file. Raises MidiError for a file in no folder."""
    if not (label := label_of(item)):
        raise MidiError(item.name, "in no folder, so it has no label")
    return label


def group_files(files: Sequence[Labelled], labels: list[str]) -> list[int]:
    """For each file the first that is nearly the same. Prints pairs of two labels; raises UserError for a label whose
    files are all the same music."""
    signatures: list[Signature] = [signature(file.score) for file in files]
    first = group(signatures)
    for n, file in zip(first, files, strict=True):
        if files[n].label != file.label:
            say(f"{file.name} is nearly the same music as {files[n].name}, but has another label")
    for label in labels:
        if len({n for n, file in zip(first, files, strict=True) if file.label == label}) < FEWEST:
            raise UserError(f"all files of label {label} are nearly the same music", "give another piece of it too")
    return first
