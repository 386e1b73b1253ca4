"""Attention as a convolution whose kernel depends on its input; dilated convolutions; and both joined.

    convolution   y_i = sum_d W_d x_(i - d), the same weights at every note
    attention     y_i = sum_d w_i(d) V x_(i - d), w_i = softmax_d(q_i · k_(i - d)): a kernel for each note, as long as
                  the past. If scores depend on d alone, it is a convolution (Cordonnier et al. 2020).
    dilated       W_0 x_i + W_1 x_(i - r) with r = 1, 2, 4, …: L layers reach 2^L - 1 notes back (van den Oord et al.
                  2016), so the path between two notes is log2 of their distance; in attention it is 1
    joined        a short convolution before attention: each key says what stood before its note, so a head finds what
                  followed last time (So et al. 2021; Olsson et al. 2022). One layer of attention alone, without
                  positions, knows which notes came, not their order

The music: a line of a hymn returns after 1 to 7 other notes. A convolution has fixed distances.
"""

import math
from functools import partial
from itertools import count, product
from timeit import repeat

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from musictx.lessons import Finding
from musictx.lessons.descend import descend
from musictx.lessons.hymns import lines
from musictx.viz.curves import COLOURS, MARKERS
from musictx.viz.figure import new_figure

KINDS, LINE, BETWEEN, WIDTH = ("convolution", "dilated", "attention", "joined"), 8, 7, 48


class Convolution(nn.Module):
    """W_0 x_i + W_1 x_(i - r) of x (B, T, C)."""

    def __init__(self, r: int) -> None:
        super().__init__()
        self.r, self.now, self.before = r, nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        past = F.pad(x, (0, 0, self.r, 0))[:, : x.shape[1]]  # zeros before the beginning
        y: Tensor = self.now(x) + self.before(past)
        return y


class Attention(nn.Module):
    """One causal head without positions."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        ahead = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        scores = (q @ k.mT / math.sqrt(WIDTH)).masked_fill(ahead, -math.inf)
        self.kernels = scores.softmax(-1)  # (B, T, T), row i is the kernel of note i
        y: Tensor = self.out(self.kernels @ v)
        return y


def layer(kind: str, n: int) -> nn.Module:
    """Layer n of a stack, n from 0."""
    if kind == "attention" or (kind == "joined" and n > 0):
        return Attention()
    return Convolution(2**n if kind == "dilated" else 1)


class Melody(nn.Module):
    """Pitches (B, T) -> logits (B, T, 128) of the next."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.notes, self.head = nn.Embedding(128, WIDTH), nn.Linear(WIDTH, 128)
        layers = [layer(kind, n) for n in range(4)]
        if kind in ("attention", "joined"):  # as many weights; a shift of 0 keeps each note by itself
            layers = [Convolution(int(kind == "joined")), Attention(), Convolution(0)]
        self.layers = nn.ModuleList(layers)

    def forward(self, pitches: Tensor) -> Tensor:
        x = self.notes(pitches)  # (B, T, C)
        for layer in self.layers:
            x = x + F.relu(layer(x))
        logits: Tensor = self.head(x)
        return logits


def tunes(lines_of_hymns: Tensor, n: int, between: int) -> Tensor:
    """(n, 2 LINE + between): a line, notes of another one, the line again, in any key."""
    line, other = (lines_of_hymns[torch.randint(len(lines_of_hymns), (n,))] for _ in range(2))
    return torch.cat([line, other[:, :between], line], 1) + torch.randint(-5, 7, (n, 1))


@torch.no_grad()
def nats(model: Melody, held_out: Tensor) -> tuple[float, ...]:
    """A note, when the line is new and when it returns; neither counts the line's first note."""
    torch.manual_seed(1)  # the same tunes for all
    found = []
    for between in range(1, BETWEEN + 1, 2):
        x = tunes(held_out, 128, between)
        each = F.cross_entropy(model(x[:, :-1]).mT, x[:, 1:], reduction="none")  # (B, T - 1)
        found.append((each[:, : LINE - 1].mean(), each[:, 1 - LINE :].mean()))
    return tuple(torch.tensor(found).mean(0).tolist())


