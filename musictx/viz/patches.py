"""What a model looks at in pictures of music, patch by patch, behind the notes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.colors import Normalize
from numpy.typing import NDArray

from musictx.music.score import Score
from musictx.viz.figure import INK, save_figure
from musictx.viz.piano_roll import plot_rolls

# patches (P, N) of a picture, and their edges: pitches (P + 1,) and seconds (N + 1,)
View = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]


def plot_patches(title: str, score: Score, views: Sequence[View], what: str, path: Path) -> None:
    """Writes a PNG, SVG or PDF, whole or not at all. Time that no picture shows stays white. Raises UserError for
    another suffix."""
    norm = Normalize(0, max(float(weight.max()) for weight, *_ in views))
    figure = plot_rolls([(title, score, np.inf)])
    for axes in (rows := list(figure.axes)):
        for weight, edges, edges_s in views:
            image = axes.pcolormesh(edges_s, edges, weight, cmap="Oranges", norm=norm, zorder=0.6, rasterized=True)
    figure.colorbar(image, ax=rows, pad=0.01).set_label(what, fontsize=8, color=INK)
    save_figure(figure, path)
