"""Why several heads: one head gives one average of the past, several heads of smaller width look at several places.

    head_h = softmax(Q_h K_h' / sqrt(C / H)) V_h,   Q_h = X W_h^Q, …, each of width C / H
    attention = [head_1, …, head_H] W^O = sum_h head_h W_h^O      (Vaswani et al. 2017, section 3.2.2)

W^Q, W^K, W^V and W^O are C x C for any number of heads H: one head and eight have as many weights and products. Each
asks here for the next note of a chorale, written S A T B, S A T B, … a chord a beat; a distance has its embedding.
"""

import math
from itertools import combinations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from musictx.lessons import Finding
from musictx.lessons.descend import descend
from musictx.lessons.hymns import chords
from musictx.music.grid import N_VOICES, VOICES
from musictx.viz.curves import COLOURS
from musictx.viz.figure import new_figure

HEADS, SHOWN = (1, 2, 4, 8), 4
BEATS, WIDTH = 8, 64
BACK = 3 * N_VOICES  # how many notes the maps show


def split(x: Tensor, n_heads: int) -> Tensor:
    """(…, T, C) -> (…, H, T, C / H)."""
    return x.reshape(*x.shape[:-1], n_heads, -1).transpose(-2, -3)


def weights(q: Tensor, k: Tensor, e: Tensor) -> Tensor:
    """(B, H, T, T) of queries and keys (B, H, T, D) and an embedding of each distance (H, T, D)."""
    t = torch.arange(q.shape[2])
    distance = t[:, None] - t  # (T, T)
    content = q @ k.mT
    scores = content + (q @ e.mT).gather(-1, distance.clamp(0).expand_as(content))
    return (scores / math.sqrt(q.shape[3])).masked_fill(distance < 0, -math.inf).softmax(-1)


class Chorale(nn.Module):
    """Pitches (B, T), S A T B in turn -> logits (B, T, 128) of the next, by one layer of attention."""

    def __init__(self, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.notes, self.voices = nn.Embedding(128, WIDTH), nn.Embedding(N_VOICES, WIDTH)
        self.qkv, self.join, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 128)
        self.distances = nn.Parameter(0.02 * torch.randn(BEATS * N_VOICES, WIDTH))

    def forward(self, pitches: Tensor) -> tuple[Tensor, Tensor]:
        """The logits, and the weights (B, H, T, T)."""
        t = torch.arange(pitches.shape[1])
        x = self.notes(pitches) + self.voices(t % N_VOICES)  # (B, T, C)
        q, k, v = (split(each, self.n_heads) for each in self.qkv(x).chunk(3, -1))
        looks = weights(q, k, split(self.distances[: len(t)], self.n_heads))
        heads = looks @ v  # (B, H, T, D)
        return self.out(x + self.join(heads.transpose(1, 2).flatten(2))), looks


def by_distance(looks: Tensor) -> Tensor:
    """(B, H, T, T) -> (H, voice, BACK): how much a note that is asked looks at the one 1, 2, … notes before it."""
    mean, n_notes = looks.mean(0), looks.shape[-1]
    rows = [mean[:, i, i - BACK + 1 : i + 1].flip(-1) for i in range(n_notes - BACK, n_notes)]  # note i + 1 is asked
    first = (n_notes - BACK + 1) % N_VOICES  # the voice of the first row
    return torch.stack(rows, 1).reshape(len(mean), -1, N_VOICES, BACK).mean(1).roll(first, 1)


def apart(maps: Tensor) -> float:
    """(H, voice, BACK) -> 0 to 1: half the difference of the weights of two heads, mean over all pairs."""
    pairs = [(maps[a] - maps[b]).abs().sum(-1).mean() / 2 for a, b in combinations(range(len(maps)), 2)]
    return float(torch.stack(pairs).mean())