@torch.no_grad()
def kernel(model: Melody, held_out: Tensor, between: int) -> Tensor:
    """(LINE + between + 1,): the mean weight of attention on each distance, at the notes that return."""
    model(tunes(held_out, 128, between))
    n, look = LINE + between, model.layers[1]
    assert isinstance(look, Attention)
    found = look.kernels.mean(0)  # (T, T)
    return torch.stack([found[i, i - n : i + 1].flip(0) for i in range(n, n + LINE - 1)]).mean(0)


def path(kind: str, distance: int) -> int:
    """How many layers until the gradient of a note reaches the one `distance` before it."""
    y = x = torch.randn(1, distance + 1, WIDTH, dtype=torch.float64, requires_grad=True)
    for n in count(1):
        y = layer(kind, n - 1).double()(y)
        (gradient,) = torch.autograd.grad(y[0, -1].sum(), x, retain_graph=True)
        if gradient[0, 0].any():
            break
    return n


def lesson(size: float = 1.0) -> Finding:
    train, held_out = (torch.from_numpy(lines(LINE, held_out=other)) for other in (False, True))

    def trained(kind: str) -> Melody:
        torch.manual_seed(0)  # the same tunes for all
        model = Melody(kind)

        def loss() -> Tensor:
            x = tunes(train, 32, int(torch.randint(1, BETWEEN + 1, ())))
            return F.cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())

        descend(model.parameters(), loss, max(115, int(500 * size)), lr=1e-2)
        return model

    models = {kind: trained(kind) for kind in KINDS}
    loss_of = {kind: nats(model, held_out) for kind, model in models.items()}
    distances, lengths = (1, 3, 7, 15, 31), (256, 1024, 4096) if size > 0.5 else (256, 1024)
    paths = {kind: [path(kind, d) for d in distances] for kind in KINDS}
    times: dict[str, list[float]] = {"convolution": [], "attention": []}
    for kind, length in product(times, lengths):
        run = partial(layer(kind, 0), torch.randn(1, length, WIDTH))
        times[kind].append(1000 * min(repeat(run, number=1, repeat=3)))

    figure = new_figure(11, 3.3, 82)
    bars, kernels, steps, clocks = figure.subplots(1, 4, width_ratios=(1.3, 1.3, 1, 1))
    for n, label in enumerate(("new", "it returns")):
        at = torch.arange(len(KINDS)) - 0.2 + 0.4 * n
        bars.bar(at, [each[n] for each in loss_of.values()], 0.4, color=COLOURS[n], label=label)
    bars.set_xticks(range(len(KINDS)), KINDS, rotation=25)
    bars.set(title="loss where a line is …", ylabel="nats a note", ylim=(0, 2.7))
    for between, style in ((1, "-"), (6, "--")):
        weight = kernel(models["joined"], held_out, between)
        kernels.plot(weight, style, color=COLOURS[3], label=f"line {LINE + between} notes ago")
    kernels.set(title="joined: where it looks", xlabel="distance in notes", ylabel="weight", ylim=(0, 0.7))
    for kind, colour, marker in zip(KINDS, COLOURS, MARKERS, strict=False):
        steps.plot(distances, paths[kind], marker=marker, color=colour, label=kind)
        if kind in times:
            clocks.plot(lengths, times[kind], marker=marker, color=colour, label=kind)
    steps.set(title="path", xlabel="distance in notes", ylabel="layers")
    clocks.set(title="time of a layer here", xlabel="length in notes", ylabel="milliseconds", yscale="log")
    clocks.set_xscale("log", base=2)
    for axes in figure.axes:
        axes.legend(frameon=False, fontsize=8)
    (_, plain), (_, dilated), (_, alone), (new, joined) = loss_of.values()
    weights = {kind: sum(p.numel() for p in model.parameters()) for kind, model in models.items()}
    return Finding(
        ("layers", "weights", f"layers to {distances[3]} notes ago", "nats, new", "nats, it returns"),
        [(k, f"{weights[k]:,}", str(paths[k][3]), *(f"{x:.2f}" for x in loss_of[k])) for k in KINDS],
        f"Where a line returns, a convolution has {plain:.2f} nats a note, a dilated one {dilated:.2f}, one layer of "
        f"attention {alone:.2f}, both joined {joined:.2f}; where it is new, joined has {new:.2f}. {lengths[-1]} notes "
        f"take {times['convolution'][-1]:.2g} ms in a convolution, {times['attention'][-1]:.0f} in attention.",
        figure,
        ("model/transformer.py", "model/attention/plain.py"),
    )
