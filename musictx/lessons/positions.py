"""How attention knows where a note is: seven forms of position, asked for the pitch of one bar ago.

Attention is a sum over a set: sum_j softmax_j(q_i · k_j) v_j does not change if the notes before i change places. So
each form brings the place t, or the distance t - s, into q · k (widths C of a model, D of a head; frequencies w_c):

    binary, learned   x_t + p_t, p_t the digits of t times a matrix, or a row of a table
    sines             p_t = [sin(w_c t), cos(w_c t)], w_c = 10,000^(-2c / C) (Vaswani et al. 2017, section 3.5)
    concatenated      [x_t, p_t] in place of x_t + p_t
    rotary            R_t q · R_s k = q · R_(s - t) k, R_t turns pairs of numbers by w_c t (Su et al. 2021)
    relative          q · k + q · e_(t - s), e a table of distances (Shaw et al. 2018)

A sine's place is linear in the offset: p_(t + d) = M_d p_t with one M_d for every t. A layer can learn "d notes back".
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from musictx.lessons import Finding
from musictx.lessons.descend import descend
from musictx.lessons.hymns import lines
from musictx.viz.curves import COLOURS
from musictx.viz.figure import GREY, new_figure

FORMS = ("none", "binary", "learned", "sines", "concatenated", "rotary", "relative")
WIDTH, LENGTH, BACK, BITS = 32, 16, 4, 6  # BACK: four quarters, a bar


def sines(t: Tensor, width: int = WIDTH) -> Tensor:
    """(T,) -> (T, C): sine and cosine of each frequency side by side."""
    angle = t[:, None] * 10_000.0 ** (-torch.arange(0, width, 2) / width)  # (T, C / 2)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)


def binary(t: Tensor) -> Tensor:
    """(T,) -> (T, BITS): the digits of t, the ones first."""
    return (t[:, None] // 2 ** torch.arange(BITS) % 2).float()


def turned(x: Tensor, t: Tensor) -> Tensor:
    """R_t x for x (B, T, C): each pair of numbers, turned by its frequency times t."""
    sin, cos = sines(t)[:, ::2], sines(t)[:, 1::2]  # (T, C / 2)
    a, b = x[..., ::2], x[..., 1::2]  # (B, T, C / 2)
    return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(2)


class OneLook(nn.Module):
    """Pitches (B, T) -> logits (B, T, 128) after one head of attention, with one form of position."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self.form, wide = form, WIDTH * (1 + (form == "concatenated"))
        self.notes, self.out = nn.Embedding(128, WIDTH), nn.Linear(WIDTH, 128)
        self.q, self.k = nn.Linear(wide, WIDTH), nn.Linear(wide, WIDTH)
        self.v = nn.Linear(WIDTH, WIDTH)  # what is passed on is the note alone
        self.table = nn.Embedding(2 * LENGTH, WIDTH)  # of places or of distances
        self.digits = nn.Linear(BITS, WIDTH, bias=False)

    def forward(self, pitches: Tensor) -> Tensor:
        t = torch.arange(pitches.shape[1])
        notes = place = self.notes(pitches)  # (B, T, C)
        if self.form == "concatenated":
            place = torch.cat([notes, sines(t).expand_as(notes)], -1)
        elif self.form in ("binary", "learned", "sines"):
            places = {"binary": self.digits(binary(t)), "learned": self.table(t), "sines": sines(t)}
            place = notes + places[self.form]
        q, k = self.q(place), self.k(place)
        if self.form == "rotary":
            q, k = turned(q, t), turned(k, t)
        scores = q @ k.mT  # (B, T, T)
        distance = t[:, None] - t
        if self.form == "relative":
            by_distance = q @ self.table.weight[:LENGTH].mT  # (B, T, LENGTH), those that are farther share the last
            scores = scores + by_distance.gather(-1, distance.clamp(0, LENGTH - 1).expand_as(scores))
        scores = scores.masked_fill(distance < 0, -math.inf)
        mixed: Tensor = self.out((scores / math.sqrt(WIDTH)).softmax(-1) @ self.v(notes))
        return mixed


