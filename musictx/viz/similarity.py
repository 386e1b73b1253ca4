"""Shows where a piece resembles itself: repeats are stripes beside the diagonal, sections are blocks (Foote 1999)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from musictx.errors import ConfigError
from musictx.files import replacing
from musictx.music.score import DRUMS, Score
from musictx.viz.piano_roll import NEW_COLOUR

PARTS = 16  # of a span: its rhythm is the number of onsets in each
MOST_WINDOWS = 2000
MOST_BESIDE = 3  # panels in a row

Floats = NDArray[np.float64]


def self_similarity(score: Score, window_s: float) -> Floats:
    """(N, N) how similar the spans of `window_s` seconds are, 0 … 1: the mean of two cosine similarities, of seconds
    per pitch class and of onsets per sixteenth of the span.

    Spans where nothing sounds, or nothing begins, resemble only each other in that. Drums have rhythm, but no pitch
    class. Raises ConfigError for spans without length, or too many.
    """
    if not window_s > 0:
        raise ConfigError(f"⟨window_s⟩={window_s}: give seconds, more than 0, such as the length of a bar")
    if score.duration_s / window_s > MOST_WINDOWS:
        raise ConfigError(
            f"⟨window_s⟩={window_s:g} makes {score.duration_s / window_s:,.0f} spans, at most {MOST_WINDOWS:,} are "
            f"drawn: give {np.ceil(score.duration_s * 100 / MOST_WINDOWS) / 100:g} or more"
        )
    # rounded, so that an onset on a bar line does not fall into the bar before
    onset, offset = (np.round(x / window_s, 6) for x in (score.onset_s, score.offset_s))
    part = (onset * PARTS).astype(np.int64)
    n = max(int(np.ceil(offset.max(initial=0))), int(part.max(initial=-1)) // PARTS + 1)
    rhythm = np.bincount(part, minlength=n * PARTS).reshape(n, PARTS)
    pitched = score.program != DRUMS
    chroma = _chroma(onset[pitched], offset[pitched], score.pitch[pitched] % 12, n)
    unit_rhythm, unit_chroma = _unit_rows(rhythm), _unit_rows(chroma)
    similarity: Floats = (unit_rhythm @ unit_rhythm.T + unit_chroma @ unit_chroma.T) / 2
    return similarity


def draw_self_similarity(
    panels: Sequence[tuple[str, Score]], path: Path, window_s: float, new_from_s: float | None = None
) -> None:
    """Writes one PNG (or another format by the suffix) with a matrix for each (title, score); dashed lines mark the
    beginning of new music.

    Writes the file whole or not at all. Raises ConfigError as `self_similarity` does, ValueError without panels.
    """
    if not panels:
        raise ValueError("draw_self_similarity needs at least one panel")
    matrices = [self_similarity(score, window_s) for _, score in panels]
    beside = min(len(panels), MOST_BESIDE)
    rows = -(-len(panels) // beside)
    figure = Figure(figsize=(0.9 + 4.2 * beside, 4.4 * rows), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(rows, beside, squeeze=False)
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    for axes, (title, _), matrix in zip(grid.flat, panels, matrices, strict=False):
        axes.set_title(title, loc="left", fontsize=10)
        axes.set(xlabel="seconds", ylabel="seconds")
        axes.tick_params(length=3, labelsize=9)
        if not len(matrix):
            axes.text(0.5, 0.5, "no notes", transform=axes.transAxes, ha="center", va="center", color="#555555")
            axes.set(xticks=[], yticks=[], aspect="equal")
            continue
        end_s = len(matrix) * window_s
        image = axes.imshow(matrix, cmap="Blues", vmin=0, vmax=1, origin="lower", extent=(0, end_s, 0, end_s))
        if new_from_s is not None and 0 < new_from_s < end_s:
            for line in (axes.axvline, axes.axhline):
                line(new_from_s, color=NEW_COLOUR, lw=1.5, ls=(0, (4, 3)))
    if any(len(matrix) for matrix in matrices):
        figure.colorbar(image, ax=grid, aspect=40, label="similarity")
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as partial:
        figure.savefig(partial)


def _chroma(onset: Floats, offset: Floats, pitch_class: NDArray[Any], n: int) -> NDArray[Any]:
    """(n, 12) how long each pitch class sounds in each span; all times are in spans."""
    first = onset.astype(np.int64)
    last = np.maximum(np.ceil(offset).astype(np.int64) - 1, first)
    note = np.repeat(np.arange(len(onset)), last - first + 1)  # once for each span that it reaches
    window = first[note] + np.arange(len(note)) - np.searchsorted(note, note)
    length = np.clip(offset[note] - window, 0, 1) - np.clip(onset[note] - window, 0, 1)
    return np.bincount(window * 12 + pitch_class[note], length, n * 12).reshape(n, 12)


def _unit_rows(features: NDArray[Any]) -> Floats:
    """(N, K) -> (N, K + 1), every row of length 1; the last column marks rows that are all 0."""
    marked = np.column_stack([features, ~features.any(1)]).astype(np.float64)
    unit: Floats = marked / np.linalg.norm(marked, axis=1, keepdims=True)
    return unit
