"""A piano roll of the notes that the seed made likelier."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.colors import LinearSegmentedColormap, Normalize
from numpy.typing import NDArray

from musictx.music.score import Score
from musictx.viz.figure import GREY, INK, new_figure, save_figure
from musictx.viz.piano_roll import WIDTH_IN, boxes, key_range, plot_keys, plot_time, roll_in

HUES = LinearSegmentedColormap.from_list("raised", ["#D55E00", "#e8e6e3", "#0072B2"])  # for colour-blind eyes too
LEAST_NATS = 0.5  # small gains must look small


def plot_raised(title: str, score: Score, raised: NDArray[Any], note: int, path: Path) -> None:
    """Writes a PNG, SVG or PDF, whole or not at all. `raised` (N,): nats by which the seed made each note likelier, NaN
    for the seed's own; a frame marks number `note`. Raises UserError for another suffix."""
    low, high = key_range([score])
    width_s = max(score.duration_s, 1.0)
    most = max(float(np.nanmax(np.abs(raised), initial=0.0)), LEAST_NATS)
    figure = new_figure(WIDTH_IN, roll_in(low, high) + 0.7)
    axes = figure.subplots()
    plot_keys(axes, low, high, title)
    plot_time(axes, (0.0, width_s), width_s, label=True)
    corners, new = boxes(score, width_s), ~np.isnan(raised)
    axes.add_collection(PolyCollection(list(corners[~new]), facecolors=GREY, lw=0, zorder=2), autolim=False)
    notes = PolyCollection(
        list(corners[new]), array=raised[new], cmap=HUES, norm=Normalize(-most, most), lw=0, zorder=2
    )
    axes.add_collection(notes, autolim=False)
    frame = PolyCollection([corners[note]], facecolors="none", edgecolors=INK, lw=1.5, zorder=3)
    axes.add_collection(frame, autolim=False)
    figure.colorbar(notes, ax=axes, pad=0.01).set_label("nats by which the seed raised it", fontsize=8, color=INK)
    save_figure(figure, path)
