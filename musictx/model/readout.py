"""Attention weights for chosen queries: made again from queries and keys by the definition, since the fused kernels
never build them. Memory is O(queries · T) for one layer at a time."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import torch
from torch import Tensor, nn

from musictx.model.encoder_decoder import CrossAttention, EncoderDecoder
from musictx.model.position.form import Form, Phase
from musictx.model.transformer import Transformer

Visit = Callable[[int, Tensor], None]


@contextmanager
def each_reading(model: nn.Module, kind: type[nn.Module], read: Callable[..., None]) -> Iterator[None]:
    """Calls `read(module, inputs)` before each forward pass of the model's modules of that kind."""
    hooks = [module.register_forward_pre_hook(read) for module in model.modules() if isinstance(module, kind)]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


@torch.inference_mode()
def read_attention(model: Transformer, ids: Tensor, queries: Tensor, visit: Visit) -> None:
    """Runs ids (B, T); `visit(layer, weights)` gets (B, H, Q, T) for `queries` (Q,), positions in any order. Each row
    sums to 1 and is 0 after the query."""
    layer = count()

    def read(attend: Form, inputs: tuple[Any, ...]) -> None:
        q, k, _, phase = inputs[:4]
        visit(next(layer), weights(attend, q, k, phase, queries))

    with each_reading(model, Form, read):
        model(ids)


def weights(attend: Form, q: Tensor, k: Tensor, phase: Phase, queries: Tensor) -> Tensor:
    """(B, H, Q, T) of one layer: q (B, H, T, D), k (B, H, T, Dk) and the phases as its attention gets them."""
    distance = queries[:, None] - torch.arange(k.shape[2], device=k.device)  # (Q, T)
    phase = phase and tuple(x[:, :, queries] for x in phase)
    logits = attend.logits(q[:, :, queries], k, phase, distance)  # (B, H, Q, T)
    return logits.masked_fill(distance < 0, -torch.inf).softmax(-1)


@torch.inference_mode()
def read_cross_attention(model: EncoderDecoder, source: Tensor, ids: Tensor, query: int) -> Tensor:
    """(layers, H, S): the weights of position `query` of the target on each id of the source (1, S), after ids (1,
    T)."""
    rows: list[Tensor] = []

    def read(cross: CrossAttention, inputs: tuple[Any, ...]) -> None:
        x, k, _, masked, source_at, at = inputs
        here = at[:, query : query + 1]
        phase = cross.attend.phase(here, k.dtype)
        distance = cross.distance(here, source_at)  # (1, 1, 1, S)
        logits = cross.attend.logits(cross.queries(x)[:, :, query : query + 1], k, phase, distance)
        rows.append(logits.masked_fill(masked[:, None, None], -torch.inf).softmax(-1)[0, :, 0])

    with each_reading(model, CrossAttention, read):
        model(source, ids)
    return torch.stack(rows)
