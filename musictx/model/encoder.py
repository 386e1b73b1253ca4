"""The encoder alone (Devlin et al. 2019, BERT): every token sees all others of its row, earlier and later ones.

It reads music and continues none: objective=masked trains it to guess hidden notes, objective=classify to give labels.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor, nn

from musictx.model.cache import indices
from musictx.model.encoder_decoder import EncoderBlock, Side, padding
from musictx.model.transformer import TransformerConfig, initialise
from musictx.setting import setting


@dataclass(frozen=True)
class EncoderConfig(TransformerConfig):
    """The model to train: an encoder, which reads both ways, for objective=masked, classify or classify_notes.

    Raises ConfigError for impossible sizes.
    """

    cycle: int = setting(1, "each token learns its place in a cycle of so many tokens, 16 for a beat; 1: no cycle")
    pad: int = -1  # the id that fills rows up, which no token sees; -1: none
    clock: ClassVar[str] = "index"  # type: ignore[misc] # not a setting here, nor are these
    keyboard: ClassVar[str] = "none"  # type: ignore[misc]
    conv: ClassVar[int] = 1  # type: ignore[misc]
    norm: ClassVar[str] = "pre"  # type: ignore[misc]


class Encoder(nn.Module):
    """ids (B, T) -> logits (B, T, V) of the id at each place."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config, self.cycle, self.reach = config, config.cycle, config.reach
        self.embed = nn.Embedding(config.vocab_size, config.d_model)  # also the output head
        self.side, self.dropout = Side(config), nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList([EncoderBlock(config, layer) for layer in range(config.n_layers)])
        initialise(self, config)

    def forward(self, ids: Tensor) -> Tensor:
        self.config.check_reach(ids.shape[1])
        index = indices(0, ids.shape[1], ids.device)  # (1, T)
        masked = padding(ids, self.config.pad)  # (B, T)
        x, first_v = self.dropout(self.side(self.embed(ids), index)), None
        for block in self.blocks:
            x, first_v = block(x, first_v, index, None, masked)
        return F.linear(self.side.norm(x), self.embed.weight)
