"""The turning that rope, Fourier and sinusoids are made of."""

import math

import torch
from torch import Tensor


def phases(at: Tensor, frequency: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """cos and sin (B, H, T, F) of clock times frequency, reduced in float64: a float32 product loses all meaning
    after 10^6 steps. `at` (B or 1, T) and `frequency` (H or 1, F) float64."""
    angle = (at[:, None, :, None] * frequency[None, :, None]) % (2 * math.pi)
    return angle.cos().to(dtype), angle.sin().to(dtype)
