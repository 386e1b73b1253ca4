"""Lessons: each concept of a course on sequence models as one small file that runs on hymns in a minute."""

import ast
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure

from musictx.model.settings import one_of
from musictx.system import few_threads


class Finding(NamedTuple):
    """What a lesson found: a table, some words on it, a picture, and the files of the toolkit to read next."""

    headings: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    words: str
    figure: Figure
    read: tuple[str, ...]  # below musictx/


FRAME = {"__init__", "hymns", "descend"}  # no lessons


def lessons() -> dict[str, str]:
    """The first line of each lesson by its name. Nothing is imported."""
    files = [file for file in sorted(Path(__file__).parent.glob("*.py")) if file.stem not in FRAME]
    return {file.stem: (ast.get_docstring(ast.parse(file.read_text())) or "").partition("\n")[0] for file in files}


def run(name: str, size: float = 1.0) -> Finding:
    """The lesson, always with the same random numbers, and on one thread, so that sums keep their order. `size` is the
    share of its work. Raises ConfigError."""
    one_of("name", name, lessons())
    import torch  # a list of lessons needs none

    with few_threads(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        finding: Finding = import_module(f"musictx.lessons.{name}").lesson(size)
    return finding
