"""`rope`: rotates queries and keys by their position (Su et al. 2021, section 3.2)."""

import torch
from torch import Tensor

from musictx.model.position.form import Form, Phase, phases


class Rotary(Form):
    """The product of two rotated vectors depends only on their angle, which is their distance."""

    timed = True

    def __init__(self, d_head: int) -> None:
        super().__init__(d_head)
        # float64 for all weights, so not a buffer; made before a CUDA graph, which may copy nothing
        self.frequency = torch.tensor([10_000 ** (-2 * i / d_head) for i in range(d_head // 2)], dtype=torch.float64)

    def phase(self, at: Tensor, dtype: torch.dtype) -> Phase:
        if self.frequency.device != at.device:
            self.frequency = self.frequency.to(at.device)
        return phases(at, self.frequency[None], dtype)

    def vectors(self, at: Tensor) -> Tensor:
        cos, _ = phases(at[None], self.frequency[None].to(at.device), torch.float32)
        return cos[0]  # (1, N, D / 2): how much of a pair of numbers stays, at each frequency

    def keys(self, k: Tensor, phase: Phase) -> Tensor:
        assert phase is not None
        cos, sin = phase
        half = k.shape[-1] // 2
        a, b = k[..., :half], k[..., half : 2 * half]
        return torch.cat([a * cos - b * sin, a * sin + b * cos, k[..., 2 * half :]], -1)

    def queries(self, q: Tensor, phase: Phase) -> Tensor:
        return self.keys(q, phase)
