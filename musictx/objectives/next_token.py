"""Predicting the next token."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from musictx.objectives import Example, Objective
from musictx.tokenizers import Tokenizer

if TYPE_CHECKING:
    from torch import Tensor


class NextToken(Objective):
    """An objective with all its defaults."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer, self.pad = tokenizer, tokenizer.vocab.pad

    def example(self, window: Tensor, rng: np.random.Generator) -> Example:
        """Of (…, T + 1): all ids but the last are inputs, all but the first targets."""
        return Example((window[..., :-1],), window[..., 1:])

    def loss(self, model: Callable[..., Tensor], example: Example, by_row: bool = False) -> tuple[Tensor, Tensor]:
        """Cross-entropy in float32, summed in float64 with `by_row`."""
        import torch.nn.functional as F  # to read the objective of a bundle needs no PyTorch

        logits, targets = model(*example.inputs), example.targets  # (B, T, V), (B, T)
        nats = F.cross_entropy(
            logits.flatten(0, 1).float(),
            targets.flatten(),
            ignore_index=self.pad,
            reduction="none" if by_row else "sum",
        )
        counts = targets != self.pad
        return (nats.double().view(targets.shape).sum(1), counts.sum(1)) if by_row else (nats, counts.sum())
