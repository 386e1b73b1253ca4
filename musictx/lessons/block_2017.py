"""The block of 2017: norms after the sums, which need a warm-up, beside norms before the layers, which need none.

    post-norm (Vaswani et al. 2017, section 3.1):  x = LayerNorm(x + attention(x));  x = LayerNorm(x + MLP(x))
    pre-norm (Xiong et al. 2020):                  x = x + attention(LayerNorm(x));  x = x + MLP(LayerNorm(x))
    MLP(x) = W2 max(0, W1 x + b1) + b2             section 3.3: four times as wide, with ReLU

Before training, the gradient of the last block does not shrink with depth in post-norm; in pre-norm it does (Xiong et
al. 2020, theorem 1), since the sum goes through all blocks untouched. Full steps at once can ruin a deep post-norm
stack. Small ones at first, the warm-up, save it (Vaswani et al. 2017, section 5.3).
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from musictx.lessons import Finding
from musictx.lessons.descend import descend
from musictx.lessons.hymns import lines
from musictx.model import transformer
from musictx.viz.curves import COLOURS
from musictx.viz.figure import FAINT, new_figure

WIDTH, HEADS, LAYERS, NOTES, ROWS = 48, 4, 12, 24, 16
DEPTHS = (2, 4, 8, 16, 32)
RATE, WARM_UP = 3e-3, 0.3  # warm-up: a share of the steps


class Block(nn.Module):
    """x (B, T, C) -> (B, T, C). Its parameters have the names of the toolkit's block."""

    def __init__(self, post: bool) -> None:
        super().__init__()
        self.post = post
        self.norm_1, self.norm_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.project = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def attention(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)  # (B, H, T, D) each
        found = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.project(found.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]

    def mlp(self, x: Tensor) -> Tensor:
        return self.down(self.up(x).relu())  # type: ignore[no-any-return]

    def forward(self, x: Tensor) -> Tensor:
        if self.post:
            x = self.norm_1(x + self.attention(x))
            return self.norm_2(x + self.mlp(x))  # type: ignore[no-any-return]
        x = x + self.attention(self.norm_1(x))
        return x + self.mlp(self.norm_2(x))


class Stack(nn.Module):
    """pitches (B, T) -> logits (B, T, 128) of the next."""

    def __init__(self, post: bool, layers: int = LAYERS) -> None:
        super().__init__()
        self.embed = nn.Embedding(128, WIDTH)  # also the output head (section 3.4)
        self.blocks = nn.Sequential(*(Block(post) for _ in range(layers)))
        self.norm = nn.Identity() if post else nn.LayerNorm(WIDTH)
        for p in self.blocks.parameters():
            if p.dim() == 2:
                nn.init.xavier_uniform_(p)
        nn.init.normal_(self.embed.weight, std=1 / math.sqrt(WIDTH))

    def forward(self, pitches: Tensor) -> Tensor:
        angle = torch.arange(pitches.shape[1])[:, None] / 10_000 ** (torch.arange(0, WIDTH, 2) / WIDTH)
        sines = torch.stack((angle.sin(), angle.cos()), -1).flatten(1)  # (T, C), section 3.5
        x = self.embed(pitches) * math.sqrt(WIDTH) + sines
        return F.linear(self.norm(self.blocks(x)), self.embed.weight)


def nats(model: Stack, notes: Tensor) -> Tensor:
    return F.cross_entropy(model(notes[:, :-1]).flatten(0, 1), notes[:, 1:].flatten())


def quarters(held_out: bool = False) -> Tensor:
    """(N, T + 1) pitches of each quarter note, every voice as a line of its own."""
    return torch.from_numpy(np.concatenate([lines(NOTES + 1, voice, held_out=held_out) for voice in range(4)]))


def first_gradient(post: bool, layers: int, notes: Tensor, draws: int) -> float:
    """The length of the gradient of the last block's MLP before training, a mean over draws of the weights."""
    models = [Stack(post, layers) for _ in range(draws)]
    gradients = list[Tensor]()
    for model in models:
        last = model.blocks[-1].get_parameter("down.weight")
        gradients += torch.autograd.grad(nats(model, notes), last)
    return float(torch.stack(gradients).norm(dim=(1, 2)).mean())


