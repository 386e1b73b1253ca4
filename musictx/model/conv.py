"""A short causal convolution before attention: each token also brings the few tokens before it.

It sees the tokens of one note together before heads compare them (So et al. 2021 put it after the projections). It
begins as zero, so a model that gains it begins as the same model.
"""

import torch
from torch import Tensor, nn


class ShortConv(nn.Module):
    """x (B, T, C) -> x plus a weighted sum of the last `width` tokens, each channel by itself."""

    def __init__(self, width: int, channels: int) -> None:
        super().__init__()
        self.width = width
        self.weight = nn.Parameter(torch.zeros(width, channels))  # the last row is for the token itself

    def forward(self, x: Tensor, before: Tensor | None) -> Tensor:
        """`before` (B, width - 1, C) are the tokens before x; None: x is at the beginning, zeros are before it."""
        if before is None:
            before = x.new_zeros(len(x), self.width - 1, x.shape[2])
        seen, t = torch.cat([before, x], 1), x.shape[1]
        for shift, weight in enumerate(self.weight.to(x.dtype)):
            x = x + weight * seen[:, shift : shift + t]
        return x
