"""What attention looks at: the weights behind the fused kernels, for the queries that are asked for alone.

The kernels never build weights, so these are made again from the queries and keys that each layer hands to its
attention. Memory is O(queries · T) for one layer at a time.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from musictx.model.position import Fourier, Phase, Plain, Rotary, Table
from musictx.model.transformer import Transformer

Visit = Callable[[int, Tensor], None]
Attention = Table | Fourier | Rotary | Plain


@torch.inference_mode()
def read_attention(model: Transformer, ids: Tensor, queries: Tensor, visit: Visit) -> None:
    """Runs ids (B, T) through the model; `visit(layer, weights)` gets (B, H, Q, T) for `queries` (Q,), positions in
    any order. Row i says how much position i looks at each; it sums to 1 and is 0 after i."""

    def reader(layer: int) -> Callable[[Attention, tuple[Any, ...]], None]:
        def read(attend: Attention, given: tuple[Any, ...]) -> None:
            q, k, _, phase = given[:4]
            visit(layer, weights(attend, q, k, phase, queries))

        return read

    layers = [module for module in model.modules() if isinstance(module, Attention)]
    hooks = [attend.register_forward_pre_hook(reader(n)) for n, attend in enumerate(layers)]
    try:
        model(ids)
    finally:
        for hook in hooks:
            hook.remove()


def weights(attend: Attention, q: Tensor, k: Tensor, phase: Phase, queries: Tensor) -> Tensor:
    """(B, H, Q, T) of one layer: q (B, H, T, D), k (B, H, T, Dk) and the phases as its attention is given them."""
    q, scale = q[:, :, queries], 1 / math.sqrt(q.shape[-1])
    if phase is not None:
        phase = phase[0][:, :, queries], phase[1][:, :, queries]
    place = torch.arange(k.shape[2], device=k.device)
    if isinstance(attend, Rotary):
        q = attend.keys(q, phase)
    elif isinstance(attend, Fourier):
        q = attend.queries(q, phase)
    logits = q @ k.mT  # (B, H, Q, T)
    if isinstance(attend, Table):
        distance = (queries[:, None] - place).clamp(0, attend.rel.shape[1] - 1)  # (Q, T)
        logits = logits + (q @ attend.rel.to(q.dtype).mT).gather(-1, distance.expand(logits.shape))
    return (logits * scale).masked_fill(place > queries[:, None], -torch.inf).softmax(-1)
