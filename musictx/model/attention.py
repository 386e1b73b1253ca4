"""Relative self-attention: the one door to its implementations."""

from torch import Tensor

from musictx.errors import ConfigError
from musictx.model.attention_chunked import chunked
from musictx.model.attention_reference import reference
from musictx.model.attention_skew import skew

IMPLEMENTATIONS = {"reference": reference, "skew": skew, "chunked": chunked}
AUTO = "auto"


def check_impl(impl: str) -> str:
    """Raises ConfigError naming the implementations there are."""
    if impl not in (AUTO, *IMPLEMENTATIONS):
        raise ConfigError(f"attention.impl={impl}: choose one of {', '.join((AUTO, *IMPLEMENTATIONS))}")
    return impl


def choose(q: Tensor) -> str:
    """What `auto` means for these queries (B, H, Tq, D): one row alone by skew, since there is no square of logits
    to avoid; everything else by chunked. The same result but for rounding."""
    return "skew" if q.shape[2] == 1 else "chunked"


def describe(position: str, impl: str) -> str:
    """Which kernel a model runs, in words, for the start of a run."""
    if position != "relative":
        return f"attention: {position}, by scaled_dot_product_attention"
    return f"attention: relative, impl={impl}" + (": chunked, and skew for single steps" if impl == AUTO else "")


def relative_attention(q: Tensor, k: Tensor, v: Tensor, rel: Tensor, impl: str, dropout_p: float = 0.0) -> Tensor:
    """Causal attention with logits (q_i · k_j + q_i · e_{i-j}) / sqrt(D), j <= i (Huang et al. 2018, section 3.4).

    q (B, H, Tq, D); k, v (B, H, Tk, D); rel (H, M, D), row d the embedding of distance d; distances from M - 1
    on share the last row. The queries are the last Tq of the Tk positions, so that training, prefill and a
    cached step are one function. Returns (B, H, Tq, D). Raises ConfigError for an unknown implementation.
    """
    impl = choose(q) if check_impl(impl) == AUTO else impl
    return IMPLEMENTATIONS[impl](q, k, v, rel, dropout_p)
