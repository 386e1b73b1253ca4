"""Plain causal attention by PyTorch's kernels, or on a CPU by blocks of queries.

PyTorch's kernel needs one width, and in bfloat16 takes 1.3 times as long as blocks; in float32 with equal widths blocks
take 1.3 to 3 times as long as it does, with AVX2 and with AVX-512.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from musictx.model.attention.chunked import Dropout
from musictx.model.attention.relative import Masked, is_emulated, softmax_average

KEPT_BYTES = 2**28  # up to this size a CPU keeps a layer's attention weights for the backward pass


def causal_attention(q: Tensor, k: Tensor, v: Tensor, dropout_p: float, scale: float, masked: Masked = None) -> Tensor:
    """q (B, H, Tq, E), k (B, H, Tk, E), v (B, H, Tk, D) -> (B, H, Tq, D). The queries are the last Tq positions; for
    one query the keys' order does not matter."""
    if is_emulated(q):
        with torch.autocast("cpu", enabled=False):
            return causal_attention(q.float(), k.float(), v.float(), dropout_p, scale, masked).to(q.dtype)
    tq, tk = q.shape[2], k.shape[2]
    if tq == 1 and not dropout_p:
        return _one_query(q, k, v, scale, masked)
    if masked is None and _blocks_are_faster(q, k, v, dropout_p) and _may_keep(q, k, v):
        return causal_blocks(q, k, v, scale, dropout_p)
    if k.shape[3] > v.shape[3]:  # the kernels that build no (T, T) need one width
        wide = F.pad(v, (0, k.shape[3] - v.shape[3]))
        return causal_attention(q, k, wide, dropout_p, scale, masked)[..., : v.shape[3]]
    square, mask = 1 < tq == tk and masked is None, None
    if tq > 1 and not square:
        mask = torch.ones(tq, tk, dtype=torch.bool, device=q.device).tril(tk - tq)
    if masked is not None:
        mask = ~masked[:, None, None] if mask is None else mask & ~masked[:, None, None]  # (B, 1, 1 or Tq, Tk)
    return F.scaled_dot_product_attention(q, k, v, mask, dropout_p, is_causal=square, scale=scale)


def _blocks_are_faster(q: Tensor, k: Tensor, v: Tensor, dropout_p: float) -> bool:
    alike = k.shape[3] == v.shape[3] and q.shape[2] == k.shape[2]
    return q.device.type == "cpu" and not (alike and q.dtype == torch.float32 and not dropout_p)


def _may_keep(q: Tensor, k: Tensor, v: Tensor) -> bool:
    """Whether blocks may keep their weights, half a square; without gradients they keep none."""
    learns = torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad)
    return not learns or q.shape[0] * q.shape[1] * q.shape[2] * k.shape[2] * q.element_size() <= 2 * KEPT_BYTES


def _one_query(q: Tensor, k: Tensor, v: Tensor, scale: float, masked: Masked) -> Tensor:
    """A step against a cache: two products, which copy nothing, are faster than a kernel for many queries."""
    logits = (k @ (q * scale).mT).mT  # (B, H, 1, Tk)
    logits = logits.to(torch.promote_types(q.dtype, torch.float32))
    return softmax_average(logits, v, 0.0, masked)


BLOCK = 128  # rows; 64 to 192 are as fast within the noise


def causal_blocks(q: Tensor, k: Tensor, v: Tensor, scale: float, dropout_p: float = 0.0) -> Tensor:
    """Shapes as in `causal_attention`. Keeps B·H·Tq·Tk/2 weights for the backward pass, and none without gradients."""
    b, h, t, _ = q.shape
    rows = (x.reshape(b * h, x.shape[2], -1) for x in (q * scale, k, v))
    out: Tensor = _Blocks.apply(*rows, Dropout.draw(dropout_p))  # type: ignore[no-untyped-call]
    return out.view(b, h, t, -1)


def _spans(tq: int, tk: int) -> list[tuple[slice, int]]:
    """Each block of query rows, and the number of keys that its last row sees."""
    return [(slice(s, min(s + BLOCK, tq)), tk - tq + min(s + BLOCK, tq)) for s in range(0, tq, BLOCK)]


class _Blocks(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, dropout: Dropout) -> Tensor:
        out = v.new_empty(*q.shape[:2], v.shape[2])  # (B·H, Tq, D)
        saved_weights = []
        for here, keys in _spans(q.shape[1], k.shape[1]):
            r = here.stop - here.start
            logits = q[:, here] @ k[:, :keys].mT  # (B·H, R, keys)
            future = torch.ones(r, r, dtype=torch.bool, device=q.device).triu(1)
            logits[..., keys - r :].masked_fill_(future, -torch.inf)
            weights = logits.softmax(-1)
            if any(ctx.needs_input_grad):
                saved_weights.append(weights)
            if dropout.n_dropped:
                weights = weights * dropout.mask(weights, here.start)
            out[:, here] = weights @ v[:, :keys]
        ctx.save_for_backward(q, k, v, *saved_weights)
        ctx.dropout = dropout
        return out.div_(dropout.share_kept) if dropout.n_dropped else out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, *saved_weights = ctx.saved_tensors
        dropout = ctx.dropout
        d_out = d_out / dropout.share_kept if dropout.n_dropped else d_out
        exact = torch.promote_types(q.dtype, torch.float32)  # sums over blocks are kept in float32 or better
        d_q, d_k, d_v = torch.empty_like(q), torch.zeros_like(k, dtype=exact), torch.zeros_like(v, dtype=exact)
        for (here, keys), weights in zip(_spans(q.shape[1], k.shape[1]), saved_weights, strict=True):
            d_rows = d_out[:, here]
            d_weights, used_weights = d_rows @ v[:, :keys].mT, weights
            if dropout.n_dropped:
                mask = dropout.mask(weights, here.start)
                d_weights, used_weights = d_weights * mask, weights * mask
            d_logits = torch.ops.aten._softmax_backward_data(d_weights, weights, -1, q.dtype)  # (B·H, R, keys)
            d_q[:, here] = d_logits @ k[:, :keys]
            d_k[:, :keys] += d_logits.mT @ q[:, here]
            d_v[:, :keys] += used_weights.mT @ d_rows
        return d_q, d_k.to(k.dtype), d_v.to(v.dtype), None
