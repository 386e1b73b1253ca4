"""What a sense of position is asked for: the protocol of all forms, whose defaults are those of none at all; and the
turning that rope, Fourier and sinusoids are made of.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from musictx.model.attention.plain import causal_attention

if TYPE_CHECKING:
    from musictx.model.transformer import TransformerConfig

Phase = tuple[Tensor, ...] | None  # of tokens, each (B or 1, H or 1, T, ·); None for a form that needs none


class Form(nn.Module):
    """The attention of one layer. The class answers for a whole model: `build`, `embedding`, `kernel`, `timed`,
    `limit`, `movable`, `preset`.

    A cache keeps what `keys` makes of the keys, so they are told their place once; a query is told its own when it
    asks. `at` (B or 1, T) float64 is the clock that both read: the tokens' index, or musical time.
    """

    timed: ClassVar[bool] = False  # whether it can go by musical time instead of the index
    limit: ClassVar[str | None] = None  # the setting that says how many positions there are; None: no end
    movable: ClassVar[bool] = False  # whether keys that were told their place can be moved: `moved`
    preset: ClassVar[tuple[str, ...]] = ()  # parameters that begin with the values they are made with

    def __init__(self, d_head: int, more_key_width: int = 0) -> None:
        super().__init__()
        self.key_width, self.scale = d_head + more_key_width, 1 / math.sqrt(d_head)

    @classmethod
    def build(cls, config: TransformerConfig) -> Self:
        """One layer's, for a model of these sizes."""
        return cls(config.d_model // config.n_heads)

    @classmethod
    def both_ways(cls, config: TransformerConfig) -> Form:
        """One layer's for `look`, whose keys may be ahead: distances below 0 count too."""
        return cls.build(config)

    @classmethod
    def embedding(cls, config: TransformerConfig) -> nn.Module | None:
        """What is added to the embeddings of tokens: a module (index (B or 1, T) float64, dtype) -> (B or 1, T, C)."""
        return None

    @classmethod
    def kernel(cls, impl: str) -> str:
        """What computes `forward`, in words; `impl` is the setting attention.impl."""
        return "in blocks on a CPU, else by scaled_dot_product_attention"

    def phase(self, at: Tensor, dtype: torch.dtype) -> Phase:
        """What `keys` and `queries` need of the clock."""
        return None

    def keys(self, k: Tensor, phase: Phase) -> Tensor:
        """(B, H, T, D) -> (B, H, T, key_width), for the cache."""
        return k

    def queries(self, q: Tensor, phase: Phase) -> Tensor:
        """(B, H, T, D) -> (B, H, T, key_width)."""
        return q

    def moved(self, keys: Tensor, by: Tensor) -> Tensor:
        """Keys (B, H, T, key_width) as `keys` would have made them `by` (B, 1) later, float64 of the clock."""
        return keys

    def logits(self, q: Tensor, k: Tensor, phase: Phase, distance: Tensor) -> Tensor:
        """The definition, for reading heads: (B, H, Tq, Tk) of queries (B, H, Tq, D) with their phase and of keys
        (B, H, Tk, key_width) that are `distance` tokens behind them, (Tq, Tk) or (B, 1, Tq, Tk); what is below 0 is
        masked later."""
        return self.queries(q, phase) @ k.mT * self.scale

    def forward(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        phase: Phase,
        dropout_p: float = 0.0,
        masked: Tensor | None = None,
        age: Tensor | None = None,
    ) -> Tensor:
        """What the queries (B, H, Tq, D) find in keys (B, H, Tk, key_width) and values (B, H, Tk, D): (B, H, Tq, D).

        The queries are the last Tq of the Tk positions. With `age`, (Tk,) or (B, Tk), there is one query, and each key
        is so many tokens behind it, in any order. Keys at `masked` (B, Tk) are not there for their row.
        """
        return causal_attention(self.queries(q, phase), k, v, dropout_p, self.scale, masked)

    def look(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        phase: Phase,
        distance: Tensor,
        dropout_p: float = 0.0,
        masked: Tensor | None = None,
    ) -> Tensor:
        """Attention without a causal mask, by the definition: what the queries (B, H, Tq, D) find in all keys (B, H,
        Tk, key_width) and values (B, H, Tk, D), each `distance` (Tq, Tk) behind, or ahead of them below 0:
        (B, H, Tq, D). Keys at `masked` (B, Tk) are not there for their row."""
        logits = self.logits(q, k, phase, distance)  # (B, H, Tq, Tk)
        if masked is not None:
            logits = logits.masked_fill(masked[:, None, None], -torch.inf)
        return F.dropout(logits.softmax(-1), dropout_p, dropout_p > 0).to(v.dtype) @ v


def phases(at: Tensor, frequency: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """cos and sin (B, H, T, F) of clock times frequency, reduced in float64: a float32 product loses all meaning
    after 10^6 steps. `at` (B or 1, T) and `frequency` (H or 1, F) float64."""
    angle = (at[:, None, :, None] * frequency[None, :, None]) % (2 * math.pi)
    return angle.cos().to(dtype), angle.sin().to(dtype)
