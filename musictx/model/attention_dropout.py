"""Which attention weights dropout keeps, told again in the backward pass: blocks of weights are never stored for it."""

from typing import NamedTuple

import torch
from torch import Tensor

DRAWS = 2**16  # how many values a draw has: the probability is a multiple of 1 / DRAWS


class Dropout(NamedTuple):
    """`dropped` of DRAWS on average; 0: none. The same seed keeps the same weights."""

    dropped: int
    seed: int

    @classmethod
    def draw(cls, p: float) -> "Dropout":
        """With a seed from the global generator where there is anything to drop."""
        dropped = min(round(p * DRAWS), DRAWS - 1)
        return cls(dropped, int(torch.randint(2**62, ())) if dropped else 0)

    @property
    def share_kept(self) -> float:
        """What sums of the kept weights are to be divided by."""
        return 1 - self.dropped / DRAWS

    def kept(self, like: Tensor, block: int) -> Tensor:
        """1 or 0 for each weight of the block of that number.

        Random numbers are what dropout costs on a CPU: one of 64 bits is made in the time of a float32, and serves
        four."""
        generator = torch.Generator(like.device).manual_seed(self.seed + block)
        four = torch.empty(-(-like.numel() // 4), dtype=torch.int64, device=like.device)
        draws = four.random_(-(2**63), None, generator=generator).view(torch.int16)[: like.numel()]
        return draws.ge_(self.dropped - DRAWS // 2).view(like.shape).to(like.dtype)
