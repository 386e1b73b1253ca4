"""Relative self-attention: the only entry to its implementations."""

import torch
from torch import Tensor

from musictx.model.attention.chunked import chunked
from musictx.model.attention.fused import suits, triton_attention
from musictx.model.attention.relative import Age, Masked, is_emulated, reference, skew
from musictx.model.settings import one_of

IMPLEMENTATIONS = {"reference": reference, "skew": skew, "chunked": chunked, "triton": triton_attention}
AUTO = "auto"


def choose(q: Tensor, k: Tensor, dropout_p: float = 0.0, masked: Masked = None, age: Age = None) -> str:
    """The kernel of `auto` for q and k (B, H, T, D): skew for one row or at most 256 positions; triton where it can run
    and was fastest; else chunked."""
    if q.shape[2] == 1 or k.shape[2] <= 256:
        return "skew"
    return "triton" if suits(q, dropout_p, masked, age) else "chunked"


def relative_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    rel: Tensor,
    impl: str,
    dropout_p: float = 0.0,
    masked: Masked = None,
    age: Age = None,
) -> Tensor:
    """Causal attention with logits (q_i · k_j + q_i · e_{i-j}) / sqrt(D), j <= i (Huang et al. 2018, section 3.4).

    q (B, H, Tq, D); k, v (B, H, Tk, D); rel (H, M, D), whose last row also serves farther distances -> (B, H, Tq, D).
    The queries are the last Tq positions. With `age` there is one query, and keys are in any order. A query's own key
    must not be masked. Raises ConfigError for an unknown implementation, and for a mask or an order that it cannot
    read.
    """
    if is_emulated(q):
        with torch.autocast("cpu", enabled=False):
            out = relative_attention(q.float(), k.float(), v.float(), rel.float(), impl, dropout_p, masked, age)
            return out.to(q.dtype)
    impl = choose(q, k, dropout_p, masked, age) if one_of("impl", impl, (AUTO, *IMPLEMENTATIONS)) == AUTO else impl
    return IMPLEMENTATIONS[impl](q, k, v, rel, dropout_p, masked, age)