def difference(post: bool) -> float:
    """How far this block is at most from the toolkit's, with the same weights."""
    norm = "post" if post else "pre"
    config = transformer.TransformerConfig(
        128, d_model=WIDTH, n_heads=HEADS, d_ff=4 * WIDTH, dropout=0.0, position="none", mlp="relu", norm=norm
    )
    mine, theirs, x = Block(post), transformer.Block(config, 0), torch.randn(2, NOTES, WIDTH)
    theirs.load_state_dict(mine.state_dict())
    return float((mine(x) - theirs(x, None, torch.arange(NOTES)[None])[0]).abs().max().detach())


def lesson(size: float = 1.0) -> Finding:
    music, held_out, steps = quarters(), quarters(held_out=True), max(16, int(64 * size))
    trainings = {
        "post-norm, no warm-up": (True, RATE, 1),
        "post-norm, no warm-up, a third of the rate": (True, RATE / 3, 1),
        "post-norm, warm-up": (True, RATE, int(WARM_UP * steps)),
        "pre-norm, no warm-up": (False, RATE, 1),
        "pre-norm, warm-up": (False, RATE, int(WARM_UP * steps)),
    }
    often = (music.flatten().bincount(minlength=128) + 1.0).log().log_softmax(0)  # how often each pitch comes
    chance = -float(often[held_out[:, 1:]].mean())
    figure = new_figure(9, 3.4, 80)
    left, right = figure.subplots(1, 2)
    gradients = {
        post: [first_gradient(post, layers, music[:4], max(1, int(8 * size))) for layers in DEPTHS]
        for post in (True, False)
    }
    left.plot(DEPTHS, gradients[True], "o-", color=COLOURS[4], label="post-norm")
    left.plot(DEPTHS, gradients[False], "s-", color=COLOURS[0], label="pre-norm")
    final: dict[str, float] = {}
    rows: list[tuple[str, ...]] = [("how often each pitch comes", "", "", f"{chance:.2f}")]
    colours = (COLOURS[4], COLOURS[3], COLOURS[1], COLOURS[0], COLOURS[5])
    for (name, (post, rate, warm_up)), colour in zip(trainings.items(), colours, strict=True):
        torch.manual_seed(0)  # the same batches, and the same weights at first
        model = Stack(post)

        def loss(model: Stack = model) -> Tensor:
            return nats(model, music[torch.randint(len(music), (ROWS,))])

        losses = descend(model.parameters(), loss, steps, rate, warm_up)
        with torch.no_grad():
            final[name] = float(nats(model, held_out))
        rows.append((name, f"{rate:g}", str(warm_up), f"{final[name]:.2f}"))
        every = max(1, steps // 16)
        means = np.reshape(losses[: steps // every * every], (-1, every)).mean(1)
        right.plot(np.arange(1, len(means) + 1) * every, means, color=colour, label=name)
    right.axhline(chance, color=FAINT, ls="--", label="how often each pitch comes")

    left.set(title="before training", xlabel="blocks", ylabel="gradient of the last block's MLP", ylim=(0, None))
    left.set_xscale("log", base=2)
    left.set_xticks(DEPTHS, [str(depth) for depth in DEPTHS])
    right.set(title=f"training, {LAYERS} blocks", xlabel="step", ylabel="nats a note", ylim=(None, chance + 2.4))
    for axes in (left, right):
        axes.legend(frameon=False, fontsize=8)
    ruined, low, saved, pre, pre_warm = final.values()
    return Finding(
        ("training", "rate", "warm-up steps", "nats a held-out note"),
        rows,
        f"With {DEPTHS[-1]} blocks the first gradient of the last is {gradients[True][-1]:.2f} in post-norm and "
        f"{gradients[False][-1]:.2f} in pre-norm; with {DEPTHS[0]} it is {gradients[True][0]:.2f} and "
        f"{gradients[False][0]:.2f}. Without warm-up post-norm ends at {ruined:.2f} nats a note, with it at "
        f"{saved:.2f}, at a third of the rate at {low:.2f}. Pre-norm ends at {pre:.2f} without warm-up and at "
        f"{pre_warm:.2f} with it. The toolkit's block with the same weights differs by "
        f"{max(difference(True), difference(False)):.0g} at most.",
        figure,
        ("model/transformer.py", "model/settings.py"),
    )
