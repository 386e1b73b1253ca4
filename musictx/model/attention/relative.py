"""Relative attention by definition, the reference; and by skewing (Huang et al. 2018, section 3.4.1)."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from musictx.system import processor

EMULATES = not processor().bfloat16  # asked once: a compiler of models cannot look into it
Masked = Tensor | None  # (B, Tk) True where a row does not see a key; None: it sees all
Age = Tensor | None  # (Tk,) how many tokens each key is behind the one query; None: keys are in order


def reference(
    q: Tensor, k: Tensor, v: Tensor, rel: Tensor, dropout_p: float = 0.0, masked: Masked = None, age: Age = None
) -> Tensor:
    """Gathers e_{i-j} for every pair: memory O(T²D). Shapes as in `relative_attention`."""
    distance = distances(q, k, age)  # (Tq, Tk)
    e = rel[:, distance.clamp(0, rel.shape[1] - 1)]  # (H, Tq, Tk, D)
    logits = torch.einsum("bhid,bhjd->bhij", q, k) + torch.einsum("bhid,hijd->bhij", q, e)
    return causal_average(logits / math.sqrt(q.shape[-1]), v, distance, dropout_p, masked)


def is_emulated(q: Tensor) -> bool:
    """Whether this processor only emulates such products; attention in float32 is ten times as fast then."""
    return EMULATES and q.device.type == "cpu" and q.dtype == torch.bfloat16


def distances(q: Tensor, k: Tensor, age: Age = None) -> Tensor:
    """(Tq, Tk) tokens from each key to each of the last Tq queries; below 0 for keys ahead. With `age` there is one
    query."""
    if age is not None:
        return age[None]
    tq, tk = q.shape[2], k.shape[2]
    return torch.arange(tk - tq, tk, device=q.device)[:, None] - torch.arange(tk, device=q.device)


def causal_average(logits: Tensor, v: Tensor, distance: Tensor, dropout_p: float, masked: Masked) -> Tensor:
    """`softmax_average` without the keys that are ahead, whose `distance` is below 0."""
    return softmax_average(logits.masked_fill(distance < 0, -torch.inf), v, dropout_p, masked)


def softmax_average(logits: Tensor, v: Tensor, dropout_p: float, masked: Masked) -> Tensor:
    """Logits (B, H, Tq, Tk) and values (B, H, Tk, D) -> (B, H, Tq, D): values weighted by the softmax."""
    if masked is not None:
        logits = logits.masked_fill(masked[:, None, None], -torch.inf)
    return F.dropout(logits.softmax(-1), dropout_p, dropout_p > 0).to(v.dtype) @ v


def skew(
    q: Tensor, k: Tensor, v: Tensor, rel: Tensor, dropout_p: float = 0.0, masked: Masked = None, age: Age = None
) -> Tensor:
    """Memory O(T²): one (Tq, Tk) matrix of relative logits a head. Shapes as in `relative_attention`."""
    if age is not None:
        return _by_age(q, k, v, rel, dropout_p, masked, age)
    tq, tk = q.shape[2], k.shape[2]
    # multiply a single query from the right, and dense: otherwise PyTorch copies every key first
    content = (k @ q.contiguous().mT).mT if tq == 1 else q @ k.mT
    logits = (content + relative_logits(q, rel, tk)) / math.sqrt(q.shape[-1])
    if tq > 1:
        logits = logits.masked_fill(torch.ones(tq, tk, dtype=torch.bool, device=q.device).triu(tk - tq + 1), -torch.inf)
    return softmax_average(logits, v, dropout_p, masked)


def _by_age(q: Tensor, k: Tensor, v: Tensor, rel: Tensor, dropout_p: float, masked: Masked, age: Tensor) -> Tensor:
    """One query: gathers the logit of each distance by the keys' age instead of shifting."""
    by_distance = torch.einsum("bhqd,hmd->bhqm", q, rel)  # (B, H, 1, M)
    row = age.clamp(max=rel.shape[1] - 1).expand(*q.shape[:2], 1, -1)  # (B, H, 1, Tk)
    logits = (k @ q.mT).mT + by_distance.gather(-1, row)  # (B, H, 1, Tk)
    return softmax_average(logits / math.sqrt(q.shape[-1]), v, dropout_p, masked)


def relative_logits(q: Tensor, rel: Tensor, tk: int) -> Tensor:
    """q_i · e_{i-j} at (i, j) for j <= i, (B, H, Tq, Tk); entries above the diagonal mean nothing."""
    b, h, tq, d = q.shape
    near = min(rel.shape[1], tk)
    if tq == 1:  # all rows in one product, or the table would be copied for each
        row = q.permute(1, 2, 0, 3).reshape(h, b, d) @ rel[:, :near].mT  # (H, B, near)
        by_distance = row.flip(-1).transpose(0, 1)[:, :, None]  # (B, H, 1, near)
        if near == tk:
            return by_distance
        far = by_distance[..., :1].expand(-1, -1, -1, tk - near)
        return torch.cat([far, by_distance], -1)
    # farthest first: flip the table or the logits, whichever is smaller
    if tq * b < rel.shape[2]:
        by_distance = (q @ rel[:, :near].transpose(-1, -2)).flip(-1)  # (B, H, Tq, near)
    else:
        by_distance = q @ rel[:, :near].flip(1).transpose(-1, -2)
    far = by_distance[..., :1].expand(-1, -1, -1, tk - near)  # they share the last row of the table
    padded = torch.cat([by_distance.new_zeros(b, h, tq, 1), far, by_distance], -1)  # (B, H, Tq, Tk + 1)
    # read with rows one shorter, row i begins i further left: distances line up with positions
    return padded.view(b, h, -1)[..., tq:].view(b, h, tq, tk)
