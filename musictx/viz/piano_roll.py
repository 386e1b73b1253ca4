"""Piano rolls: the seed in one colour, what the model made of it in another."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PatchCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from musictx.files import replacing
from musictx.notes.score import Score

SEED_COLOUR, NEW_COLOUR = "#0072B2", "#E69F00"  # told apart by colour-blind eyes too (Okabe and Ito 2008)
BLACK_KEYS = {1, 3, 6, 8, 10}


def piano_roll(panels: Sequence[tuple[str, Score, float]], path: Path) -> None:
    """A PNG with one panel per (title, score, second at which the new music begins), all on one time axis.

    Written whole or not at all. Raises ValueError when there is no panel.
    """
    if not panels:
        raise ValueError("piano_roll needs at least one panel")
    figure = Figure(figsize=(12, 0.7 + 2.1 * len(panels)), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    scores = [score for _, score, _ in panels if len(score)]
    low = min((int(s.pitch.min()) for s in scores), default=60) - 2
    high = max((int(s.pitch.max()) for s in scores), default=72) + 2
    end_s = max((s.duration_s for s in scores), default=1.0)
    for i, (axes, (title, score, new_from_s)) in enumerate(
        zip(figure.subplots(len(panels), sharex=True, squeeze=False)[:, 0], panels, strict=True)
    ):
        for pitch in range(low, high + 1):
            if pitch % 12 in BLACK_KEYS:
                axes.axhspan(pitch - 0.5, pitch + 0.5, color="#f3f3f3", lw=0)
        is_new = score.onset_s >= new_from_s - 1e-6
        for colour, chosen in ((SEED_COLOUR, ~is_new), (NEW_COLOUR, is_new)):
            axes.add_collection(_notes(score, chosen, colour))
        if new_from_s > 0:
            axes.axvline(new_from_s, color="#555555", lw=1, ls=(0, (4, 3)))
        octaves = [p for p in range(low, high + 1) if p % 12 == 0]
        axes.set_yticks(octaves, [f"C{p // 12 - 1}" for p in octaves])
        axes.set(xlim=(0, end_s * 1.005), ylim=(low, high))
        axes.set_title(title, loc="left", fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(length=3, labelsize=9)
        if i == 0:
            axes.legend(
                handles=[
                    Patch(color=SEED_COLOUR, label="seed"),
                    Patch(color=NEW_COLOUR, label="continuation"),
                ],
                loc="lower right",
                bbox_to_anchor=(1, 1),
                ncols=2,
                frameon=False,
                fontsize=9,
            )
    axes.set_xlabel("seconds")
    with replacing(path) as partial:
        figure.savefig(partial)


def _notes(score: Score, chosen: np.ndarray, colour: str) -> PatchCollection:
    """Louder notes are more opaque; a sliver is left open at each end so that repeated notes show."""
    columns = zip(score.onset_s[chosen], score.offset_s[chosen], score.pitch[chosen], strict=True)
    boxes = [Rectangle((on, pitch - 0.42), max(off - on - 0.02, 0.02), 0.84) for on, off, pitch in columns]
    faces = [to_rgba(colour, 0.45 + 0.55 * v / 127) for v in score.velocity[chosen]]
    return PatchCollection(boxes, facecolors=faces, edgecolors="none")
