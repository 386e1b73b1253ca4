"""What models of pictures see in a piece: in windows of as many ids as those that they learned from."""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from musictx.model.se_resnet import SEResNet, read_channels
from musictx.model.vit import ViT, read_class_token
from musictx.tokenizers import Ids
from musictx.tokenizers.tokenizer import Trace
from musictx.viz.patches import View


def windows(ids: Ids, traced: Trace, length: int, device: str) -> Iterator[tuple[float, float, Tensor]]:
    """From when to when each window lasts, in seconds, and its ids (1, T)."""
    for start in range(0, len(ids), length):
        part = torch.as_tensor(ids[start : start + length].astype(np.int64), device=device)[None]
        from_s = float(traced.time_s[start - 1]) if start else 0.0
        yield from_s, float(traced.time_s[min(start + length, len(ids)) - 1]), part


def looked_at(
    model: ViT, ids: Ids, traced: Trace, length: int, layer: int | None, head: int | None, device: str
) -> list[View]:
    """How much the class token looks at each patch of each window, 1 for as much as at any other; None means the mean
    of all layers, or of all heads."""
    views = []
    for from_s, to_s, part in windows(ids, traced, length, device):
        weight = read_class_token(model, part)[:, 0]  # (L, H, P, N)
        weight = weight.mean(0) if layer is None else weight[layer]
        weight = weight.mean(0) if head is None else weight[head]
        views.append(View(from_s, to_s, (weight * weight.numel()).cpu().numpy()))
    return views


def opened(
    model: SEResNet, ids: Ids, traced: Trace, length: int, device: str
) -> tuple[NDArray[np.float64], list[NDArray[np.float32]]]:
    """When each of W windows begins, in seconds (W,), and of each block how open its channels are there (W, C)."""
    parts = list(windows(ids, traced, length, device))
    found = zip(*(read_channels(model, part) for _, _, part in parts), strict=True)
    return np.array([from_s for from_s, _, _ in parts]), [torch.cat(block).cpu().numpy() for block in found]
