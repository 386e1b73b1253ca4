"""The vision Transformer (Dosovitskiy et al. 2021) on a piano roll: patches of 8 keys and 8 frames, and a class token.

It reads music and continues none: `objective=classify` and `classify_notes` train it. A transposed convolution makes
cells of patches again, so a note's answer comes from its cell and the class token.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from musictx.model.cache import indices
from musictx.model.encoder import EncoderConfig
from musictx.model.encoder_decoder import EncoderBlock
from musictx.model.readout import each_reading
from musictx.model.roll import FRAMES, N_PIANO, Roll
from musictx.model.transformer import initialise
from musictx.setting import setting

PATCH = 8  # keys and frames
NARROWER = 4  # a cell has so many times fewer channels than a patch


@dataclass(frozen=True)
class ViTConfig(EncoderConfig):
    """The model to train: a vision Transformer on a piano roll, for objective=classify or classify_notes.

    Raises ConfigError for impossible sizes.
    """

    n_frames: int = setting(256, FRAMES)
    position: ClassVar[str] = "none"  # type: ignore[misc] # not a setting here, nor are these
    max_distance: ClassVar[int] = 1  # type: ignore[misc]
    n_frequencies: ClassVar[int] = 1  # type: ignore[misc]
    max_positions: ClassVar[int] = 1  # type: ignore[misc]
    cycle: ClassVar[int] = 1  # type: ignore[misc]
    pad: ClassVar[int] = -1  # type: ignore[misc]


class ViT(nn.Module):
    """ids (B, T) -> logits (B, T, V); only those of labels mean something."""

    cycle = 1

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.config, c, cell = config, config.d_model, -(-config.d_model // NARROWER)
        self.roll = Roll(config.vocab_size, config.n_frames)
        self.patch = nn.Conv2d(2, c, PATCH, stride=PATCH)  # one linear layer for all patches
        self.rows, self.columns = nn.Embedding(N_PIANO // PATCH, c), nn.Embedding(config.n_frames // PATCH, c)
        self.class_token = nn.Parameter(torch.zeros(1, 1, c))
        self.blocks = nn.ModuleList([EncoderBlock(config, layer) for layer in range(config.n_layers)])
        self.cells, self.read = nn.ConvTranspose2d(c, cell, PATCH, stride=PATCH), nn.Linear(cell, c, bias=False)
        self.last_norm, self.norm, self.dropout = nn.LayerNorm(c), nn.LayerNorm(c), nn.Dropout(config.dropout)
        self.head = nn.Linear(c, config.vocab_size)
        initialise(self, config)
        self.cells.reset_parameters()  # at the size of a Transformer's weights, notes would be heard late
        self.read.reset_parameters()

    def forward(self, ids: Tensor) -> Tensor:
        picture = self.roll(ids)
        x = self.patch(picture.roll.to(self.patch.weight.dtype))  # (B, C, P, N)
        x = x + self.rows.weight.mT[..., None] + self.columns.weight.mT[:, None]
        tokens = torch.cat([self.class_token.expand(len(ids), -1, -1), x.flatten(2).mT], 1)  # (B, 1 + P · N, C)
        tokens, first_v, index = self.dropout(tokens), None, indices(0, tokens.shape[1], ids.device)
        for block in self.blocks:
            tokens, first_v = block(tokens, first_v, index)
        tokens = self.last_norm(tokens)
        cells = self.cells(tokens[:, 1:].mT.reshape(x.shape))  # (B, C / 4, 88, F)
        logits: Tensor = self.head(F.gelu(self.norm(tokens[:, :1] + self.read(picture.at_notes(cells)))))
        return logits


@torch.inference_mode()
def read_class_token(model: ViT, ids: Tensor) -> Tensor:
    """ids (B, T) -> (layers, B, H, P, N): how much the class token looks at each patch. The rest of each sum up to 1 is
    its look at itself."""
    found: list[Tensor] = []

    def read(block: EncoderBlock, given: tuple[Any, ...]) -> None:
        q, k, _ = block.heads(*given[:2])
        weight = (q[:, :, :1] @ k.mT * block.attend.scale).softmax(-1)  # (B, H, 1, 1 + P · N)
        found.append(weight[..., 0, 1:].reshape(*q.shape[:2], N_PIANO // PATCH, -1))

    with each_reading(model, EncoderBlock, read):
        model(ids)
    return torch.stack(found)
