"""`learned`: an embedding of each index, learned, added to the tokens' own. They end with its table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from musictx.model.position.form import Form

if TYPE_CHECKING:
    from musictx.model.transformer import TransformerConfig


class Learned(Form):
    """Attention itself knows no position."""

    limit = "max_positions"

    @classmethod
    def embedding(cls, config: TransformerConfig) -> nn.Module:
        return Places(config.max_positions, config.d_model)


class Places(nn.Embedding):
    def forward(self, index: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        return super().forward(index.long())
