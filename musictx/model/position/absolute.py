"""Positions that join the embeddings: none, an embedding of each index, or its sines (Vaswani et al. 2017, section
3.5)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from musictx.model.position.form import Form, phases

if TYPE_CHECKING:
    from musictx.model.transformer import TransformerConfig


class NoPosition(Form):
    """Plain causal attention. A layer sees its past as a set; only several layers can learn the order."""


class Learned(Form):
    """Attention itself knows no position."""

    limit = "max_positions"

    @classmethod
    def embedding(cls, config: TransformerConfig) -> nn.Module:
        return Places(config.max_positions, config.d_model)


class Places(nn.Embedding):
    def forward(self, x: Tensor, index: Tensor) -> Tensor:  # type: ignore[override]
        return x + super().forward(index.long())

    def vectors(self, at: Tensor, width: int) -> Tensor:
        """(1, N, C) the embeddings of places."""
        return self.weight[at.long().clamp(max=len(self.weight) - 1)][None]


class Sinusoidal(Form):
    """Attention itself knows no position."""

    @classmethod
    def embedding(cls, config: TransformerConfig) -> nn.Module:
        return Sines()


class Sines(nn.Module):
    """Embeddings times sqrt(C) (section 3.4 of the same paper), plus sines of size 1. New embeddings are small, so
    places are larger than tokens at first."""

    def forward(self, x: Tensor, index: Tensor) -> Tensor:
        width = x.shape[-1]
        return x * math.sqrt(width) + sinusoidal(index, width, x.dtype)

    def vectors(self, at: Tensor, width: int) -> Tensor:
        """(1, N, C) the sines of places."""
        return sinusoidal(at[None], width, torch.float32)


def sinusoidal(at: Tensor, width: int, dtype: torch.dtype) -> Tensor:
    """(B, T, C) of positions (B, T) float64: alternating sine and cosine, wavelengths from 2π to 10,000 · 2π."""
    frequency = 10_000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64, device=at.device) / width)
    cos, sin = phases(at, frequency[None], dtype)
    return torch.stack([sin, cos], -1).flatten(-2)[:, 0, :, :width]
