"""A melody and what goes with it, as piano rolls in two colours."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from musictx.notes.score import Score
from musictx.viz.figure import INK, check_format, new_figure, save_figure
from musictx.viz.piano_roll import (
    KEY_IN,
    LEAST_IN,
    MOST_ROWS,
    NEW_COLOUR,
    ROW_S,
    SEED_COLOUR,
    WIDTH_IN,
    draw_keys,
    draw_notes,
    draw_time,
    key_range,
)


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
    low, high = key_range([score for panel in panels for score in panel[1:]])
    end_s = max(max(score.duration_s for panel in panels for score in panel[1:]), 1.0)
    n_rows = int(min(max(np.ceil(end_s / ROW_S - 1e-9), 1), MOST_ROWS))
    width_s = end_s if n_rows == 1 else np.ceil(end_s / n_rows)
    row_in = max(KEY_IN * (high - low), LEAST_IN) + 0.5
    figure = new_figure(WIDTH_IN, row_in * len(panels) * n_rows + 0.5)
    grid = figure.subplots(len(panels) * n_rows, squeeze=False)[:, 0].reshape(len(panels), n_rows)
    for panel, rows in zip(panels, grid, strict=True):
        rows[0].set_title(panel.title, loc="left", fontsize=10, fontweight="bold", color=INK)
        for k, axes in enumerate(rows):
            span_s = k * width_s, (k + 1) * width_s
            draw_keys(axes, low, high)
            draw_notes(axes, panel.voices, 0.0, span_s)
            draw_notes(axes, panel.melody, np.inf, span_s)
            draw_time(axes, span_s, None, minutes=end_s >= 90)
    grid[-1, -1].set_xlabel("seconds", color=INK, fontsize=9)
    grid[0, 0].legend(
        handles=[Patch(color=SEED_COLOUR, label="melody"), Patch(color=NEW_COLOUR, label="voices")],
        loc="lower right",
        bbox_to_anchor=(1, 1),
        borderaxespad=0.2,
        ncols=2,
        frameon=False,
        fontsize=9,
        labelcolor=INK,
        handlelength=0.9,
        handleheight=0.9,
    )
    return figure
