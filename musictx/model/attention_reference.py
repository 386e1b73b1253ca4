"""Relative attention by definition: the oracle every other implementation is held against."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor


def reference(q: Tensor, k: Tensor, v: Tensor, rel: Tensor, dropout_p: float = 0.0) -> Tensor:
    """Gathers e_{i-j} for every pair: memory O(T²D). Shapes as in `relative_attention`."""
    tq, tk = q.shape[2], k.shape[2]
    i = torch.arange(tk - tq, tk, device=q.device)[:, None]
    j = torch.arange(tk, device=q.device)[None]
    e = rel[:, (i - j).clamp(0, rel.shape[1] - 1)]  # (H, Tq, Tk, D)
    logits = torch.einsum("bhid,bhjd->bhij", q, k) + torch.einsum("bhid,hijd->bhij", q, e)
    logits = logits / math.sqrt(q.shape[-1])
    weights = logits.masked_fill(j > i, -torch.inf).softmax(-1)  # (B, H, Tq, Tk)
    return F.dropout(weights, dropout_p, dropout_p > 0) @ v
