"""`relative`: a learned embedding of each distance (Huang et al. 2018); attention.impl names its kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor, nn

from musictx.model.attention import relative_attention
from musictx.model.attention.relative import Age, Masked
from musictx.model.position.form import Form, Phase

if TYPE_CHECKING:
    from musictx.model.transformer import TransformerConfig


class Table(Form):
    """logit(i, j) = q_i · (k_j + e_{i-j}) / sqrt(D); distances past the last row share it."""

    def __init__(self, n_heads: int, d_head: int, max_distance: int, impl: str) -> None:
        super().__init__(d_head)
        self.impl = impl
        self.rel = nn.Parameter(torch.empty(n_heads, max_distance, d_head))  # (H, M, D)

    @classmethod
    def build(cls, config: TransformerConfig) -> Self:
        return cls(config.n_heads, config.d_model // config.n_heads, config.max_distance, config.attention)

    @classmethod
    def both_ways(cls, config: TransformerConfig) -> Form:
        return TwoSided(config.n_heads, config.d_model // config.n_heads, 2 * config.max_distance - 1, config.attention)

    def logits(self, q: Tensor, k: Tensor, phase: Phase, distance: Tensor) -> Tensor:
        row = self.rows(distance)  # (Tq, Tk) or (B, 1, Tq, Tk)
        content = q @ k.mT  # (B, H, Tq, Tk)
        return (content + (q @ self.rel.to(q.dtype).mT).gather(-1, row.expand(content.shape))) * self.scale

    def rows(self, distance: Tensor) -> Tensor:
        """The row of the table for each distance."""
        return distance.clamp(0, self.rel.shape[1] - 1)

    def vectors(self, at: Tensor) -> Tensor:
        return self.rel[:, self.rows(at.long())]  # (H, N, D)

    def forward(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        phase: Phase,
        dropout_p: float = 0.0,
        masked: Masked = None,
        age: Age = None,
    ) -> Tensor:
        # parameters stay float32 under autocast; the kernels need one dtype
        return relative_attention(q, k, v, self.rel.to(q.dtype), self.impl, dropout_p, masked, age)


class TwoSided(Table):
    """Rows for distances below 0 too: row M - 1 + d of 2 M - 1 for -M < d < M (Shaw et al. 2018, section 3.2)."""

    def rows(self, distance: Tensor) -> Tensor:
        farthest = self.rel.shape[1] // 2
        return distance.clamp(-farthest, farthest) + farthest
