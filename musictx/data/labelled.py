"""MIDI files with labels: the label of a file is the name of its first folder."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from musictx.data.similar import Signature, group, signature
from musictx.data.source import Item
from musictx.errors import MidiError, UserError, counted
from musictx.music.score import Score
from musictx.terminal import say

FEWEST = 2  # files of a label: one to learn from, one to ask
T = TypeVar("T")


@dataclass(frozen=True)
class Labelled:
    """The music of a file, and its label."""

    name: str
    label: str
    score: Score


def label_of(item: Item) -> str:
    """The first folder of the file; "" for a file in none, or in a hidden one."""
    first, slash, _ = item.name.replace(os.sep, "/").partition("/")
    return first if slash and first != "__MACOSX" and not first.startswith(".") else ""


def check_labels(path: str, of_files: Sequence[str], labels: list[str] | None = None) -> list[str]:
    """The labels in alphabetical order, each with enough files; `labels`: those of all files, before reading. Raises
    UserError."""
    music = " with music" * (labels is not None)
    labels = labels or sorted({*of_files} - {""})
    if len(labels) < 2:
        content = f"one label, {labels[0]}" if labels else "no folder with MIDI files"
        raise UserError(f"{path} has {content}", "give a folder with at least two folders, one for each label")
    for label in labels:
        if (n := of_files.count(label)) < FEWEST:
            what = f"{path}: label {label} has {counted(n, 'file')}{music}"
            raise UserError(what, f"give at least {FEWEST} of each label, better 20")
    return labels


def each_readable(items: Iterable[Item], read: Callable[[Item], T]) -> Iterator[T]:
    """The result of `read` for each file; prints the MidiError of any other."""
    for item in items:
        try:
            result = read(item)
        except MidiError as error:
            say(f"left out: {error}")
        else:
            yield result


def folder_of(item: Item) -> str:
    """The label of a file. Raises MidiError for a file without one."""
    if not (label := label_of(item)):
        raise MidiError(item.name, "in no folder, so it has no label")
    return label


def group_files(files: Sequence[Labelled], labels: list[str]) -> list[int]:
    """For each file the number of its first near-duplicate; prints those of two labels. Raises UserError for a label
    with a single piece of music."""
    signatures: list[Signature] = [signature(file.score) for file in files]
    first = group(signatures)
    for n, file in zip(first, files, strict=True):
        if files[n].label != file.label:
            say(f"{file.name} is nearly the same music as {files[n].name}, but has another label")
    for label in labels:
        if len({n for n, file in zip(first, files, strict=True) if file.label == label}) < FEWEST:
            raise UserError(f"all files of label {label} are nearly the same music", "give another piece of it too")
    return first
