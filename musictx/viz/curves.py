"""Pictures of figures: curves with their intervals, histograms of a collection."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from musictx.music.score import Score
from musictx.viz.figure import new_figure, save_figure
from musictx.viz.piano_roll import SEED_COLOUR

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9")  # Okabe and Ito 2008
MARKERS = "os^Dv*"  # distinct without colour too


def plot_curves(
    curves: Mapping[str, tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike]],
    path: Path,
    xlabel: str,
    ylabel: str,
    title: str = "",
    references: Sequence[tuple[float, str]] = (),
    solid: Mapping[str, int] | None = None,
) -> None:
    """Writes a line with its band per name -> (x, mean, low, high), each (W,), and a dashed level per (y, label) of
    `references`.

    `solid` has the number of points of each line before it is dashed. NaN leaves a gap.
    """
    columns = {name: [np.asarray(c, dtype=np.float64) for c in curve] for name, curve in curves.items()}
    figure = new_figure(8, 4.5, 140)
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
    axes.set_title(title, loc="left", fontsize=11, parse_math=False)
    axes.grid(axis="y", color="#ececec", lw=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(length=3, labelsize=9)
    figure.legend(loc="outside upper right", ncols=4, frameon=False, fontsize=9)
    save_figure(figure, path)


def plot_runs(runs: Mapping[str, tuple[ArrayLike, ArrayLike, ArrayLike]], path: Path, ylabel: str) -> None:
    """Writes a line for each name -> (step, seconds, loss), (N,) each: over optimizer steps, and over minutes."""
    figure = new_figure(11, 4.5, 140)
    over_steps, over_minutes = figure.subplots(1, 2, sharey=True)
    styles = zip(cycle(COLOURS), cycle(MARKERS), cycle(("-", "--", ":")[k // len(COLOURS) % 3] for k in range(18)))
    for (name, (step, seconds, loss)), (colour, marker, dash) in zip(runs.items(), styles, strict=False):
        style: dict[str, Any] = {"color": colour, "marker": marker, "ls": dash, "ms": 4, "lw": 1.6}
        over_steps.plot(step, loss, label=name, **style)
        over_minutes.plot(np.asarray(seconds) / 60, loss, **style)
    over_steps.set(xlabel="optimizer steps", ylabel=ylabel)
    over_minutes.set(xlabel="minutes")
    for axes in (over_steps, over_minutes):
        axes.grid(axis="y", color="#ececec", lw=0.8)
        axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper left", ncols=3, frameon=False, fontsize=9)
    save_figure(figure, path)


Estimate = tuple[float, float, float]  # mean, low, high


def plot_intervals(panels: Mapping[str, Mapping[str, Estimate]], path: Path) -> None:
    """Writes a point with its interval for each name, in a panel for each title; a name keeps its colour."""
    names = list(dict.fromkeys(name for panel in panels.values() for name in panel))
    figure = new_figure(3.4 * len(panels) + 0.8, 0.42 * len(names) + 1.1, 140)
    columns = zip(figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True)
    for n, (axes, (title, panel)) in enumerate(columns):
        for name, (mean, low, high) in panel.items():
            row = names.index(name)
            colour, marker = COLOURS[row % len(COLOURS)], MARKERS[row % len(MARKERS)]
            axes.plot((low, high), (row, row), color=colour, lw=2.2, solid_capstyle="butt")
            axes.plot(mean, row, marker, color=colour, ms=7)
        axes.set_yticks(range(len(names)), names if n == 0 else [""] * len(names))
        for label in axes.get_yticklabels():
            label.set_parse_math(False)
        axes.set_title(title, loc="left", fontsize=9.5, parse_math=False)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.margins(x=0.15)
        axes.grid(axis="x", color="#ececec", lw=0.8)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(length=3, labelsize=9)
    save_figure(figure, path)


Bins = tuple[NDArray[Any], NDArray[Any]]  # counts (K,), edges (K + 1,)


def count_music(scores: Sequence[Score], tokens: Sequence[int]) -> dict[str, Bins]:
    """Histograms of pitch, velocity, seconds between onsets (not below 5 ms), and tokens in a piece."""
    pitch, velocity = (np.concatenate([getattr(s, name) for s in scores]) for name in ("pitch", "velocity"))
    gaps = np.concatenate([np.diff(s.onset_s) for s in scores])
    return {
        "pitch": np.histogram(pitch, np.arange(129) - 0.5),
        "velocity": np.histogram(velocity, np.arange(0, 129, 4) - 0.5),
        "seconds between onsets": np.histogram(gaps, np.arange(0.005, 1.5, 0.01)),
        "tokens in a piece": np.histogram(np.array(tokens), 30),
    }


def plot_histograms(title: str, histograms: dict[str, Bins], path: Path) -> None:
    """Writes one picture of all of them."""
    figure = new_figure(12, 6)
    figure.suptitle(title, parse_math=False)
    for axes, (name, (counts, edges)) in zip(figure.subplots(2, 2).flat, histograms.items(), strict=True):
        axes.bar(edges[:-1], counts, np.diff(edges), align="edge", color=SEED_COLOUR)
        if name.startswith("seconds"):
            axes.set_yscale("log")
        axes.set_xlabel(name)
        axes.spines[["top", "right"]].set_visible(False)
        axes.margins(x=0.01)
    save_figure(figure, path)
