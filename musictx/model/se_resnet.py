"""A residual net of convolutions (He et al. 2016) on a piano roll, whose gates open channels (squeeze and excitation,
Hu et al. 2018).

It reads music and continues none: `objective=classify` and `classify_notes` train it. A note's answer comes from its
place in the map of each stage (hypercolumns, Hariharan et al. 2015), and from the mean of the last map.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from musictx.errors import ConfigError
from musictx.model.readout import each_reading
from musictx.model.roll import FRAMES, N_PIANO, Answers, Roll, check_frames
from musictx.model.sizes import check_shares, check_sizes
from musictx.setting import setting

STAGES, GROUPS, SQUEEZE = 3, 4, 4  # groups of channels with a norm each; how much narrower a gate is inside
STEM, STEM_STRIDE = (3, 7), (1, 4)  # keys and frames of the first convolution


@dataclass(frozen=True)
class SEResNetConfig:
    """The model to train: a residual net of convolutions on a piano roll, for objective=classify or classify_notes.

    Raises ConfigError for impossible sizes.
    """

    vocab_size: int
    d_model: int = setting(128, "channels of the last of three stages; each stage has twice those of the one before")
    n_blocks: int = setting(1, "residual blocks in a stage")
    gates: bool = setting(True, "each block opens its channels by what the whole picture has (squeeze and excitation)")
    dropout: float = setting(0.1, "share dropped in training, before the answers")
    n_frames: int = setting(256, FRAMES)

    def __post_init__(self) -> None:
        check_sizes(self, "vocab_size", "d_model", "n_blocks")
        check_shares(self, "dropout")
        check_frames(self.n_frames)
        if self.d_model % (least := GROUPS * 2 ** (STAGES - 1)):
            raise ConfigError("d_model", got=self.d_model, allowed=f"a multiple of {least}")


class Gate(nn.Module):
    """Scales each channel of (B, C, P, N) by a share that depends on the means of all channels."""

    def __init__(self, c: int) -> None:
        super().__init__()
        self.squeeze, self.excite = nn.Linear(c, c // SQUEEZE), nn.Linear(c // SQUEEZE, c)

    def shares(self, x: Tensor) -> Tensor:
        """(B, C, P, N) -> (B, C), between 0 and 1."""
        return self.excite(F.relu(self.squeeze(x.mean((2, 3))))).sigmoid()  # type: ignore[no-any-return]

    def forward(self, x: Tensor) -> Tensor:
        return x * self.shares(x)[..., None, None]


class Residual(nn.Module):
    """Two convolutions, whose gated sum with the input, or with a convolution of it, is (B, C, P, N)."""

    def __init__(self, c_in: int, c: int, stride: int, gates: bool) -> None:
        super().__init__()
        self.near_1, self.norm_1 = nn.Conv2d(c_in, c, 3, stride, 1, bias=False), nn.GroupNorm(GROUPS, c)
        self.near_2, self.norm_2 = nn.Conv2d(c, c, 3, 1, 1, bias=False), nn.GroupNorm(GROUPS, c)
        self.gate = Gate(c) if gates else nn.Identity()
        self.shortcut = nn.Identity() if (c_in, stride) == (c, 1) else nn.Conv2d(c_in, c, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm_2(self.near_2(F.relu(self.norm_1(self.near_1(x)))))
        return F.relu(self.shortcut(x) + self.gate(y))


class SEResNet(nn.Module):
    """ids (B, T) -> logits (B, T, V); only those of labels mean something."""

    cycle = 1

    def __init__(self, config: SEResNetConfig) -> None:
        super().__init__()
        self.config, c, first = config, config.d_model, config.d_model >> (STAGES - 1)
        self.roll = Roll(config.vocab_size, config.n_frames)
        self.stem = nn.Conv2d(2, first, STEM, STEM_STRIDE, (STEM[0] // 2, STEM[1] // 2))
        self.height = nn.Parameter(torch.zeros(first, N_PIANO, 1))  # a convolution does not know how high it is
        self.stages, self.read, before = nn.ModuleList(), nn.ModuleList(), first
        for stage in range(STAGES):
            width, stride = first << stage, 1 + (stage > 0)
            more = [Residual(width, width, 1, config.gates) for _ in range(config.n_blocks - 1)]
            self.stages.append(nn.Sequential(Residual(before, width, stride, config.gates), *more))
            self.read.append(nn.Linear(width, c, bias=False))
            before = width
        self.dropout, self.answers = nn.Dropout(config.dropout), Answers(c, config.vocab_size)

    def forward(self, ids: Tensor) -> Tensor:
        picture = self.roll(ids)
        x = F.relu(self.stem(picture.roll) + self.height)
        notes = torch.zeros((), device=ids.device)
        for stage, read in zip(self.stages, self.read, strict=True):
            x = stage(x)
            notes = notes + read(picture.at_notes(x))  # (B, T, C)
        logits: Tensor = self.answers(self.dropout(x.mean((2, 3))), self.dropout(notes))
        return logits


@torch.inference_mode()
def read_channels(model: SEResNet, ids: Tensor) -> list[Tensor]:
    """ids (B, T) -> of each block (B, C): how open its gate is for each channel."""
    found: list[Tensor] = []
    with each_reading(model, Gate, lambda gate, given: found.append(gate.shares(given[0]))):
        model(ids)
    return found
