"""The interface of all forms of position, whose defaults mean no position; and the rotation that they share."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, Self

import torch
from torch import Tensor, nn

from musictx.model.attention.plain import causal_attention
from musictx.model.attention.relative import Age, Masked, softmax_average

if TYPE_CHECKING:
    from musictx.model.transformer import TransformerConfig

Phase = tuple[Tensor, ...] | None  # one per token, each (B or 1, H or 1, T, ·); None for a form that needs none


class Form(nn.Module):
    """The attention of one layer. The class answers for a whole model: `build`, `embedding`, `timed`, `limit`,
    `preset`.

    A cache stores the result of `keys`; a query gets its position at each step. `at` (B or 1, T) float64 is the clock:
    token indices, or musical time.
    """

    timed: ClassVar[bool] = False  # whether it can count musical time instead of the index
    limit: ClassVar[str | None] = None  # the setting with the number of positions; None: unlimited
    preset: ClassVar[tuple[str, ...]] = ()  # parameters whose initial values the form sets itself

    def __init__(self, d_head: int, more_key_width: int = 0) -> None:
        super().__init__()
        self.key_width, self.scale = d_head + more_key_width, 1 / math.sqrt(d_head)

    @classmethod
    def build(cls, config: TransformerConfig) -> Self:
        """The form of one layer."""
        return cls(config.d_model // config.n_heads)

    @classmethod
    def both_ways(cls, config: TransformerConfig) -> Form:
        """The form of one layer for `attend_to`, with distances below 0."""
        return cls.build(config)

    @classmethod
    def embedding(cls, config: TransformerConfig) -> nn.Module | None:
        """A module that adds places to embeddings: (x (B, T, C), index (B or 1, T) float64) -> x."""
        return None

    def phase(self, at: Tensor, dtype: torch.dtype) -> Phase:
        """The clock as `keys` and `queries` read it."""
        return None

    def keys(self, k: Tensor, phase: Phase) -> Tensor:
        """(B, H, T, D) -> (B, H, T, key_width), for the cache."""
        return k

    def queries(self, q: Tensor, phase: Phase) -> Tensor:
        """(B, H, T, D) -> (B, H, T, key_width)."""
        return q

    def logits(self, q: Tensor, k: Tensor, phase: Phase, distance: Tensor) -> Tensor:
        """The definition: queries (B, H, Tq, D), their phase, and keys (B, H, Tk, key_width) -> logits (B, H, Tq, Tk).
        `distance` (Tq, Tk) or (B, 1, Tq, Tk) is from key to query; the caller masks those below 0."""
        return self.queries(q, phase) @ k.mT * self.scale

    def vectors(self, at: Tensor) -> Tensor | None:
        """The vectors of distances (N,) of the clock, float64: (H or 1, N, ·); None for a form without them."""
        return None

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
        """Causal attention of the last Tq positions, q (B, H, Tq, D), k (B, H, Tk, key_width), v (B, H, Tk, D) -> (B,
        H, Tq, D). With `age` there is one query, and keys are in any order."""
        return causal_attention(self.queries(q, phase), k, v, dropout_p, self.scale, masked)

    def attend_to(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        phase: Phase,
        distance: Tensor,
        dropout_p: float = 0.0,
        masked: Masked = None,
    ) -> Tensor:
        """Attention without a causal mask; shapes as in `forward` and `logits`."""
        return softmax_average(self.logits(q, k, phase, distance), v, dropout_p, masked)


def phases(at: Tensor, frequency: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """cos and sin (B, H, T, F) of `at` (B or 1, T) times `frequency` (H or 1, F), reduced in float64: a float32 product
    loses all meaning after 10^6 steps."""
    angle = (at[:, None, :, None] * frequency[None, :, None]) % (2 * math.pi)
    return angle.cos().to(dtype), angle.sin().to(dtype)
