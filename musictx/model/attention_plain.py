"""Plain causal attention by the fastest kernel that PyTorch has for a device and a shape."""

import torch
import torch.nn.functional as F
from torch import Tensor

from musictx.model.attention_blocks import causal_blocks

KEPT_BYTES = 2**28  # up to here a CPU keeps a layer's weights of attention for the backward pass


def causal_attention(
    q: Tensor, k: Tensor, v: Tensor, dropout_p: float, scale: float, hidden: Tensor | None = None
) -> Tensor:
    """Queries (B, H, Tq, E), the last Tq of the Tk positions, keys (B, H, Tk, E) and values (B, H, Tk, D) ->
    (B, H, Tq, D). Keys at `hidden` (B, Tk) are not there for their row; to a single query their order is nothing."""
    tq, tk = q.shape[2], k.shape[2]
    if tq == 1 and not dropout_p:
        return _one_query(q, k, v, scale, hidden)
    if q.device.type == "cpu" and hidden is None and _may_keep(q, k, v):
        return causal_blocks(q, k, v, scale, dropout_p)
    if k.shape[3] > v.shape[3]:  # the kernels that build no (T, T) want one width
        wide = F.pad(v, (0, k.shape[3] - v.shape[3]))
        return causal_attention(q, k, wide, dropout_p, scale, hidden)[..., : v.shape[3]]
    square, mask = 1 < tq == tk and hidden is None, None
    if tq > 1 and not square:
        mask = torch.ones(tq, tk, dtype=torch.bool, device=q.device).tril(tk - tq)
    if hidden is not None:
        mask = ~hidden[:, None, None] if mask is None else mask & ~hidden[:, None, None]  # (B, 1, 1 or Tq, Tk)
    return F.scaled_dot_product_attention(q, k, v, mask, dropout_p, is_causal=square, scale=scale)


def _may_keep(q: Tensor, k: Tensor, v: Tensor) -> bool:
    """Whether blocks may keep their weights, half of a square; without gradients they keep none."""
    learns = torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad)
    return not learns or q.shape[0] * q.shape[1] * q.shape[2] * k.shape[2] * q.element_size() <= 2 * KEPT_BYTES


def _one_query(q: Tensor, k: Tensor, v: Tensor, scale: float, hidden: Tensor | None) -> Tensor:
    """A step against a cache: two products, which copy nothing, are faster than a kernel made for many queries."""
    logits = (k @ (q * scale).mT).mT  # (B, H, 1, Tk)
    logits = logits.to(torch.promote_types(q.dtype, torch.float32))
    if hidden is not None:
        logits = logits.masked_fill(hidden[:, None, None], -torch.inf)
    return logits.softmax(-1).to(v.dtype) @ v
