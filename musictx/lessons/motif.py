"""A planted motif: four notes return after L others; who finds them again, also at a lag that training never had?

A mark, a motif m_1 … m_4, L other notes of hymns, the mark and the motif again. Only memory tells m_2 … m_4 of
the return. Lag and place are drawn uniformly, one lag in five never, so no model can learn a list of distances. All
have the same curriculum: two notes and no lag at first, then more, as soon as three of four notes are right. Without it
most learn nothing. A recurrent net must carry the motif through all L steps in its state. A Transformer looks back: the
relative form by distance, whatever the place; the learned form has a vector for each place, and none beyond training.

The task is a small sister of the synthetic copying in Arjovsky et al. 2016, section 4.1; `studies/planted_motif.py` has
the large one.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from matplotlib.figure import Figure
from torch import Tensor, nn

from musictx.lessons import Finding
from musictx.lessons.descend import descend
from musictx.lessons.hymns import lines
from musictx.model.build import build_model, model_config
from musictx.viz.curves import COLOURS, MARKERS
from musictx.viz.figure import FAINT, new_figure

MARK, VOCAB = 128, 129  # an id after the pitches
NOTES, MOST_BEFORE, TRAINED = 4, 12, 24  # of the motif; notes before it at most; the longest lag of training
STAGES = [(2, 0), (3, 2), (4, 4), (4, 8), (4, 12), (4, 16), (4, 20), (4, TRAINED)]  # notes, longest lag
LAGS, BATCH, SHARE = (2, 6, 8, 11, 13, 18, 21, 23, 32, 48, 64), 32, 0.75
SIZES: dict[str, Any] = {"vocab_size": VOCAB, "d_model": 64, "n_layers": 2, "dropout": 0.0}
WIDE = SIZES | {"n_heads": 4, "d_ff": 128, "max_distance": 128, "max_positions": 128}
KINDS: dict[str, tuple[str, dict[str, Any], float]] = {  # each with the better of the rates 1e-3 and 3e-3
    "LSTM": ("recurrent", SIZES, 3e-3),
    "relative": ("transformer", WIDE | {"position": "relative"}, 1e-3),
    "learned": ("transformer", WIDE | {"position": "learned"}, 3e-3),
}


def held_out(lag: int) -> bool:
    """Whether no training has it: 3, 8, 13 …"""
    return lag % 5 == 3


class Music(NamedTuple):
    """Soprano lines of some hymns, and where chance is."""

    notes: Tensor  # (N,) one after the other
    rng: np.random.Generator

    def some(self, n: int, length: int) -> Tensor:
        """(n, length) from anywhere."""
        start = torch.from_numpy(self.rng.integers(0, len(self.notes) - length, n))
        return self.notes[start[:, None] + torch.arange(length)]

    def pieces(self, n: int, notes: int, lag: int, other: bool = False) -> Tensor:
        """(n, T) whose motif returns after `lag` notes; `other`: another motif came first."""
        motif, mark = self.some(n, notes), torch.full((n, 1), MARK)
        first = self.some(n, notes) if other else motif
        before = self.some(n, int(self.rng.integers(0, MOST_BEFORE + 1)))
        return torch.cat([before, mark, first, self.some(n, lag), mark, motif], 1)


def music(held_out: bool) -> Music:
    return Music(torch.from_numpy(lines(8, held_out=held_out)).flatten(), np.random.default_rng(0))


def right(model: nn.Module, ids: Tensor, notes: int) -> Tensor:
    """Which of m_2 … of the returns are named right, (n, notes - 1)."""
    found: Tensor = model(ids[:, :-1])[:, -(notes - 1) :].argmax(-1) == ids[:, -(notes - 1) :]
    return found


def train(model: nn.Module, music: Music, steps: int, lr: float) -> int:
    """Trains through the stages; returns the last one that it came to."""
    stage = 0

    def loss() -> Tensor:
        nonlocal stage
        notes, most = STAGES[stage]
        lag = int(music.rng.choice([lag for lag in range(most + 1) if not held_out(lag)]))
        ids = music.pieces(BATCH, notes, lag)
        logits, targets = model(ids[:, :-1])[:, -(notes - 1) :], ids[:, -(notes - 1) :]
        if (logits.argmax(-1) == targets).float().mean() > SHARE:
            stage = min(stage + 1, len(STAGES) - 1)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())

    descend(model.parameters(), loss, steps, lr)
    return stage


@torch.no_grad()
def score(model: nn.Module, music: Music, lag: int, n: int, other: bool = False) -> float:
    """The share of right notes in returns after a lag; each eight pieces have a place of their own."""
    rows = [right(model, music.pieces(8, NOTES, lag, other), NOTES).float().mean() for _ in range(n // 8)]
    return float(torch.stack(rows).mean())


def lesson(size: float = 1.0) -> Finding:
    shares, rows, steps = {}, [], max(20, int(700 * size))
    for name, (kind, sizes, lr) in KINDS.items():
        heard, unheard = (music(held_out=each) for each in (False, True))  # the same for each kind
        torch.manual_seed(0)
        model = build_model(model_config(kind, sizes))
        stage = train(model, heard, steps, lr)
        model.eval()
        shares[name] = [score(model, unheard, lag, 64) for lag in LAGS]
        chance = score(model, unheard, LAGS[0], 64, other=True)
        scored = list(zip(shares[name], LAGS, strict=True))
        of = {what: np.mean([share for share, lag in scored if which(lag)]) for what, which in PARTS}
        rows.append((name, f"{stage + 1} of {len(STAGES)}", *(f"{x:.0%}" for x in (*of.values(), chance))))
    words = f"After {steps} steps each: "
    words += "; ".join(f"{row[0]} {row[2]} at lags of training, {row[3]} between them, {row[4]} beyond" for row in rows)
    headings = ("model", "stage", *(what for what, _ in PARTS), "another motif")
    return Finding(headings, rows, f"{words}.", draw(shares), ("model/recurrent.py", "model/recall.py"))


PARTS: list[tuple[str, Callable[[int], bool]]] = [
    ("trained lags", lambda lag: lag <= TRAINED and not held_out(lag)),
    ("lags between", lambda lag: lag <= TRAINED and held_out(lag)),
    ("longer lags", lambda lag: lag > TRAINED),
]


def draw(shares: dict[str, list[float]]) -> Figure:
    figure = new_figure(9, 3.8)
    axes = figure.subplots()
    axes.axvspan(0, TRAINED, color="#f0f0f0", label="lags of training")
    for (name, found), colour, marker in zip(shares.items(), COLOURS, MARKERS, strict=False):
        axes.plot(LAGS, found, color=colour, label=name)
        for lag, share in zip(LAGS, found, strict=True):
            full = lag <= TRAINED and not held_out(lag)
            axes.plot(lag, share, marker, color=colour, mfc=colour if full else "white", ms=6)
    axes.plot([], [], "o", color=FAINT, mfc="white", label="never trained")
    axes.set(xlabel="notes between the motif and its return", ylabel="share of right notes", ylim=(0, 1.05))
    axes.legend(frameon=False, ncols=3, loc="lower left")
    return figure
