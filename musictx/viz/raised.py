"""What the seed makes likelier: new notes over its piano roll, each in the colour of what the seed did to it."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.colors import LinearSegmentedColormap, Normalize
from numpy.typing import NDArray

from musictx.notes.score import Score
from musictx.viz.figure import INK, check_format, new_figure, save_figure
from musictx.viz.piano_roll import KEY_IN, LEAST_IN, WIDTH_IN, boxes, draw_keys, draw_time, key_range

SEED_COLOUR = "#80868b"
HUES = LinearSegmentedColormap.from_list("raised", ["#D55E00", "#e8e6e3", "#0072B2"])  # for colour-blind eyes too
LEAST_NATS = 0.5  # where all gains are small, they look small


def draw_raised(title: str, score: Score, raised: NDArray[Any], note: int, path: Path) -> None:
    """PNG, SVG or PDF. `raised` (N,): nats by which the seed made each note likelier, NaN for the seed's; a frame is
    around number `note`. Written whole or not at all. Raises ConfigError for another suffix."""
    check_format(path)
    low, high = key_range([score])
    width_s = max(score.duration_s, 1.0)
    most = max(float(np.nanmax(np.abs(raised), initial=0.0)), LEAST_NATS)
    figure = new_figure(WIDTH_IN, max(KEY_IN * (high - low), LEAST_IN) + 0.7)
    axes = figure.subplots()
    axes.set_title(title, loc="left", fontsize=10, fontweight="bold", color=INK)
    draw_keys(axes, low, high)
    draw_time(axes, (0.0, width_s), None, minutes=width_s >= 90)
    axes.set_xlabel("seconds", color=INK, fontsize=9)
    corners, new = boxes(score, width_s), ~np.isnan(raised)
    axes.add_collection(PolyCollection(list(corners[~new]), facecolors=SEED_COLOUR, lw=0, zorder=2), autolim=False)
    notes = PolyCollection(
        list(corners[new]), array=raised[new], cmap=HUES, norm=Normalize(-most, most), lw=0, zorder=2
    )
    axes.add_collection(notes, autolim=False)
    frame = PolyCollection([corners[note]], facecolors="none", edgecolors=INK, lw=1.5, zorder=3)
    axes.add_collection(frame, autolim=False)
    figure.colorbar(notes, ax=axes, pad=0.01).set_label("nats by which the seed raised it", fontsize=8, color=INK)
    save_figure(figure, path)
