"""A melody and what goes with it, as piano rolls in two colours."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure

from musictx.notes.score import Score, marked
from musictx.viz.figure import check_format, save_figure
from musictx.viz.piano_roll import draw_rolls


class Pair(NamedTuple):
    """A panel: what it is called, what was given, and what is new."""

    title: str
    melody: Score
    voices: Score


def accompanied_roll(panels: Sequence[Pair], path: Path) -> None:
    """PNG, SVG or PDF by the suffix. Written whole or not at all. Raises ConfigError for another suffix."""
    check_format(path)
    save_figure(draw_accompanied(panels), path)


def draw_accompanied(panels: Sequence[Pair]) -> Figure:
    """One panel below the other, longer music in rows of a minute."""
    both = [(title, *marked(melody, voices)) for title, melody, voices in panels]
    return draw_rolls(both, words=("melody", "voices"))
