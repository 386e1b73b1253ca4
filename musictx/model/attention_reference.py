"""Relative attention by definition: the oracle every other implementation is held against."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor


def reference(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    rel: Tensor,
    dropout_p: float = 0.0,
    hidden: Tensor | None = None,
    age: Tensor | None = None,
) -> Tensor:
    """Gathers e_{i-j} for every pair: memory O(T²D). Shapes as in `relative_attention`."""
    distance = distances(q, k, age)  # (Tq, Tk) or (B, 1, Tq, Tk)
    e = rel[:, distance.clamp(0, rel.shape[1] - 1)]  # (H, …, Tq, Tk, D)
    relative = "bhid,hijd->bhij" if distance.dim() == 2 else "bhid,hbxijd->bhij"
    logits = torch.einsum("bhid,bhjd->bhij", q, k) + torch.einsum(relative, q, e)
    return weighed(logits / math.sqrt(q.shape[-1]), v, distance, dropout_p, hidden)


def distances(q: Tensor, k: Tensor, age: Tensor | None = None) -> Tensor:
    """How many tokens each key is behind each query, below 0 where it is to come: (Tq, Tk) of the last Tq of Tk
    positions, and of one query to keys of any `age` (Tk,); (B, 1, 1, Tk) where that is each row's own, (B, Tk)."""
    if age is not None:
        return age[None] if age.dim() == 1 else age[:, None, None]
    tq, tk = q.shape[2], k.shape[2]
    return torch.arange(tk - tq, tk, device=q.device)[:, None] - torch.arange(tk, device=q.device)


def weighed(logits: Tensor, v: Tensor, distance: Tensor, dropout_p: float, hidden: Tensor | None) -> Tensor:
    """Values (B, H, Tk, D) by the softmax of logits (B, H, Tq, Tk), without keys to come and those at `hidden`
    (B, Tk): (B, H, Tq, D)."""
    logits = logits.masked_fill(distance < 0, -torch.inf)
    if hidden is not None:
        logits = logits.masked_fill(hidden[:, None, None], -torch.inf)
    return F.dropout(logits.softmax(-1), dropout_p, dropout_p > 0).to(v.dtype) @ v
