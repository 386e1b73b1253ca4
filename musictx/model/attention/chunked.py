"""Relative attention in blocks of queries, recomputed in the backward pass: exact, pure PyTorch, any device.

A block needs logits only for the keys up to its end. The backward pass keeps nothing: it makes the dropout masks again
too. Memory beyond inputs and output grows as T · block.
"""

import math
from itertools import repeat
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from musictx.errors import ConfigError
from musictx.model.attention.relative import Age, Masked

OUT_OF_ORDER = "it reads keys in their order, which graph=true does not keep"
ANY_ORDER = "auto, skew or reference, or graph=false"
DRAWS = 2**16  # values of a draw: the probability is a multiple of 1 / DRAWS


class Dropout(NamedTuple):
    """Drops `n_dropped` of DRAWS weights on average. The same random seed keeps the same weights."""

    n_dropped: int
    random_seed: int

    @classmethod
    def draw(cls, p: float) -> "Dropout":
        """A dropout of probability `p`; its random seed comes from the global generator if it drops anything."""
        n_dropped = min(round(p * DRAWS), DRAWS - 1)
        return cls(n_dropped, int(torch.randint(2**62, ())) if n_dropped else 0)

    @property
    def share_kept(self) -> float:
        """The divisor of sums of kept weights."""
        return 1 - self.n_dropped / DRAWS

    def mask(self, like: Tensor, block: int) -> Tensor:
        """1 or 0 for each weight of a block. One random number of 64 bits serves four weights: drawing takes most of
        dropout's time on a CPU."""
        generator = torch.Generator(like.device).manual_seed(self.random_seed + block)
        four = torch.empty(-(-like.numel() // 4), dtype=torch.int64, device=like.device)
        draws = four.random_(-(2**63), None, generator=generator).view(torch.int16)[: like.numel()]
        return draws.ge_(self.n_dropped - DRAWS // 2).view(like.shape).to(like.dtype)


BLOCK, CPU_BYTES = 128, 384  # rows; on a CPU, bytes of one key's logits, which stay in a cache


def chunked(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    rel: Tensor,
    dropout_p: float = 0.0,
    masked: Masked = None,
    age: Age = None,
    *,
    block: int | None = None,
) -> Tensor:
    """Shapes as in `relative_attention`. On a CPU it takes the rows of the batch one by one: a block stays in the
    cache. Raises ConfigError for keys out of order: blocks need consecutive distances."""
    if age is not None:
        raise ConfigError("impl", got="chunked", why=OUT_OF_ORDER, allowed=ANY_ORDER)
    on_cpu = q.device.type == "cpu"
    block = block or (CPU_BYTES // q.element_size() if on_cpu else BLOCK)
    if on_cpu and len(q) > 1:
        # chunk, not indices: the backward pass of each index would fill a gradient of the whole batch
        masks = masked.chunk(len(q)) if masked is not None else repeat(None, len(q))
        rows = zip(q.chunk(len(q)), k.chunk(len(q)), v.chunk(len(q)), masks, strict=True)
        return torch.cat([chunked(q, k, v, rel, dropout_p, mask, block=block) for q, k, v, mask in rows])
    out: Tensor = Chunked.apply(q, k, v, rel, masked, Dropout.draw(dropout_p), block)  # type: ignore[no-untyped-call]
    return out


class _Rows(NamedTuple):
    """Query rows `start:end`, the number of visible `keys`, the first `far` of them beyond the table for all rows, and
    the slice of the widened `table` for the others."""

    start: int
    end: int
    keys: int
    far: int
    table: slice


def _rows(tq: int, tk: int, near: int, block: int) -> list[_Rows]:
    out = []
    for start in range(0, tq, block):
        end = min(start + block, tq)
        first, keys = tk - tq + start, tk - tq + end  # the position of the first row; keys up to the last
        far = min(max(first - near + 2, 0), keys - 1)  # distance near - 1 and beyond, from every row
        # the widened table counts distances down from near + block - 2 to 1 - block
        top = near + block - 2 - (keys - 1 - far)
        out.append(_Rows(start, end, keys, far, slice(top, top + keys - far + end - start - 1)))
    return out


def _widen(rel: Tensor, near: int, block: int) -> tuple[Tensor, Tensor]:
    """(H, near + 2·block - 2, D) the table by falling distance, its ends repeated; and the row of each entry."""
    distance = torch.arange(near + block - 2, -block, -1, device=rel.device)
    row = distance.clamp(0, near - 1)
    return rel.index_select(1, row), row


def _skew(by_distance: Tensor, n: int) -> Tensor:
    """A view (…, R, n) of (…, R, n + R - 1): each row begins one column left of the row above."""
    r, w = by_distance.shape[-2:]
    return by_distance.as_strided((*by_distance.shape[:-2], r, n), (*by_distance.stride()[:-2], w - 1, 1), r - 1)


def _weights(rows: Tensor, k: Tensor, wide: Tensor, last: Tensor, at: _Rows, masked: Masked) -> Tensor:
    """(B, H, R, keys) of the scaled rows (B, H, R, D)."""
    r = at.end - at.start
    logits = rows.new_empty(*rows.shape[:3], at.keys)
    logits[..., at.far :] = _skew(rows @ wide[:, at.table].transpose(-1, -2), at.keys - at.far)
    if at.far:
        logits[..., : at.far] = rows @ last
    # one product adds to them: in 16 bits it rounds after the sum
    logits.flatten(0, 1).baddbmm_(rows.flatten(0, 1), k[:, :, : at.keys].transpose(-1, -2).flatten(0, 1))
    future = torch.ones(r, r, dtype=torch.bool, device=rows.device).triu(1)
    logits[..., at.keys - r :].masked_fill_(future, -torch.inf)
    if masked is not None:
        logits.masked_fill_(masked[:, None, None, : at.keys], -torch.inf)
    return logits.softmax(-1)


def _merge_batch(x: Tensor) -> Tensor:
    """(B, H, R, D) -> (H, B·R, D), a view where B is 1."""
    return x.transpose(0, 1).flatten(1, 2)


class Chunked(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, rel: Tensor, masked: Masked, dropout: Dropout, block: int
    ) -> Tensor:
        near = min(rel.shape[1], k.shape[2])
        ctx.save_for_backward(q, k, v, rel)
        ctx.options = near, block, dropout, masked
        k, v = k.contiguous(), v.contiguous()  # each block would copy the keys of a view again
        wide, _ = _widen(rel, near, block)
        last = rel[:, near - 1, :, None]  # (H, D, 1)
        out, scale = torch.empty_like(q), 1 / math.sqrt(q.shape[-1])
        for at in _rows(q.shape[2], k.shape[2], near, block):
            weights = _weights(q[:, :, at.start : at.end] * scale, k, wide, last, at, masked)
            if dropout.n_dropped:
                weights *= dropout.mask(weights, at.start)
            out[:, :, at.start : at.end] = weights @ v[:, :, : at.keys]
        return out.div_(dropout.share_kept) if dropout.n_dropped else out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, rel = ctx.saved_tensors
        near, block, dropout, masked = ctx.options
        k, v = k.contiguous(), v.contiguous()
        d_out = d_out / dropout.share_kept if dropout.n_dropped else d_out
        exact = torch.promote_types(q.dtype, torch.float32)  # sums over blocks are kept in float32 or better
        wide, row = _widen(rel, near, block)
        last = rel[:, near - 1, :, None]
        d_q, d_k, d_v = (torch.zeros_like(x, dtype=exact) for x in (q, k, v))
        d_wide = torch.zeros_like(wide, dtype=exact)
        d_rel = torch.zeros_like(rel, dtype=exact)
        scale = 1 / math.sqrt(q.shape[-1])
        for at in _rows(q.shape[2], k.shape[2], near, block):
            here, keys, far = slice(at.start, at.end), at.keys, at.far
            rows, d_rows = q[:, :, here] * scale, d_out[:, :, here]
            weights = _weights(rows, k, wide, last, at, masked)
            d_weights = d_rows @ v[:, :, :keys].transpose(-1, -2)
            mask = dropout.mask(weights, at.start) if dropout.n_dropped else None
            if mask is not None:
                d_weights *= mask
            d_v[:, :, :keys] += (weights if mask is None else mask.mul_(weights)).transpose(-1, -2) @ d_rows
            d_logits = torch.ops.aten._softmax_backward_data(d_weights, weights, -1, q.dtype)  # (B, H, R, keys)
            d_k[:, :, :keys] += d_logits.transpose(-1, -2) @ rows
            by_distance = d_logits.new_zeros(*d_logits.shape[:3], keys - far + at.end - at.start - 1)
            _skew(by_distance, keys - far).copy_(d_logits[..., far:])
            d_q[:, :, here] = d_logits @ k[:, :, :keys] + by_distance @ wide[:, at.table]
            # for all rows of the batch at once
            d_wide[:, at.table] += _merge_batch(by_distance).transpose(-1, -2) @ _merge_batch(rows)
            if far:
                beyond = d_logits[..., :far].sum(-1, keepdim=True, dtype=exact)  # (B, H, R, 1)
                d_q[:, :, here] += beyond * rel[:, None, near - 1]
                d_rel[:, near - 1] += (beyond * rows).sum((0, 2))
        d_rel[:, :near] += torch.zeros_like(d_rel[:, :near]).index_add_(1, row, d_wide)
        return d_q.mul_(scale).to(q.dtype), d_k.to(q.dtype), d_v.to(q.dtype), d_rel.to(rel.dtype), None, None, None
