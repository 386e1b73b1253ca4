"""`relative_fourier`: relative embeddings on a Fourier basis of learned frequencies."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor, nn

from musictx.model.attention.relative import is_emulated
from musictx.model.position.form import Form, Phase, phases

if TYPE_CHECKING:
    from musictx.model.transformer import TransformerConfig


class Fourier(Form):
    """e_d = sum over f of a_f cos(d w_f) + b_f sin(d w_f), w learned per head.

    cos and sin of (i - j) w split into products of a term in i and one in j. So q_i · e_{i-j} is a dot product of an
    extended query and the extended key [k_j, cos(j w), sin(j w)], for any attention kernel.
    """

    timed = True
    preset = ("log_frequency",)

    def __init__(self, n_heads: int, d_head: int, n_frequencies: int, waves: tuple[float, float]) -> None:
        """`waves`: the shortest and the longest initial wavelength, in units of the clock."""
        super().__init__(d_head, 2 * n_frequencies)
        first, last = (math.log(2 * math.pi / wave) for wave in waves)
        step = (last - first) / max(n_frequencies - 1, 1)
        logs = torch.tensor([first + k * step for k in range(n_frequencies)])  # (F,)
        self.log_frequency = nn.Parameter(torch.empty(n_heads, n_frequencies))  # (H, F)
        self.log_frequency.data.copy_(logs)
        self.basis = nn.Parameter(torch.empty(n_heads, d_head, 2 * n_frequencies))  # (H, D, 2F): a, then b

    @classmethod
    def build(cls, config: TransformerConfig) -> Self:
        shortest, longest = (
            (2, 2 * config.max_distance) if config.clock == "index" else (0.1, 0.1 * config.max_distance)
        )
        d_head = config.d_model // config.n_heads
        return cls(config.n_heads, d_head, config.n_frequencies, (shortest, longest))

    def phase(self, at: Tensor, dtype: torch.dtype) -> Phase:
        return phases(at, self.log_frequency.double().exp(), dtype)

    def vectors(self, at: Tensor) -> Tensor:
        waves = torch.cat(phases(at[None], self.log_frequency.double().exp(), self.basis.dtype), -1)[0]  # (H, N, 2F)
        return waves @ self.basis.mT  # (H, N, D)

    def keys(self, k: Tensor, phase: Phase) -> Tensor:
        assert phase is not None
        cos, sin = phase
        b, h, t, _ = k.shape
        return torch.cat([k, cos.expand(b, h, t, -1), sin.expand(b, h, t, -1)], -1)

    def queries(self, q: Tensor, phase: Phase) -> Tensor:
        """(B, H, Tq, D + 2F): the product with the extended keys is content and distance together."""
        assert phase is not None
        cos, sin = phase
        if is_emulated(q):
            with torch.autocast("cpu", enabled=False):
                return self.queries(q.float(), phase).to(q.dtype)
        a, b = (q @ self.basis.to(q.dtype)).chunk(2, -1)  # (B, H, Tq, F) each
        return torch.cat([q, a * cos + b * sin, a * sin - b * cos], -1)
