"""A residual net of convolutions (He et al. 2016) on a piano roll, whose gates open channels (squeeze and excitation,
Hu et al. 2018).

It reads music and continues none: `objective=classify` and `classify_notes` train it. A note's answer comes from its
place in the map of each block (hypercolumns, Hariharan et al. 2015), and from the mean of the last map.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from musictx.errors import ConfigError
from musictx.model.readout import each_reading
from musictx.model.roll import FRAMES, N_PIANO, Roll
from musictx.model.sizes import check_numbers
from musictx.setting import setting

GROUPS, SQUEEZE = 4, 4  # groups of channels with a norm each; how many times narrower a gate is inside


@dataclass(frozen=True)
class SEResNetConfig:
    """The model to train: a residual net of convolutions on a piano roll, for objective=classify or classify_notes.

    Raises ConfigError for impossible sizes.
    """

    vocab_size: int
    d_model: int = setting(128, "channels of the last block; each block has twice those of the one before")
    n_layers: int = setting(3, "residual blocks; each has half the keys and frames of the one before")
    gates: bool = setting(True, "each block opens its channels by what the whole picture has (squeeze and excitation)")
    dropout: float = setting(0.1, "share dropped in training, before the answers")
    n_frames: int = setting(256, FRAMES)

    def __post_init__(self) -> None:
        check_numbers(self)
        if self.d_model % (least := GROUPS * 2 ** (self.n_layers - 1)):
            raise ConfigError("d_model", got=self.d_model, allowed=f"a multiple of {least}")


class SqueezeExcitation(nn.Module):
    """Scales each channel of (B, C, P, N) by a share that depends on the means of all channels."""

    def __init__(self, c: int) -> None:
        super().__init__()
        self.squeeze, self.excite = nn.Linear(c, c // SQUEEZE), nn.Linear(c // SQUEEZE, c)

    def shares(self, x: Tensor) -> Tensor:
        """(B, C, P, N) -> (B, C), between 0 and 1."""
        return torch.sigmoid(self.excite(F.relu(self.squeeze(x.mean((2, 3))))))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.shares(x)[..., None, None]


class Residual(nn.Module):
    """Two convolutions, gated and added to a plain one: (B, C_in, P, N) -> (B, C, P / stride, N / stride)."""

    def __init__(self, c_in: int, c: int, stride: int, gates: bool) -> None:
        super().__init__()
        first, second = nn.Conv2d(c_in, c, 3, stride, 1, bias=False), nn.Conv2d(c, c, 3, 1, 1, bias=False)
        self.near = nn.Sequential(first, nn.GroupNorm(GROUPS, c), nn.ReLU(), second, nn.GroupNorm(GROUPS, c))
        self.gate = SqueezeExcitation(c) if gates else nn.Identity()
        self.shortcut = nn.Conv2d(c_in, c, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.shortcut(x) + self.gate(self.near(x)))


class SEResNet(nn.Module):
    """ids (B, T) -> logits (B, T, V); only those of labels mean something."""

    cycle = 1

    def __init__(self, config: SEResNetConfig) -> None:
        super().__init__()
        self.config, c = config, config.d_model
        widths = [c >> n for n in reversed(range(config.n_layers))]
        self.roll = Roll(config.vocab_size, config.n_frames)
        self.stem = nn.Conv2d(4, widths[0], (3, 7), (1, 4), (1, 3))  # keys and frames
        pairs = zip([widths[0], *widths], widths, strict=False)
        self.blocks = nn.ModuleList([Residual(*pair, 1 + (n > 0), config.gates) for n, pair in enumerate(pairs)])
        self.read = nn.ModuleList([nn.Linear(width, c, bias=False) for width in widths])
        self.norm, self.dropout = nn.LayerNorm(c), nn.Dropout(config.dropout)
        self.head = nn.Linear(c, config.vocab_size)

    def forward(self, ids: Tensor) -> Tensor:
        picture, notes = self.roll(ids), []
        height = torch.linspace(-1, 1, N_PIANO, device=ids.device)[:, None]  # which a convolution does not know
        both = torch.cat([picture.roll, picture.roll * height], 1)  # (B, 4, 88, F)
        x = F.relu(self.stem(both.to(self.stem.weight.dtype)))
        for block, read in zip(self.blocks, self.read, strict=True):
            x = block(x)
            notes.append(read(picture.at_notes(x)))  # (B, T, C)
        x = self.norm(x.mean((2, 3))[:, None] + torch.stack(notes).sum(0))
        logits: Tensor = self.head(self.dropout(F.gelu(x)))
        return logits


@torch.inference_mode()
def read_channels(model: SEResNet, ids: Tensor) -> list[Tensor]:
    """ids (B, T) -> of each block (B, C): how open its gate is for each channel."""
    found: list[Tensor] = []
    with each_reading(model, SqueezeExcitation, lambda gate, given: found.append(gate.shares(given[0]))):
        model(ids)
    return found
