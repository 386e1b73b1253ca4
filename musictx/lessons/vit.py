"""A vision Transformer on hymns: a piano roll cut in patches, a class token that answers, and where it looks.

A picture of KEYS x T cells is cut into patches of an octave and a quarter. Each becomes a vector, z_p = E x_p + pos_p,
and a learned class token z_0 stands before them (Dosovitskiy et al. 2021, section 3.1). The class token looks at all
patches, w_p = softmax_p(q_0 · k_p / sqrt(d)), and the answer is read from it alone. Two nets get the same pictures and
different questions: on which note does the bass end, and which key is it? To hide a quarter shows what each needs.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from torch import Tensor, nn

from musictx.lessons import Finding
from musictx.lessons.descend import descend
from musictx.lessons.hymns import chords, roll
from musictx.viz.curves import COLOURS
from musictx.viz.figure import FAINT, INK, new_figure

T, LOWEST, KEYS = 32, 30, 60  # sixteenths and keys of a picture
OCTAVE, QUARTER = 12, 4  # of a patch
OCTAVES, QUARTERS = KEYS // OCTAVE, T // QUARTER
D, HEADS, BATCH = 64, 4, 32
QUESTIONS = {"last note of the bass": COLOURS[1], "key": COLOURS[0]}


class ViT(nn.Module):
    """Pictures (B, KEYS, T) -> logits (B, 12), and how much the class token looks at each patch (B, OCTAVES, QUARTERS).

    It has one block, after which only the class token is read. So only this token asks.
    """

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(OCTAVE * QUARTER, D)
        self.place = nn.Parameter(0.1 * torch.randn(1 + OCTAVES * QUARTERS, D))
        self.class_token = nn.Parameter(0.1 * torch.randn(1, 1, D))
        self.q, self.k, self.v, self.o = (nn.Linear(D, D) for _ in range(4))
        self.norm, self.mlp_norm, self.last_norm = nn.LayerNorm(D), nn.LayerNorm(D), nn.LayerNorm(D)
        self.mlp = nn.Sequential(nn.Linear(D, 4 * D), nn.GELU(), nn.Linear(4 * D, D))
        self.head = nn.Linear(D, 12)

    def forward(self, picture: Tensor) -> tuple[Tensor, Tensor]:
        z = torch.cat([self.class_token.expand(len(picture), -1, -1), self.embed(patches(picture))], 1) + self.place
        x = self.norm(z)  # (B, 1 + P, D)
        q, k, v = (part.unflatten(2, (HEADS, -1)).transpose(1, 2) for part in (self.q(x[:, :1]), self.k(x), self.v(x)))
        w = (q @ k.mT / math.sqrt(D // HEADS)).softmax(-1)  # (B, H, 1, 1 + P)
        y = z[:, 0] + self.o((w @ v).flatten(1))  # (B, D)
        y = y + self.mlp(self.mlp_norm(y))
        return self.head(self.last_norm(y)), w[:, :, 0, 1:].mean(1).unflatten(1, (OCTAVES, QUARTERS))


def patches(picture: Tensor) -> Tensor:
    """(B, KEYS, T) -> (B, P, OCTAVE · QUARTER), octave by octave from below."""
    return picture.unfold(1, OCTAVE, OCTAVE).unfold(2, QUARTER, QUARTER).flatten(3).flatten(1, 2)


def windows(held_out: bool) -> tuple[Tensor, Tensor]:
    """(N, T, 4) pitches, and the tonic (N,) of each window's major key."""
    music, keys = chords(T, step=1, hop=T // 2, held_out=held_out)
    return torch.from_numpy(music), torch.from_numpy(keys)


def answers(question: str, music: Tensor, tonic: Tensor) -> Tensor:
    """(B,) a pitch class, 0 to 11."""
    return (tonic if question == "key" else music[:, -1, 3]) % 12


def draw(music: Tensor, tonic: Tensor, which: Tensor) -> tuple[Tensor, Tensor]:
    """The windows, each in a random key, and their tonics."""
    up = torch.randint(-6, 6, which.shape)
    return music[which] + up[:, None, None], tonic[which] + up


def lesson(size: float = 1.0) -> Finding:
    training, unseen = windows(held_out=False), windows(held_out=True)
    test, tonic = draw(*unseen, torch.arange(0, len(unseen[0]), 2))
    pictures = roll(test, LOWEST, KEYS)
    rows: list[tuple[str, ...]] = []
    looks, hidden = {}, {}
    for question in QUESTIONS:
        net, truth = ViT(), answers(question, test, tonic)

        def loss(net: nn.Module = net, question: str = question) -> Tensor:
            music, key = draw(*training, torch.randint(len(training[0]), (BATCH,)))
            return F.cross_entropy(net(roll(music, LOWEST, KEYS))[0], answers(question, music, key))

        descend(net.parameters(), loss, max(90, int(800 * size)), lr=0.006)
        with torch.no_grad():
            logits, looks[question] = net(pictures)
            hidden[question] = [share(net(hide(pictures, quarter))[0], truth) for quarter in range(QUARTERS)]
        last = float(looks[question][..., -1].sum(1).mean())
        commonest = float((truth == truth.bincount().argmax()).float().mean())
        right, without = share(logits, truth), hidden[question][-1]
        rows.append((question, *(f"{each:.0%}" for each in (commonest, right, last, without))))
    return Finding(
        ("question", "the commonest", "right", "weight on the last quarter", "right if it is hidden"),
        rows,
        f"Asked for the last note of the bass, the class token has {rows[0][3]} of its weight on the last quarter (an "
        f"even look: {1 / QUARTERS:.1%}); {rows[0][2]} of its answers are right, and {rows[0][4]} where it is "
        f"hidden. Asked for the key it has {rows[1][3]} there; {rows[1][2]} are right, and {rows[1][4]} without it.",
        plot(pictures[0], looks, hidden),
        ("model/encoder_decoder.py", "analysis/heads.py"),
    )


def hide(picture: Tensor, quarter: int) -> Tensor:
    return picture.index_fill(2, torch.arange(quarter * QUARTER, (quarter + 1) * QUARTER), 0.0)


def share(logits: Tensor, truth: Tensor) -> float:
    return float((logits.argmax(-1) == truth).float().mean())


def plot(picture: Tensor, looks: dict[str, Tensor], hidden: dict[str, list[float]]) -> Figure:
    """Where each class token looks in one window; and how many answers are right where a quarter is hidden."""
    figure = new_figure(11, 3.8, dpi=90)
    axes = figure.subplots(1, 3)
    most = max(float(look[0].max()) for look in looks.values())
    extent = (0, QUARTERS, LOWEST - 0.5, LOWEST + KEYS - 0.5)
    for at, (question, look) in zip(axes, looks.items(), strict=False):
        image = at.imshow(
            look[0], cmap="Oranges", norm=PowerNorm(0.5, 0, most), origin="lower", aspect="auto", extent=extent
        )
        at.pcolormesh(
            np.arange(T + 1) / QUARTER, np.arange(KEYS + 1) + LOWEST - 0.5, np.ma.masked_equal(picture, 0),
            cmap="gray", vmin=0, vmax=3,
        )  # fmt: skip
        at.set_xticks(range(QUARTERS + 1))
        at.set_yticks(np.arange(OCTAVES + 1) * OCTAVE + LOWEST - 0.5, np.arange(OCTAVES + 1) * OCTAVE + LOWEST)
        at.grid(color=FAINT, lw=0.5)
        at.set(xlabel="quarter", ylabel="pitch (MIDI)", title=f"Asked for the {question}")
    figure.colorbar(image, ax=axes[1], label="weight of the class token on a patch")
    for n, (question, colour) in enumerate(QUESTIONS.items()):
        axes[2].bar(np.arange(QUARTERS) + 0.3 + 0.4 * n, hidden[question], 0.4, color=colour, label=question)
    axes[2].set(xlabel="quarter that is hidden", ylabel="share right", ylim=(0, 1.35), title="What each needs")
    axes[2].set_xticks(np.arange(QUARTERS) + 0.5, [str(n + 1) for n in range(QUARTERS)])
    axes[2].legend(frameon=False, labelcolor=INK)
    axes[2].spines[["top", "right"]].set_visible(False)
    return figure
