"""Backpropagation through time: how much a note counts for the error many beats later, in three recurrent cells.

    tanh RNN  h_t = tanh(W x_t + U h_{t-1})                                                       Elman 1990
    GRU       h_t = (1 - z_t) n_t + z_t h_{t-1},  n_t = tanh(W x_t + r_t U h_{t-1})               Cho et al. 2014
    LSTM      h_t = o_t tanh(c_t),  c_t = f_t c_{t-1} + i_t tanh(W x_t + U h_{t-1})               Gers et al. 2000

The gates z, r, o, f and i are sigmoid(W x_t + U h_{t-1}), each with weights of its own. Unrolled, a net is as deep as
its line is long. The chain rule takes the error back one step at a time. For the tanh RNN, with d_t = dL/dh_t,

    d_{t-1} = U^T (1 - h_t^2) d_t,   so   d_0 = U^T (1 - h_1^2) U^T (1 - h_2^2) ... d_T:

a product of T matrices, which vanishes or explodes (Bengio et al. 1994). The LSTM's c_t is a sum: from c_t to
c_{t-1} the straight way multiplies the gradient by f_t alone, and the GRU's by z_t. Both begin at sigmoid(1) = 0.73
and may learn to be 1. Each net learns to name at the end of a soprano line the pitch that it began with.
"""

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from musictx.lessons import Finding
from musictx.lessons.descend import descend
from musictx.lessons.hymns import lines
from musictx.viz.curves import COLOURS
from musictx.viz.figure import new_figure

LENGTH, WIDTH, BATCH, STEPS = 24, 64, 32, 500
LOW, N_PITCHES = 55, 32  # sopranos, moved by up to 3 semitones
Step = Callable[..., tuple[Tensor, ...]]  # W x_t, U h_{t-1} and the states before -> the states, h_t first
BEATS = (4, 8, 16, LENGTH - 1)  # before the last note, for the table


class Net(nn.Module):
    """Pitches (B, T) -> logits (B, N_PITCHES) after the last. `parts` are the gates and the new content of its cell."""

    def __init__(self, step: Step, parts: int, states: int, width: int) -> None:
        super().__init__()
        self.step, self.states = step, states
        self.embed = nn.Embedding(N_PITCHES, WIDTH)
        self.w = nn.Linear(WIDTH, parts * width)
        self.u = nn.Linear(width, parts * width, bias=False)
        self.head = nn.Linear(width, N_PITCHES)
        for u in self.u.weight.chunk(parts):
            nn.init.orthogonal_(u)  # the best that a tanh RNN can begin with: U itself shortens no gradient
        nn.init.zeros_(self.w.bias)

    def unroll(self, x: Tensor) -> Tensor:
        """x (B, T, C) -> h_T (B, D)."""
        state = (x.new_zeros(len(x), self.u.in_features),) * self.states
        for wx in self.w(x).unbind(1):  # (B, parts · D)
            state = self.step(wx, self.u(state[0]), *state)
        return state[0]

    def forward(self, pitches: Tensor) -> Tensor:
        logits: Tensor = self.head(self.unroll(self.embed(pitches)))
        return logits


def rnn(wx: Tensor, uh: Tensor, h: Tensor) -> tuple[Tensor]:
    return (torch.tanh(wx + uh),)


def gru(wx: Tensor, uh: Tensor, h: Tensor) -> tuple[Tensor]:
    (wr, wz, wn), (ur, uz, un) = wx.chunk(3, -1), uh.chunk(3, -1)
    r, z = torch.sigmoid(wr + ur), torch.sigmoid(wz + uz + 1)
    return ((1 - z) * torch.tanh(wn + r * un) + z * h,)


