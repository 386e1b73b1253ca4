"""Four scores of attention, and where each looks in a melody for each note of its second voice.

    additive   v · tanh(W s_t + U h_j)     Bahdanau et al. 2015
    dot        s_t · h_j                   Luong et al. 2015
    general    s_t · W h_j                 Luong et al. 2015
    scaled     s_t · h_j / sqrt(C)         Vaswani et al. 2017
    a_tj = softmax_j(score(s_t, h_j)),     c_t = sum_j a_tj h_j

s_t is the decoder's state before it writes the note t, h_j the encoder's state at note j of the source. Both know
their beat. The weights a_tj are an alignment, which nobody shows to the net: the voice to write is a third below the
soprano, in the hymn's key, so it should look at the soprano's note of the same beat.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from musictx.lessons import Finding
from musictx.lessons.descend import descend
from musictx.lessons.hymns import thirds
from musictx.lessons.seq2seq import LOW, N_PITCHES, WIDTH, sines
from musictx.viz.figure import new_figure

LENGTH, BATCH, STEPS = 8, 16, 400
SCORES = ("additive", "dot", "general", "scaled")


class Score(nn.Module):
    """States s (B, T, C) and h (B, S, C) -> scores (B, T, S)."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        if name == "additive":
            self.w, self.u = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(2))
            self.v = nn.Linear(WIDTH, 1, bias=False)
        if name == "general":
            self.w = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, s: Tensor, h: Tensor) -> Tensor:
        if self.name == "additive":
            scores: Tensor = self.v(torch.tanh(self.w(s)[:, :, None] + self.u(h)[:, None]))[..., 0]
            return scores
        if self.name == "general":
            h = self.w(h)
        return s @ h.mT / (math.sqrt(WIDTH) if self.name == "scaled" else 1)


class Aligner(nn.Module):
    """A source (B, S) and a target (B, T) -> logits (B, T, V) and the alignment (B, T, S)."""

    def __init__(self, score: str) -> None:
        super().__init__()
        self.source, self.target = nn.Embedding(N_PITCHES, WIDTH), nn.Embedding(N_PITCHES + 1, WIDTH)
        self.encoder = nn.GRU(WIDTH, WIDTH // 2, batch_first=True, bidirectional=True)
        self.decoder = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.join, self.head = nn.Linear(2 * WIDTH, WIDTH), nn.Linear(WIDTH, N_PITCHES)
        self.score = Score(score)  # last, so that all else begins alike

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        h, _ = self.encoder(self.source(x) + sines(x.shape[1]))  # (B, S, C)
        before = F.pad(y[:, :-1], (1, 0), value=N_PITCHES)  # (B, T) the notes so far, after a beginning
        s, _ = self.decoder(self.target(before) + sines(y.shape[1]))  # (B, T, C)
        a = self.score(s, h).softmax(-1)  # (B, T, S)
        return self.head(torch.tanh(self.join(torch.cat([s, a @ h], -1)))), a


def train(score: str, steps: int) -> Aligner:
    torch.manual_seed(0)  # all begin alike but for the score
    net, (sources, targets) = Aligner(score), (voice - LOW for voice in thirds(LENGTH, held_out=False))

    def loss() -> Tensor:
        rows, moved = torch.randint(len(sources), (BATCH,)), torch.randint(-4, 5, (BATCH, 1))
        target = targets[rows] + moved
        return F.cross_entropy(net(sources[rows] + moved, target)[0].flatten(0, 1), target.flatten())

    descend(net.parameters(), loss, steps, lr=1e-2)
    return net


@torch.no_grad()
def write(net: Aligner, x: Tensor) -> Tensor:
    """(B, T) the likeliest notes, each after those that it wrote itself."""
    y = torch.zeros_like(x)
    for t in range(x.shape[1]):
        y[:, t] = net(x, y)[0][:, t].argmax(-1)
    return y


@torch.no_grad()
def lesson(size: float = 1.0) -> Finding:
    x, y = (voice - LOW for voice in thirds(LENGTH, held_out=True))  # (N, T) each
    rows: list[tuple[str, ...]] = []
    maps, same, wrong = [], [], []
    for name in SCORES:
        with torch.enable_grad():
            net = train(name, max(60, int(STEPS * size)))
        _, a = net(x, y)
        same.append(float(a.diagonal(dim1=1, dim2=2).mean()))
        near = float((a.triu(-1) - a.triu(2)).sum(-1).mean())
        wrong.append(float((write(net, x) != y).float().mean()))
        maps.append(a.mean(0))
        weights = sum(p.numel() for p in net.score.parameters())
        rows.append((name, f"{weights:,}", f"{same[-1]:.2f}", f"{near:.2f}", f"{wrong[-1]:.0%}"))

    figure = new_figure(11, 3.3, 90)
    panels = figure.subplots(1, len(SCORES), sharey=True)
    for axes, name, each, weight in zip(panels, SCORES, maps, same, strict=True):
        image = axes.imshow(each, vmin=0, vmax=1, cmap="Blues", extent=(0.5, LENGTH + 0.5, LENGTH + 0.5, 0.5))
        axes.set(title=f"{name}: {weight:.0%} on the same beat", xlabel="soprano's beat", xticks=(1, 4, 8))
        axes.title.set_fontsize(10)
    panels[0].set(ylabel="second voice's beat", yticks=(1, 4, 8))
    figure.colorbar(image, ax=panels, label="weight (mean of held-out lines)")
    found = [f"{name} {weight:.0%}" for name, weight in zip(SCORES, same, strict=True)]
    minor = 1 - float((x - y == 3).float().mean())
    return Finding(
        ("score", "weights of its own", "on the same beat", "within a beat", "wrong notes"),
        rows,
        f"Nobody told the nets where to look. The share of their weight on the same beat is {', '.join(found)}; even "
        f"weights would have {1 / LENGTH:.0%}. Of their notes {min(wrong):.0%} to {max(wrong):.0%} are wrong; of minor "
        f"thirds below each note, {minor:.0%}. States of a GRU lie between -1 and 1: scaled scores, at most "
        f"{math.sqrt(WIDTH):.0f}, leave the alignment softer than dot products, at most {WIDTH}.",
        figure,
        ("model/encoder_decoder.py", "model/attention/plain.py"),
    )
