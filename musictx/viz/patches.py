"""What a model looks at in pictures of music, patch by patch, behind the notes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.colors import Normalize
from numpy.typing import NDArray

from musictx.music.score import Score
from musictx.viz.figure import INK, new_figure, save_figure
from musictx.viz.piano_roll import WIDTH_IN, key_range, plot_keys, plot_notes, plot_time, roll_in, time_rows


class View(NamedTuple):
    """A picture's patches (P, N), the lowest keys first, from one second to another."""

    from_s: float
    to_s: float
    weight: NDArray[Any]


def plot_patches(
    title: str, score: Score, views: Sequence[View], lowest: int, patch: tuple[int, float], what: str, path: Path
) -> None:
    """Writes a PNG, SVG or PDF, whole or not at all. A `patch` is so many keys, from `lowest` on, and seconds; `what`
    its colour means. Time that no picture shows stays white. Raises UserError for another suffix."""
    low, high = key_range([score])
    end_s = max(score.duration_s, 1.0)
    n_rows, width_s = time_rows(end_s)
    norm = Normalize(0, max((float(view.weight.max()) for view in views), default=1.0))
    figure = new_figure(WIDTH_IN, (roll_in(low, high) + 0.5) * n_rows + 0.2)
    rows = list(figure.subplots(n_rows, squeeze=False)[:, 0])
    for k, axes in enumerate(rows):
        span_s = k * width_s, (k + 1) * width_s
        plot_keys(axes, low, high, "" if k else title)
        for from_s, to_s, weight in views:
            edges_s = np.minimum(from_s + np.arange(weight.shape[1] + 1) * patch[1], to_s)
            edges = lowest - 0.5 + np.arange(len(weight) + 1) * patch[0]
            image = axes.pcolormesh(edges_s, edges, weight, cmap="Oranges", norm=norm, zorder=0.6, rasterized=True)
        plot_notes(axes, score, float("inf"), span_s)
        axes.set_ylim(low - 0.5, high + 0.5)
        plot_time(axes, span_s, end_s, label=k == n_rows - 1)
    bar = figure.colorbar(image, ax=rows, pad=0.01, shrink=1 / n_rows, anchor=(0.0, 1.0))
    bar.set_label(what, fontsize=8, color=INK)
    save_figure(figure, path)