def right(model: nn.Module, windows: Tensor, since: int) -> float:
    """The share of places from `since` on where the likeliest pitch is that of one bar ago."""
    with torch.no_grad():
        guess = model(windows).argmax(-1)
    return float((guess[:, since:] == windows[:, since - BACK : -BACK]).float().mean())


def most_heard(windows: Tensor, since: int) -> float:
    """The same for a guess that needs no order: the pitch heard most, which any order of the notes has."""
    heard = F.one_hot(windows, 128).cumsum(1)[:, since:].argmax(-1)
    return float((heard == windows[:, since - BACK : -BACK]).float().mean())


def off_line(places: Tensor) -> float:
    """The share of the places' variance that no p_(t + d) = M p_t + b explains, d a bar; places (T, C)."""
    now, later = F.pad(places[:-BACK].double(), (0, 1), value=1.0), places[BACK:].double()
    left = later - now @ torch.linalg.lstsq(now, later, driver="gelsd").solution
    return float(left.square().sum() / (later - later.mean(0)).square().sum())


def lesson(size: float = 1.0) -> Finding:
    train = torch.from_numpy(lines(LENGTH))
    short, long = (torch.from_numpy(lines(n, held_out=True)) for n in (LENGTH, 2 * LENGTH))

    def trained(form: str) -> nn.Module:
        torch.manual_seed(0)  # the same batches for all
        model = OneLook(form)

        def loss() -> Tensor:
            x = train[torch.randint(len(train), (32,))] + torch.randint(-5, 7, (32, 1))  # in any key
            return F.cross_entropy(model(x)[:, BACK:].flatten(0, 1), x[:, :-BACK].flatten())

        descend(model.parameters(), loss, max(60, int(300 * size)), lr=1e-2)
        return model

    models = {form: trained(form) for form in FORMS}
    near = {form: right(model, short, LENGTH // 2) for form, model in models.items()}
    far = {form: right(model, long, LENGTH) for form, model in models.items()}
    t = torch.arange(2**BITS)
    off = {"binary": off_line(binary(t)), "sines": off_line(sines(t))}

    figure = new_figure(10, 3.6, 95)
    digits, waves, bars = figure.subplots(1, 3, width_ratios=(0.5, 1.4, 2.2))
    for axes, code, title in ((digits, binary(t), "binary code"), (waves, sines(t), "sines")):
        axes.imshow(code.numpy(), cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto", interpolation="nearest")
        axes.set(title=f"{title} (red 1, blue -1)", xlabel="number in p_t", ylabel="place t in quarters")
    digits.set(title="binary code", xticks=range(0, BITS, 2))
    at = torch.arange(len(FORMS))
    bars.bar(at - 0.2, list(near.values()), 0.4, color=COLOURS[0], label=f"places {LENGTH // 2} to {LENGTH - 1}")
    later = f"places {LENGTH} to {2 * LENGTH - 1}, never trained"
    bars.bar(at + 0.2, list(far.values()), 0.4, color=COLOURS[1], label=later)
    bars.set_xticks(at, FORMS, rotation=30)
    bars.set(title=f"pitch of {BACK} quarters ago, held-out hymns", ylabel="share right", ylim=(0, 1.3))
    bars.axhline(guess := most_heard(short, LENGTH // 2), color=GREY, ls="--", label="the pitch heard most")
    bars.legend(frameon=False, loc="upper left", ncols=2, fontsize=8)
    return Finding(
        ("position", "right", "right, never trained places", "not linear in the offset"),
        [(f, f"{near[f]:.2f}", f"{far[f]:.2f}", f"{off[f]:.3f}" if f in off else "-") for f in FORMS],
        f"Without positions {near['none']:.0%} are right (the pitch heard most: {guess:.0%}). A learned table has "
        f"{near['learned']:.0%}, but only {far['learned']:.0%} at places that training never had. There distances keep "
        f"{far['relative']:.0%}, rotary {far['rotary']:.0%}, sines {far['sines']:.0%}, concatenated ones "
        f"{far['concatenated']:.0%}.",
        figure,
        ("model/position/__init__.py", "model/position/absolute.py", "model/position/table.py"),
    )