def lstm(wx: Tensor, uh: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    i, f, g, o = (wx + uh).chunk(4, -1)
    c = torch.sigmoid(f + 1) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


CELLS: dict[
    str, tuple[Step, int, int, int]
] = {  # step, parts, states, and the width at which all three have as many weights
    "tanh RNN": (rnn, 1, 1, 152),
    "GRU": (gru, 3, 1, 76),
    "LSTM": (lstm, 4, 2, 64),
}


def backward(net: Net, x: Tensor, d: Tensor) -> Tensor:
    """The chain rule for the tanh RNN: x (B, T, C) and d = dL/dh_T (B, D) -> dL/dx (B, T, C)."""
    states = [net.unroll(x[:, : t + 1]) for t in range(x.shape[1])]  # h_1 … h_T, (B, D) each
    found = []
    for h in reversed(states):
        d = (1 - h**2) * d  # through the tanh
        found.append(d @ net.w.weight)  # to x_t
        d = d @ net.u.weight  # to h_{t-1}
    return torch.stack(found[::-1], 1)


def gradients(net: Net, pitches: Tensor) -> NDArray[np.float64]:
    """(T,) the mean length of d(v · h_T)/dx_t over lines, the last note first and as 1; v is a random direction."""
    x = net.embed(pitches).detach().requires_grad_()  # (B, T, C)
    h = net.unroll(x)  # (B, D)
    v = F.normalize(torch.randn_like(h), dim=-1)
    (gradient,) = torch.autograd.grad(h, x, v)
    length = gradient.norm(dim=-1).mean(0).flip(0).double()
    share: NDArray[np.float64] = (length / length[0]).numpy()
    return share


def lesson(size: float = 1.0) -> Finding:
    train, held_out = (torch.from_numpy(lines(LENGTH, held_out=each)) - LOW for each in (False, True))  # (N, T)
    most = float(held_out[:, 0].bincount().max()) / len(held_out)
    rows, curves = [], {}
    for name, cell in CELLS.items():
        net = Net(*cell)
        gradient = gradients(net, held_out)

        def loss(net: Net = net) -> Tensor:
            pitches = train[torch.randint(len(train), (BATCH,))] + torch.randint(-3, 4, (BATCH, 1))  # (B, T)
            return F.cross_entropy(net(pitches), pitches[:, 0])

        losses = descend(net.parameters(), loss, max(130, int(STEPS * size)))
        with torch.no_grad():
            right = float((net(held_out).argmax(-1) == held_out[:, 0]).float().mean())
        weights = net.w.weight.numel() + net.u.weight.numel()
        rows.append((name, f"{weights:,}", *(f"{gradient[n]:.2g}" for n in BEATS), f"{right:.0%}"))
        curves[name] = gradient, np.convolve(losses, np.ones(20) / 20, "valid"), right

    figure = new_figure(9, 3.5, 80)
    reach, learning = figure.subplots(1, 2)
    for (name, (gradient, nats, right)), colour in zip(curves.items(), COLOURS, strict=False):
        reach.plot(gradient, "o-", ms=3.5, color=colour, label=name)
        learning.plot(np.arange(len(nats)) + 20, nats, color=colour, label=f"{name}: {right:.0%} right")
    title = "gradient from the end to each note, untrained"
    reach.set(title=title, xlabel="beats before the end", ylabel="length (to the last note: 1)", yscale="log")
    title = "training to name the first note at the end"
    learning.set(title=title, xlabel="step", ylabel="loss (nats, mean of 20 steps)", ylim=(0, None))
    for axes in (reach, learning):
        axes.legend(frameon=False)
        axes.grid(axis="y", color="#ececec", lw=0.8)
    far = ", ".join(f"{gradient[-1]:.1g} in the {name}" for name, (gradient, *_) in curves.items())
    named = ", ".join(f"the {name} {right:.0%}" for name, (*_, right) in curves.items())
    return Finding(
        ("cell", "weights", *(f"gradient, {n} beats" for n in BEATS), "first notes named"),
        rows,
        f"The gradient to the first note is a fraction of that to the last: {far}. After the same training, of the "
        f"first notes of held-out lines {named}; the most frequent pitch would be right in {most:.0%}.",
        figure,
        ("model/cells.py", "model/recurrent.py"),
    )
