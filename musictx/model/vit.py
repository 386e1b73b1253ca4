"""The vision Transformer (Dosovitskiy et al. 2021) on a piano roll: patches of 8 keys and 8 frames, and a class token.

It reads music and continues none: `objective=classify` and `classify_notes` train it. A transposed
convolution makes cells of patches again, so a note's answer comes from its cell and the class token.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from musictx.model.cache import indices
from musictx.model.encoder_decoder import EncoderBlock
from musictx.model.readout import each_reading
from musictx.model.roll import FRAMES, N_PIANO, Answers, Roll, check_frames
from musictx.model.transformer import TransformerConfig, initialise
from musictx.setting import setting

PATCH = 8  # keys and frames
NARROWER = 4  # a cell has so many times fewer channels than a patch


@dataclass(frozen=True)
class ViTConfig(TransformerConfig):
    """The model to train: a vision Transformer on a piano roll, for objective=classify or classify_notes.

    Raises ConfigError for impossible sizes.
    """

    n_frames: int = setting(256, FRAMES)
    position: ClassVar[str] = "none"  # type: ignore[misc] # not a setting here, nor are these
    max_distance: ClassVar[int] = 1  # type: ignore[misc]
    clock: ClassVar[str] = "index"  # type: ignore[misc]
    n_frequencies: ClassVar[int] = 1  # type: ignore[misc]
    max_positions: ClassVar[int] = 1  # type: ignore[misc]
    cycle: ClassVar[int] = 1  # type: ignore[misc]
    norm: ClassVar[str] = "pre"  # type: ignore[misc]
    conv: ClassVar[int] = 1  # type: ignore[misc]
    keyboard: ClassVar[str] = "none"  # type: ignore[misc]

    def __post_init__(self) -> None:
        super().__post_init__()
        check_frames(self.n_frames)


class ViT(nn.Module):
    """ids (B, T) -> logits (B, T, V); only those of labels mean something."""

    cycle = 1

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.config, c = config, config.d_model
        self.roll = Roll(config.vocab_size, config.n_frames)
        self.patch = nn.Conv2d(2, c, PATCH, stride=PATCH)  # one linear layer for all patches
        self.rows, self.columns = nn.Embedding(N_PIANO // PATCH, c), nn.Embedding(config.n_frames // PATCH, c)
        self.class_token = nn.Parameter(torch.zeros(1, 1, c))
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList([EncoderBlock(config, layer) for layer in range(config.n_layers)])
        self.norm, self.answers = nn.LayerNorm(c), Answers(c, config.vocab_size)
        self.cells = nn.ConvTranspose2d(c, -(-c // NARROWER), PATCH, stride=PATCH)
        self.read = nn.Linear(-(-c // NARROWER), c)
        initialise(self, config)

    def forward(self, ids: Tensor) -> Tensor:
        picture = self.roll(ids)
        x = self.patch(picture.roll) + self.rows.weight.mT[..., None] + self.columns.weight.mT[:, None]  # (B, C, P, N)
        tokens = torch.cat([self.class_token.expand(len(ids), -1, -1), x.flatten(2).mT], 1)  # (B, 1 + P · N, C)
        tokens, first_v = self.dropout(tokens), None
        index = indices(0, tokens.shape[1], ids.device)
        for block in self.blocks:
            tokens, first_v = block(tokens, first_v, index)
        tokens = self.norm(tokens)
        cells = self.cells(tokens[:, 1:].mT.reshape(x.shape))  # (B, C / 4, 88, F)
        logits: Tensor = self.answers(tokens[:, 0], self.read(picture.at_notes(cells)))
        return logits


@torch.inference_mode()
def read_class_token(model: ViT, ids: Tensor) -> Tensor:
    """ids (B, T) -> (layers, B, H, P, N): how much the class token looks at each patch. The rest of each sum up to 1 is
    its look at itself."""
    found: list[Tensor] = []

    def read(block: EncoderBlock, given: tuple[Any, ...]) -> None:
        q, k, _ = block.heads(*given[:2])
        distance = torch.zeros(1, k.shape[2], dtype=torch.long, device=k.device)  # the form has none
        weight = block.attend.logits(q[:, :, :1], k, None, distance).softmax(-1)  # (B, H, 1, 1 + P · N)
        b, h, *_ = weight.shape
        found.append(weight[:, :, 0, 1:].view(b, h, N_PIANO // PATCH, -1))

    with each_reading(model, EncoderBlock, read):
        model(ids)
    return torch.stack(found)
