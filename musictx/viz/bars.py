"""One figure of every model side by side, with its interval."""

from collections.abc import Mapping
from itertools import cycle
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from musictx.files import replacing
from musictx.viz.curves import COLOURS


def draw_bars(bars: Mapping[str, tuple[float, float, float]], path: Path, xlabel: str, title: str = "") -> None:
    """A PNG or SVG of a dot and its interval per name -> (mean, low, high): a bar would ask for a zero."""
    figure = Figure(figsize=(8, 1.2 + 0.45 * len(bars)), dpi=140, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for y, ((mean, low, high), colour) in enumerate(zip(bars.values(), cycle(COLOURS), strict=False)):
        axes.plot([low, high], [y, y], color=colour, lw=3, solid_capstyle="round", alpha=0.5)
        axes.plot([mean], [y], "o", color=colour, ms=8)
        axes.annotate(f"{mean:.3g}", (mean, y), xytext=(0, 8), textcoords="offset points", ha="center", fontsize=9)
    axes.set_yticks(range(len(bars)), list(bars))
    axes.set(xlabel=xlabel, ylim=(len(bars) - 0.4, -0.7))
    if title:
        axes.set_title(title, loc="left", fontsize=11)
    axes.grid(axis="x", color="#dddddd", lw=0.8)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    with replacing(path) as partial:
        figure.savefig(partial, format=path.suffix[1:])
