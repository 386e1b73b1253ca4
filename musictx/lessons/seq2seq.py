"""Encoder and decoder with one fixed vector between them, beside attention: what fits through, against the length.

    h_1 ... h_S = GRU(x_1 ... x_S) in both directions,   s_0 = tanh(W h),   s_t = GRU(s_{t-1}, y_{t-1})
    fixed vector  c = h, the last state of each direction, the same at each t                     Cho et al. 2014
    attention     c_t = sum_j a_tj h_j,   a_tj = softmax_j(v · tanh(W s_t + U h_j))            Bahdanau et al. 2015
    p(y_t) = softmax(V tanh(C [s_t, c_t]))                                                        Luong et al. 2015

The source is a soprano line, the target a second voice to it, a third below in the hymn's key. The net is not told the
key, and must hear it. The vector has as many numbers for a long line as for a short one. Attention looks up each note.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from musictx.lessons import Finding
from musictx.lessons.descend import descend
from musictx.lessons.hymns import thirds
from musictx.viz.curves import COLOURS
from musictx.viz.figure import FAINT, new_figure

WIDTH, BATCH, STEPS = 64, 32, 600
LENGTHS, LONGER = (4, 8, 16), 24  # beats: of training, and none of training
LOW, N_PITCHES = 48, 44  # both voices, moved by up to 4 semitones


def sines(length: int) -> Tensor:
    """(T, C) the place of each note, so that no net has to count."""
    angle = torch.arange(length)[:, None] * 100.0 ** (-torch.arange(WIDTH // 2) / (WIDTH // 2))
    return torch.cat([angle.sin(), angle.cos()], -1)


class Harmoniser(nn.Module):
    """A source (B, S) and a target (B, T) -> logits (B, T, V)."""

    def __init__(self, attends: bool) -> None:
        super().__init__()
        self.attends = attends
        self.source, self.target = nn.Embedding(N_PITCHES, WIDTH), nn.Embedding(N_PITCHES + 1, WIDTH)
        self.encoder = nn.GRU(WIDTH, WIDTH // 2, batch_first=True, bidirectional=True)
        self.begin = nn.Linear(WIDTH, WIDTH)
        self.decoder = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.w, self.u = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(2))
        self.v = nn.Linear(WIDTH, 1, bias=False)
        self.join, self.head = nn.Linear(2 * WIDTH, WIDTH), nn.Linear(WIDTH, N_PITCHES)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        h, last = self.encoder(self.source(x) + sines(x.shape[1]))  # (B, S, C), (2, B, C / 2)
        whole = last.transpose(0, 1).flatten(1)  # (B, C)
        before = F.pad(y[:, :-1], (1, 0), value=N_PITCHES)  # (B, T) the notes so far, after a beginning
        s, _ = self.decoder(self.target(before) + sines(y.shape[1]), torch.tanh(self.begin(whole))[None])  # (B, T, C)
        c = self.weights(s, h) @ h if self.attends else whole[:, None].expand_as(s)  # (B, T, C)
        logits: Tensor = self.head(torch.tanh(self.join(torch.cat([s, c], -1))))
        return logits

    def weights(self, s: Tensor, h: Tensor) -> Tensor:
        """(B, T, S) how much each state of the decoder looks at each of the encoder."""
        scores: Tensor = self.v(torch.tanh(self.w(s)[:, :, None] + self.u(h)[:, None]))[..., 0]
        return scores.softmax(-1)


def train(attends: bool, steps: int) -> Harmoniser:
    torch.manual_seed(0)  # both begin alike, and hear the same lines in the same order
    net = Harmoniser(attends)
    music = [[voice - LOW for voice in thirds(length, held_out=False)] for length in LENGTHS]

    def loss() -> Tensor:
        sources, targets = music[int(torch.randint(len(music), ()))]
        rows, moved = torch.randint(len(sources), (BATCH,)), torch.randint(-4, 5, (BATCH, 1))
        target = targets[rows] + moved
        return F.cross_entropy(net(sources[rows] + moved, target).flatten(0, 1), target.flatten())

    descend(net.parameters(), loss, steps, lr=1e-2)
    return net


@torch.no_grad()
def write(net: Harmoniser, x: Tensor) -> Tensor:
    """(B, T) the likeliest notes, each after those that it wrote itself."""
    y = torch.zeros_like(x)
    for t in range(x.shape[1]):
        y[:, t] = net(x, y)[:, t].argmax(-1)
    return y


@torch.no_grad()
def lesson(size: float = 1.0) -> Finding:
    with torch.enable_grad():
        nets = [train(attends, max(120, int(STEPS * size))) for attends in (False, True)]
    rows, wrong, guess = [], [], []
    for length in (*LENGTHS, LONGER):
        x, y = (voice - LOW for voice in thirds(length, held_out=True))
        wrong.append([float((write(net, x) != y).float().mean()) for net in nets])
        guess.append(1 - float((x - y == 3).float().mean()))
        name = f"{length} beats" + ", never trained" * (length == LONGER)
        rows.append((name, str(len(y)), *(f"{share:.0%}" for share in (*wrong[-1], guess[-1]))))

    figure = new_figure(7, 4, 95)
    axes = figure.subplots()
    lengths = (*LENGTHS, LONGER)
    for n, name in enumerate(("one fixed vector", "attention")):
        axes.plot(lengths, [share[n] for share in wrong], "o-", color=COLOURS[n], label=name)
    axes.plot(lengths, guess, "--", color=FAINT, label="always a minor third below")
    axes.axvspan(LENGTHS[-1] + 1, LONGER + 1, color=FAINT, alpha=0.15, lw=0)
    axes.annotate("longer than\nin training", (LONGER, 0.02), ha="center", va="bottom", fontsize=9)
    axes.set(title="a second voice for a held-out soprano", xlabel="length (beats)", ylabel="wrong notes (share)")
    axes.set(ylim=(-0.02, 0.8), xticks=lengths)
    axes.legend(frameon=False, loc="upper left")
    (short, _), (fixed, attention), (fixed_longer, attention_longer) = wrong[0], wrong[-2], wrong[-1]
    return Finding(
        ("length", "lines", "fixed vector", "attention", "minor thirds only"),
        rows,
        f"Through one vector {short:.0%} of the notes are wrong at {LENGTHS[0]} beats, {fixed:.0%} at {LENGTHS[-1]}, "
        f"with attention {wrong[0][1]:.0%} and {attention:.0%}. At {LONGER} beats, longer than in training, they are "
        f"{fixed_longer:.0%} and {attention_longer:.0%}. A minor third below each note is wrong in {guess[-2]:.0%} of "
        f"{LENGTHS[-1]} beats.",
        figure,
        ("model/encoder_decoder.py", "objectives/voices.py"),
    )
