"""Curves over time with their intervals: several models in one plot."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from musictx.errors import ConfigError
from musictx.files import replacing

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9")  # Okabe and Ito 2008
MARKERS = "os^Dv*"  # told apart without colour too
SUFFIXES = (".png", ".svg")


def draw_curves(
    curves: Mapping[str, tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike]],
    path: Path,
    xlabel: str,
    ylabel: str,
    title: str = "",
    references: Sequence[tuple[float, str]] = (),
    solid: Mapping[str, int] | None = None,
) -> None:
    """A PNG or SVG, by the suffix: a line with its band per name -> (x, mean, low, high), each (W,), and a dashed
    level per (y, label) of `references`. Of a name in `solid` so many points are joined by a solid line, the others
    by a dashed one.

    NaN leaves a gap. Written whole or not at all. Raises ConfigError for no curve, for columns of unlike length and
    for another suffix.
    """
    columns = {name: [np.asarray(c, dtype=np.float64) for c in curve] for name, curve in curves.items()}
    if not columns:
        raise ConfigError("no curve to draw: give at least one")
    if path.suffix.lower() not in SUFFIXES:
        raise ConfigError(f"{path}: curves are drawn as {' or '.join(SUFFIXES)}; give a name that ends so")
    for name, (x, *ys) in columns.items():
        if any(y.shape != x.shape or x.ndim != 1 for y in ys):
            shapes = ", ".join(str(c.shape) for c in (x, *ys))
            raise ConfigError(f"curve {name!r} has columns of shapes {shapes}: give four of one length")
    figure = Figure(figsize=(8, 4.5), dpi=140, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for y, label in references:
        axes.axhline(y, color="#777777", lw=1, ls=(0, (5, 4)), zorder=1)
        axes.annotate(
            label, (1, y), xycoords=("axes fraction", "data"), xytext=(-2, 3), textcoords="offset points",
            ha="right", color="#555555", fontsize=9,
        )  # fmt: skip
    for (name, (x, mean, low, high)), colour, marker in zip(
        columns.items(), cycle(COLOURS), cycle(MARKERS), strict=False
    ):
        axes.fill_between(x, low, high, color=colour, alpha=0.15, lw=0, zorder=2)
        n = (solid or {}).get(name, len(x))
        axes.plot(x[:n], mean[:n], color=colour, marker=marker, ms=5, lw=2, label=name, zorder=3)
        if n < len(x):
            axes.plot(x[max(n - 1, 0) :], mean[max(n - 1, 0) :], color=colour, marker=marker, ms=5, lw=1.5, ls="--")
    axes.set(xlabel=xlabel, ylabel=ylabel)
    if title:
        axes.set_title(title, loc="left", fontsize=11)
    axes.grid(axis="y", color="#ececec", lw=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(length=3, labelsize=9)
    figure.legend(loc="outside upper right", ncols=min(len(columns), 4), frameon=False, fontsize=9)
    # a file that is the same whenever it is drawn: no date, no random names
    dated: dict[str, Any] = {"metadata": {"Date": None}} if path.suffix.lower() == ".svg" else {}
    with replacing(path) as partial, rc_context({"svg.hashsalt": "musictx"}):
        figure.savefig(partial, **dated)
