"""The pictures of `compute.py`, from its rows: nats a note by minutes, and what a seed saves as time goes on."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from musictx.viz.figure import new_figure

SIZE_IN = (8.0, 4.0)
MARKS = "os^Dv<>"
Rows = dict[str, dict[str, Any]]


def by_compute(rows: Rows) -> Figure:
    """Nats a note by minutes, a panel for each corpus and a line for each kind."""
    figure = new_figure(*SIZE_IN)
    for axes, corpus in _panels(figure, rows):
        minutes = sorted({row["minutes"] for row in rows.values() if row["corpus"] == corpus})
        for n, kind in enumerate(_in_order(rows, "kind")):
            of = [row for row in rows.values() if (row["corpus"], row["kind"]) == (corpus, kind)]
            x = [row["minutes"] * 1.03 ** (n - 2.5) for row in of]  # beside each other, so that intervals show
            _line(axes, x, [row["per_note"] for row in of], kind, n)
        axes.set_xscale("log")
        axes.set_xlim(minutes[0] / 1.5, minutes[-1] * 1.5)
        axes.set_xticks(minutes, [f"{each:g}" for each in minutes])
        axes.minorticks_off()
        axes.set(title=corpus, xlabel="minutes of training")
    figure.axes[0].set_ylabel("nats a note, held-out pieces")
    figure.axes[0].legend(frameon=False, fontsize=8)
    return figure


def kept_of_seeds(rows: Rows) -> Figure:
    """The seed gain over time, a panel for each corpus and a line for each kind."""
    figure = new_figure(*SIZE_IN)
    for axes, corpus in _panels(figure, rows):
        for n, kind in enumerate(_in_order(rows, "kind")):
            for row in (row for row in rows.values() if (row["corpus"], row["kind"]) == (corpus, kind)):
                x = row["part_s"] * (np.arange(row["parts"]) + 0.5 + 0.03 * (n - 2.5))
                _line(axes, x, row["seed gain"], kind, n)
                seed = f"{corpus}, a seed of {row['seed_s']:g} s"
        axes.axhline(0, color="black", ls=":", lw=1)
        axes.set(title=seed, xlabel="seconds after the seed")
    figure.axes[0].set_ylabel("nats a token that the seed saves")
    figure.axes[0].legend(frameon=False, fontsize=8)
    return figure


def _panels(figure: Figure, rows: Rows) -> Iterable[tuple[Axes, str]]:
    corpora = _in_order(rows, "corpus")
    return zip(np.ravel(figure.subplots(1, len(corpora))).tolist(), corpora, strict=True)


def _in_order(rows: Rows, name: str) -> list[str]:
    return [*dict.fromkeys(row[name] for row in rows.values())]


def _line(axes: Axes, x: Any, intervals: Any, label: str, n: int) -> None:
    mean, low, high = np.reshape(intervals, (-1, 3)).T
    bars = axes.errorbar(x, mean, [mean - low, high - mean], fmt=MARKS[n] + "-", ms=4, lw=1.2, elinewidth=0.8)
    bars.set_label(label)