def by_voice(train: Tensor, held_out: Tensor) -> float:
    """Nats a note for whoever knows only how often each voice sings a pitch."""
    train, held_out = (each.reshape(-1, N_VOICES) for each in (train, held_out))  # (N, voice)
    counts = F.one_hot(train, 128).sum(0) + 0.1  # (voice, 128)
    return float(-(counts / counts.sum(1, keepdim=True)).log().T.gather(0, held_out).mean())


def lesson(size: float = 1.0) -> Finding:
    train, held_out = (torch.from_numpy(chords(BEATS, held_out=other)[0]).flatten(1) for other in (False, True))

    def trained(n_heads: int) -> Chorale:
        torch.manual_seed(0)  # the same batches for all
        model = Chorale(n_heads)

        def loss() -> Tensor:
            x = train[torch.randint(len(train), (32,))] + torch.randint(-5, 7, (32, 1))  # in any key
            return F.cross_entropy(model(x[:, :-1])[0].flatten(0, 1), x[:, 1:].flatten())

        descend(model.parameters(), loss, max(70, int(400 * size)), lr=1e-2)
        return model

    models = {n: trained(n) for n in HEADS}
    nats, maps = {}, {}
    with torch.no_grad():
        for n, model in models.items():
            logits, looks = model(held_out[:, :-1])
            nats[n] = float(F.cross_entropy(logits.mT, held_out[:, 1:]))
            maps[n] = by_distance(looks)  # (H, voice, BACK)
    own = {n: each[..., N_VOICES - 1].mean(-1) for n, each in maps.items()}  # (H,) on the voice's own last note

    figure = new_figure(11, 3.6, 90)
    left, right = figure.subfigures(1, 2, width_ratios=(1, 2.6), squeeze=False)[0]
    axes = left.subplots()
    axes.plot(HEADS, list(nats.values()), "o-", color=COLOURS[0])
    axes.set_xscale("log", base=2)
    axes.set_xticks(HEADS, map(str, HEADS))
    axes.set(title="held-out loss", xlabel="heads, with as many weights in all", ylabel="nats a note")
    panels = right.subplots(2, 3, sharex=True, sharey=True).flat
    titles = ["the one head", *(f"head {h + 1} of {SHOWN}" for h in range(SHOWN))]
    for axes, title, each in zip(panels, titles, [*maps[1], *maps[SHOWN]], strict=False):
        shown = axes.imshow(each, cmap="Blues", vmin=0, vmax=0.7, aspect="auto", extent=(0.5, BACK + 0.5, 3.5, -0.5))
        axes.set(title=title, xticks=range(N_VOICES, BACK + 1, N_VOICES))
        axes.set_yticks(range(N_VOICES), VOICES)
    right.axes[-1].set_axis_off()
    right.colorbar(shown, ax=right.axes, label="weight")
    right.supxlabel("notes before the one that is asked; 4: its own voice, a beat ago", fontsize=10)
    right.supylabel("voice that is asked", fontsize=10)
    one, several = HEADS[0], HEADS[-1]
    share = [f"{each.min():.0%} to {each.max():.0%}" if len(each) > 1 else f"{each[0]:.0%}" for each in own.values()]
    differ = ["-" if n == 1 else f"{apart(each):.2f}" for n, each in maps.items()]
    return Finding(
        ("heads", "width of each", "nats", "weight on the voice's last note", "weight apart"),
        [(str(n), str(WIDTH // n), f"{nats[n]:.2f}", *cells) for n, *cells in zip(HEADS, share, differ, strict=True)],
        f"One head has {nats[one]:.2f} nats a note of held-out hymns, {several} heads of as many weights in all "
        f"{nats[several]:.2f}; how often each voice sings a pitch gives {by_voice(train, held_out):.2f}. On the last "
        f"note of the voice lie {share[0]} of the one head's weight; of {SHOWN} heads' {share[HEADS.index(SHOWN)]}.",
        figure,
        ("model/transformer.py", "analysis/heads.py", "model/readout.py"),
    )
