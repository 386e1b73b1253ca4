"""The losses of a run as a picture."""

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.training.metrics import Row, read_metrics
from musictx.viz.curves import draw_curves

POINTS = 40


class Curve(NamedTuple):
    """(W,) each; the band is from the lowest to the highest."""

    step: NDArray[np.float64]
    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def draw_losses(metrics: Path, path: Path, name: str, vocab_size: int) -> None:
    """Training loss and validation NLL over optimizer steps, beside what guessing blindly would cost."""
    rows = read_metrics(metrics)
    curves = {label: curve(rows, key) for label, key in (("training", "train/loss"), ("validation", "val/nll"))}
    known = {label: each for label, each in curves.items() if len(each.step)}
    blind = math.log(vocab_size)
    draw_curves(known, path, "optimizer steps", "nats per token", name, [(blind, f"guessing blindly {blind:.2f}")])


def curve(rows: list[Row], key: str) -> Curve:
    """What was logged, in at most 40 runs of rows of equal length, each as its mean and its extremes."""
    found = np.array([(int(row["step"]) + 1, float(row[key])) for row in rows if key in row]).reshape(-1, 2)
    parts = np.array_split(found, min(POINTS, max(len(found), 1)))
    table = [(p[:, 0].mean(), p[:, 1].mean(), p[:, 1].min(), p[:, 1].max()) for p in parts if len(p)]
    return Curve(*np.array(table).reshape(-1, 4).T)
