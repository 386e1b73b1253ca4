"""What a collection of music is made of, as histograms."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from musictx.files import replacing
from musictx.notes.score import Score
from musictx.viz.piano_roll import SEED_COLOUR

Bins = tuple[NDArray[Any], NDArray[Any]]  # counts (K,), edges (K + 1,)


def count_music(scores: Sequence[Score], tokens: Sequence[int]) -> dict[str, Bins]:
    """Histograms of pitch, velocity, seconds between onsets (chords, below 5 ms, left
    out), and tokens in a piece."""
    pitch, velocity = (np.concatenate([getattr(s, name) for s in scores]) for name in ("pitch", "velocity"))
    gaps = np.concatenate([np.diff(s.onset_s) for s in scores])
    return {
        "pitch": np.histogram(pitch, np.arange(129) - 0.5),
        "velocity": np.histogram(velocity, np.arange(0, 129, 4) - 0.5),
        "seconds between onsets": np.histogram(gaps, np.arange(0.005, 1.5, 0.01)),
        "tokens in a piece": np.histogram(np.array(tokens), 30),
    }


def draw_histograms(title: str, histograms: dict[str, Bins], path: Path) -> None:
    """One PNG with all of them side by side. Written whole or not at all."""
    figure = Figure(figsize=(12, 6), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title)
    for axes, (name, (counts, edges)) in zip(figure.subplots(2, 2).flat, histograms.items(), strict=True):
        axes.bar(edges[:-1], counts, np.diff(edges), align="edge", color=SEED_COLOUR)
        if name.startswith("seconds"):
            axes.set_yscale("log")
        axes.set_xlabel(name)
        axes.spines[["top", "right"]].set_visible(False)
        axes.margins(x=0.01)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as partial:
        figure.savefig(partial, format="png")
