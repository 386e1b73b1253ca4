"""The picture of `planted_motif.py`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from musictx.viz.figure import new_figure, save_figure


def plot(table: dict[str, dict[str, Any]], path: Path, trained: Sequence[int], longest: int) -> None:
    """Right pitches by L, as far as every random seed was measured: their mean, and from the lowest to the highest."""
    figure = new_figure(11, 4.5)
    both = figure.subplots(1, 2, sharey=True)
    for axes, task in zip(both, next(iter(table.values())), strict=True):
        axes.axvspan(6, longest, color="grey", alpha=0.12, lw=0)
        for kind, row in table.items():
            shares = {int(n): [x[0] for x in each if x] for n, each in row[task]["length"].items()}
            # no further than all random seeds were measured: beyond, those that did not break would stand for all
            lengths = sorted(n for n, each in shares.items() if len(each) == len(row[task]["steps"]))
            mean, low, high = ([float(f(shares[n])) for n in lengths] for f in (np.mean, min, max))
            (line,) = axes.plot(lengths, mean, lw=1.2, label=kind)
            axes.fill_between(lengths, low, high, color=line.get_color(), alpha=0.15, lw=0)
            for seen, face in ((True, line.get_color()), (False, "white")):
                at = [i for i, n in enumerate(lengths) if (n in trained) == seen]
                x, y = ([values[i] for i in at] for values in (lengths, mean))
                axes.plot(x, y, "o", ms=4, mec=line.get_color(), mfc=face)
        chance = [x[0] for row in table.values() for x in row[task]["chance"] if x]
        axes.axhline(np.mean(chance), color="black", ls=":", lw=1, label="chance")
        axes.set_xscale("log", base=2)
        axes.set(ylim=(0, 1.02), title=f"the motif returns {task}")
        ticks = (9, 33, 99, 192, 447, 1023, 2049, 4095, 8190, 16380)
        axes.set_xticks(ticks, [f"{n:,}" for n in ticks], rotation=90)
        axes.minorticks_off()
    figure.supxlabel("ids between motif and return; grey: the range of training; hollow: none of them was trained")
    both[0].set_ylabel("right pitches in the return")
    both[1].legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    save_figure(figure, path)
