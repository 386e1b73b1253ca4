"""Teacher forcing: a net that was always told the truth, and nets that had to go on from their own notes.

    p(y_t | y'_1 ... y'_{t-1}, x),   y'_s = the true y_s with probability p, else a draw from the net's own p(y_s | ...)

In training the net may be given the true note before, always (p = 1: teacher forcing, Williams and Zipser 1989) or
with probability p (scheduled sampling, Bengio et al. 2015). When it writes music there is no truth: it hears only its
own notes (p = 0), with mistakes that it never met in training (exposure bias). Here x is a soprano and y the bass.
"""

from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from musictx.lessons import Finding
from musictx.lessons.descend import descend
from musictx.lessons.hymns import chords
from musictx.viz.curves import COLOURS
from musictx.viz.figure import FAINT, new_figure

LENGTH, WIDTH, BATCH, STEPS = 17, 48, 32, 300
LOW, N_PITCHES = 32, 56  # sopranos and basses, moved by up to 4 semitones
TRUTH = (1.0, 0.7, 0.3)
DRAWS = 4  # of each held-out line


class Bass(nn.Module):
    """A GRU that sets a bass to a soprano, note by note."""

    def __init__(self) -> None:
        super().__init__()
        self.soprano, self.bass = nn.Embedding(N_PITCHES, WIDTH), nn.Embedding(N_PITCHES, WIDTH)
        self.cell, self.head = nn.GRUCell(WIDTH, WIDTH), nn.Linear(WIDTH, N_PITCHES)

    def forward(self, x: Tensor, y: Tensor, p: float, best: bool = False) -> tuple[Tensor, Tensor]:
        """Soprano x and bass y (B, T + 1) -> logits (B, T, V) of all notes after the first, and its own notes (B, T): a
        draw, or the `best`. Each time it goes on from the true note with probability p, else from its own."""
        heard = self.soprano(x)  # (B, T + 1, C)
        h, before = torch.zeros_like(heard[:, 0]), y[:, 0]
        logits, notes = [], []
        for t in range(1, x.shape[1]):
            h = self.cell(heard[:, t] + self.bass(before), h)
            logits.append(self.head(h))
            chance = logits[-1].detach().softmax(-1)  # (B, V)
            notes.append(chance.argmax(-1) if best else chance.multinomial(1)[:, 0])
            before = torch.where(torch.rand(len(x)) < p, y[:, t], notes[-1])
        return torch.stack(logits, 1), torch.stack(notes, 1)


def music(held_out: bool) -> tuple[Tensor, Tensor]:
    """Sopranos and basses, (N, LENGTH) each, a note a beat."""
    voices = torch.from_numpy(chords(LENGTH, held_out=held_out)[0]) - LOW  # (N, LENGTH, 4)
    return voices[:, :, 0], voices[:, :, 3]


def nats(logits: Tensor, y: Tensor) -> Tensor:
    """(T,) the mean cross-entropy of the true notes, beat by beat."""
    return F.cross_entropy(logits.transpose(1, 2), y[:, 1:], reduction="none").mean(0)


class Outcome(NamedTuple):
    """Of held-out music, when the net goes on from the truth, and from its own notes."""

    true_nats: Tensor  # (T,)
    own_nats: Tensor
    true_error: float
    best_error: float  # of the net's likeliest notes, each after its likeliest ones
    drawn_error: float


def train(p: float, steps: int) -> Bass:
    torch.manual_seed(1)  # all nets begin alike
    net, (sopranos, basses) = Bass(), music(held_out=False)

    def loss() -> Tensor:
        rows, moved = torch.randint(len(basses), (BATCH,)), torch.randint(-4, 5, (BATCH, 1))
        y = basses[rows] + moved
        return nats(net(sopranos[rows] + moved, y, p)[0], y).mean()

    descend(net.parameters(), loss, steps, lr=1e-2)
    return net


@torch.no_grad()
def measure(net: Bass) -> Outcome:
    x, y = (part.repeat(DRAWS, 1) for part in music(held_out=True))
    forced, _ = net(x, y, p=1.0)
    free, drawn = net(x, y, p=0.0)
    _, best = net(x, y, p=0.0, best=True)
    errors = [float((notes != y[:, 1:]).float().mean()) for notes in (forced.argmax(-1), best, drawn)]
    return Outcome(nats(forced, y), nats(free, y), *errors)


def lesson(size: float = 1.0) -> Finding:
    found = {p: measure(train(p, max(60, int(STEPS * size)))) for p in TRUTH}
    basses = music(held_out=True)[1][:, 1:]
    most = float(basses.flatten().bincount().max()) / basses.numel()
    rows = []
    for p, each in found.items():
        gap = each.own_nats.mean() - each.true_nats.mean()
        numbers = (f"{x:.2f}" for x in (each.true_nats.mean(), each.own_nats.mean(), gap))
        rows.append((str(p), *numbers, *(f"{x:.0%}" for x in each[2:])))

    figure = new_figure(10, 3.8, 80)
    left, bars = figure.subplots(1, 2, gridspec_kw={"width_ratios": [1.25, 1]})
    beats = np.arange(1, LENGTH)
    for (p, each), colour in zip(found.items(), COLOURS, strict=False):
        left.plot(beats, each.own_nats, color=colour, label=f"p = {p}")
        left.plot(beats, each.true_nats, "--", color=colour)
    left.set(
        title="loss after its own notes (lines) and the truth (dashes)",
        xlabel="beat",
        ylabel="nats a note",
        ylim=(0, None),
    )
    left.legend(frameon=False, ncols=3, loc="lower center")
    kinds = ("after the truth", "its likeliest notes", "its drawn notes")
    bars.axhline(1 - most, color=FAINT, ls="--", label="most frequent")
    for n, (p, each) in enumerate(found.items()):
        bars.bar(np.arange(3) + 0.27 * (n - 1), each[2:], 0.25, color=COLOURS[n], label=f"p = {p}")
    bars.set_xticks(range(3), kinds)
    bars.set(title="notes of the bass that are not the hymn's", ylabel="share of notes", ylim=(0, 1.15))
    bars.legend(frameon=False, ncols=2, loc="upper left")
    always, rarely = found[TRUTH[0]], found[TRUTH[-1]]
    return Finding(
        (
            "truth in training",
            "nats, truth",
            "nats, own notes",
            "gap",
            "error, truth",
            "error, likeliest",
            "error, drawn",
        ),
        rows,
        f"Told the truth always, the net loses {rows[0][3]} nats a note when it goes on from its own notes; told it "
        f"with p = {TRUTH[-1]}, {rows[-1][3]}. Its likeliest notes are then wrong in {rarely.best_error:.0%}, not "
        f"{always.best_error:.0%}, and after the truth in {rarely.true_error:.0%}, not {always.true_error:.0%}. Of "
        f"drawn notes {rarely.drawn_error:.0%} are not the hymn's, with the truth always {always.drawn_error:.0%}. The "
        f"most frequent note of a bass would be wrong in {1 - most:.0%}.",
        figure,
        ("objectives/next_token.py",),
    )
