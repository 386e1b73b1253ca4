"""What may not be seen: the causal mask, the mask of padding, and why both stand before the softmax.

A model that shall say the next note is asked at all places at once, so the answer of each place is in its input. The
causal mask takes it out: scores of keys ahead become -inf before the softmax, so their weights are exp(-inf) = 0
(Vaswani et al. 2017, section 3.2.3):

    w_ij = softmax_j(q_i · k_j / sqrt(D) + m_ij),   m_ij = 0 for j <= i, -inf for j > i

Then the gradient d y_i / d x_j is exactly zero for every j > i. A mask after the softmax, w_ij [j <= i], is none:
notes ahead still stand in the sum below the fraction. The padding mask does the same for keys that only fill up a row.
A query must keep one key, or its softmax is 0 / 0.
"""

import math

import torch
import torch.nn.functional as F
from matplotlib.colors import LogNorm
from torch import Tensor, nn
from torch.func import jacrev

from musictx.lessons import Finding
from musictx.lessons.descend import descend
from musictx.lessons.hymns import lines
from musictx.viz.curves import COLOURS
from musictx.viz.figure import new_figure

MASKS = ("none", "after the softmax", "before the softmax")
LENGTH, WIDTH, PAD = 16, 32, 0


def attend(q: Tensor, k: Tensor, v: Tensor, mask: str, padding: Tensor | None = None) -> Tensor:
    """(B, T, C) each -> (B, T, C); `padding` (B, T) is True for keys that no query may see."""
    scores = q @ k.mT / math.sqrt(q.shape[-1])  # (B, T, T)
    ahead = torch.ones_like(scores[0], dtype=torch.bool).triu(1)  # (T, T) True for j > i
    if padding is not None:
        scores = scores.masked_fill(padding[:, None], -math.inf)
    if mask == "before the softmax":
        scores = scores.masked_fill(ahead, -math.inf)
    weights = scores.softmax(-1)
    if mask == "after the softmax":
        weights = weights.masked_fill(ahead, 0.0)
    return weights @ v


class NextNote(nn.Module):
    """Pitches (B, T) -> logits (B, T, 128) of the pitch after each: one head of attention beside the note itself."""

    def __init__(self, mask: str) -> None:
        super().__init__()
        self.mask = mask
        self.notes, self.places = nn.Embedding(128, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, 128)

    def look(self, x: Tensor, padding: Tensor | None = None) -> Tensor:
        """(B, T, C) -> (B, T, C)."""
        q, k, v = self.qkv(x).chunk(3, -1)
        return x + attend(q, k, v, self.mask, padding)

    def forward(self, pitches: Tensor, padding: Tensor | None = None) -> Tensor:
        x = self.notes(pitches) + self.places.weight[: pitches.shape[1]]  # (B, T, C)
        logits: Tensor = self.out(self.look(x, padding))
        return logits


def gradients(model: NextNote, pitches: Tensor) -> Tensor:
    """(T, T): the length of d y_i / d x_j, what a place i takes from a place j of one line (T,)."""
    x = (model.notes(pitches) + model.places.weight[: len(pitches)]).detach()  # (T, C)
    jacobian: Tensor = jacrev(lambda x: model.look(x[None])[0])(x)  # (T, C, T, C)
    return jacobian.detach().square().sum((1, 3)).sqrt()


@torch.no_grad()
def with_the_past_alone(model: NextNote, windows: Tensor) -> float:
    """Nats a note where a line ends with the note that is asked, as when music is made."""
    last = [F.cross_entropy(model(windows[:, :t])[:, -1], windows[:, t]) for t in range(1, LENGTH + 1)]
    return float(torch.stack(last).mean())


@torch.no_grad()
def changed_by_padding(model: NextNote, line: Tensor, n: int, masked: bool) -> float:
    """How far the logits of the first n notes move when PAD fills up their row; `line` (LENGTH,)."""
    filled = torch.cat([line[:n], torch.full((LENGTH - n,), PAD)])[None]
    moved = model(filled, filled == PAD if masked else None)[:, :n] - model(line[None, :n])
    return float(moved.abs().max())


def lesson(size: float = 1.0) -> Finding:
    train, held_out = (torch.from_numpy(lines(LENGTH + 1, held_out=other)) for other in (False, True))

    def trained(mask: str) -> tuple[NextNote, list[float]]:
        torch.manual_seed(0)  # the same batches for all
        model = NextNote(mask)

        def loss() -> Tensor:
            x = train[torch.randint(len(train), (32,))] + torch.randint(-5, 7, (32, 1))  # in any key
            return F.cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())

        return model, descend(model.parameters(), loss, max(120, int(600 * size)), lr=1e-2)

    models = {mask: trained(mask) for mask in MASKS}
    maps = {mask: gradients(model, held_out[0, :-1]) for mask, (model, _) in models.items()}
    alone = {mask: with_the_past_alone(model, held_out) for mask, (model, _) in models.items()}
    learned = {mask: sum(losses[-20:]) / 20 for mask, (_, losses) in models.items()}
    ahead = {mask: float(each.triu(1).max()) for mask, each in maps.items()}
    padding = [changed_by_padding(models["none"][0], held_out[0, :-1], 9, masked) for masked in (False, True)]

    figure = new_figure(11, 3.3)
    *left, bars = figure.subplots(1, 4, width_ratios=(1, 1, 1, 1.4))
    top = float(torch.stack([*maps.values()]).max())
    for axes, (mask, each) in zip(left, maps.items(), strict=True):
        shown = axes.imshow(each.where(each > 0, math.nan), cmap="viridis", norm=LogNorm(1e-2, top))
        axes.set(title=f"mask {mask}", xlabel="note j (quarters)")
    left[0].set(ylabel="note i (quarters)", title="no mask")
    figure.colorbar(shown, ax=left, label="gradient d y_i / d x_j", shrink=0.8)
    at = torch.arange(len(MASKS))
    bars.bar(at - 0.2, list(learned.values()), 0.4, color=COLOURS[0], label="in training")
    bars.bar(at + 0.2, list(alone.values()), 0.4, color=COLOURS[1], label="the past alone, held-out")
    bars.set_xticks(at, ["none", "after", "before"])
    bars.set(title="loss", xlabel="mask and softmax", ylabel="nats a note", ylim=(0, 1.3 * max(alone.values())))
    bars.legend(frameon=False, fontsize=8)
    leak, cause = MASKS[1:]
    return Finding(
        ("mask", "gradient from notes ahead", "nats in training", "nats, the past alone"),
        [(m, f"{ahead[m]:.3g}", f"{learned[m]:.2f}", f"{alone[m]:.2f}") for m in MASKS],
        f"Without a mask training reads its answers, {learned['none']:.2f} nats a note; with the past alone it has "
        f"{alone['none']:.2f}. A mask after the softmax leaks: {learned[leak]:.2f} and {alone[leak]:.2f}. Before it, "
        f"{learned[cause]:.2f} and {alone[cause]:.2f}, and the gradient from notes ahead is {ahead[cause]:g}. "
        f"PAD moves the logits of a line by {padding[0]:.1f}, masked by {padding[1]:.0e}, a rounding.",
        figure,
        ("model/attention/plain.py", "model/attention/relative.py", "model/encoder_decoder.py"),
    )
