"""How open the gates of an LSTM's cells are while it reads music, below the music's piano roll."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.colors import Normalize
from numpy.typing import NDArray

from musictx.music.score import Score
from musictx.viz.figure import INK, new_figure, save_figure
from musictx.viz.piano_roll import WIDTH_IN, key_range, plot_keys, plot_notes, plot_time, roll_in

PANEL_IN = 1.8
ROWS = 64  # of a layer at most; a row is the mean of cells that are about as open as each other


def plot_gates(
    title: str, score: Score, time_s: NDArray[np.float64], gates: dict[str, list[NDArray[Any]]], path: Path
) -> None:
    """Writes a PNG, SVG or PDF, whole or not at all. Each of the `gates`, (T, C) of each layer, has a panel. Time runs
    to the right, the most open cells of a layer are at its top. `time_s` (T,). Raises UserError for another suffix."""
    low, high = key_range([score])
    span_s = 0.0, max(score.duration_s, 1.0)
    heights = [roll_in(low, high), *[PANEL_IN] * len(gates)]
    figure = new_figure(WIDTH_IN, sum(heights) + 0.5)
    roll, *panels = figure.subplots(1 + len(gates), sharex=True, gridspec_kw={"height_ratios": heights})
    plot_keys(roll, low, high, title)
    plot_notes(roll, score, float("inf"), span_s)
    moment_s, first = np.unique(time_s, return_index=True)
    edges_s = np.append(moment_s, max(span_s[1], moment_s[-1] + 1e-3))
    for axes, (name, values) in zip(panels, gates.items(), strict=True):
        rows = np.concatenate([sorted_rows(layer) for layer in values])  # (R, T)
        at_once = np.add.reduceat(rows, first, axis=1) / np.diff(np.append(first, rows.shape[1]))
        image = axes.pcolormesh(edges_s, np.arange(len(rows) + 1), at_once, norm=Normalize(0, 1), rasterized=True)
        each = len(rows) / len(values)
        axes.set_yticks([(n + 0.5) * each for n in range(len(values))], [f"layer {n}" for n in range(len(values))])
        for n in range(1, len(values)):
            axes.axhline(n * each, color="white", lw=1.5)
        axes.tick_params(length=0, labelsize=8.5, labelcolor=INK)
        axes.set_title(f"{name} gate", loc="left", fontsize=9, color=INK)
        plot_time(axes, span_s, span_s[1], label=axes is panels[-1])
    figure.colorbar(image, ax=panels, pad=0.01).set_label("how open", fontsize=8, color=INK)
    save_figure(figure, path)


def sorted_rows(cells: NDArray[Any]) -> NDArray[Any]:
    """(T, C) -> (rows, T): cells in the order of their means, and means of neighbours where there are many."""
    ordered = cells[:, np.argsort(cells.mean(0))]
    return np.stack([part.mean(1) for part in np.array_split(ordered, min(ROWS, cells.shape[1]), axis=1)])
