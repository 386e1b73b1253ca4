"""A piano roll whose colours say how much each note raised something, or was raised."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PolyCollection
from matplotlib.colors import LinearSegmentedColormap, Normalize
from numpy.typing import NDArray

from musictx.music.score import Score
from musictx.viz.figure import FAINT, INK, new_figure, save_figure
from musictx.viz.piano_roll import WIDTH_IN, boxes, key_range, plot_keys, plot_time, roll_in, rows_of

HUES = LinearSegmentedColormap.from_list("raised", ["#D55E00", "#e8e6e3", "#0072B2"])  # for colour-blind eyes too
PLAIN = "#d5d8dc"  # of notes that have no figure
LEAST_NATS = 0.5  # small gains must look small


def plot_raised(
    title: str,
    score: Score,
    raised: NDArray[Any],
    framed: Sequence[int],
    path: Path,
    what: str = "nats by which the seed raised it",
    least: float = LEAST_NATS,
) -> None:
    """Writes a PNG, SVG or PDF, whole or not at all. `raised` (N,): `what` of each note, NaN for notes without colour.
    Frames mark the notes of these numbers. The strongest colours are at `least` so far from 0. Raises UserError for
    another suffix."""
    low, high = key_range([score])
    end_s = max(score.duration_s, 1.0)
    n_rows, width_s = rows_of(end_s)
    most = max(float(np.nanmax(np.abs(raised), initial=0.0)), least)
    hue, corners, plain = ScalarMappable(Normalize(-most, most), HUES), boxes(score, width_s), np.isnan(raised)
    looks: list[tuple[Any, dict[str, Any]]] = [
        (plain, {"facecolors": PLAIN, "lw": 0}),
        (~plain, {"facecolors": hue.to_rgba(raised[~plain]), "edgecolors": FAINT, "lw": 0.4}),
        (list(framed), {"facecolors": "none", "edgecolors": INK, "lw": 1.5}),
    ]
    figure = new_figure(WIDTH_IN, (roll_in(low, high) + 0.5) * n_rows + 0.2)
    rows = figure.subplots(n_rows, squeeze=False)[:, 0]
    for k, axes in enumerate(rows):
        plot_keys(axes, low, high, "" if k else title)
        plot_time(axes, (k * width_s, (k + 1) * width_s), end_s, label=k == n_rows - 1)
        for notes, look in looks:
            axes.add_collection(PolyCollection(list(corners[notes]), zorder=2, **look), autolim=False)
    scale = figure.colorbar(hue, ax=list(rows), pad=0.01, shrink=1 / n_rows, anchor=(0.0, 1.0))
    scale.set_label(what, fontsize=8, color=INK, parse_math=False)
    save_figure(figure, path)
