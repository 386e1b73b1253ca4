"""How attention knows where a token stands: five forms behind one shape, so that all models share their blocks.

Each form reads the clock of new tokens once (`phase`), turns their keys into what a cache keeps (`keys`) and attends to
such keys (`forward`). `at` (B or 1, T) float64 is that clock: their index, or musical time. The queries are the last Tq
of the Tk positions; keys at `hidden` (B, Tk) are not there for their row.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from musictx.model.attention import relative_attention
from musictx.model.attention_blocks import causal_blocks

FORMS = ("relative", "relative_fourier", "rope", "sinusoidal", "learned", "none")
CLOCKS = ("index", "time")
KEPT_BYTES = 2**28  # up to here a CPU keeps a layer's weights of attention for the backward pass
Phase = tuple[Tensor, Tensor] | None  # cos and sin (B, H, T, F) of the tokens; None for a form that needs none


def causal_attention(
    q: Tensor, k: Tensor, v: Tensor, dropout_p: float, scale: float, hidden: Tensor | None = None
) -> Tensor:
    """Plain causal attention by the fastest kernel PyTorch has here. Shapes as in `relative_attention`."""
    tq, tk = q.shape[2], k.shape[2]
    if tq == 1 and not dropout_p:
        return _one_query(q, k, v, scale, hidden)
    if q.device.type == "cpu" and hidden is None and _may_keep(q, k, v):
        return causal_blocks(q, k, v, scale, dropout_p)
    if k.shape[3] > v.shape[3]:  # the kernels that build no (T, T) want one width
        wide = F.pad(v, (0, k.shape[3] - v.shape[3]))
        return causal_attention(q, k, wide, dropout_p, scale, hidden)[..., : v.shape[3]]
    mask = None
    if 1 < tq < tk:
        mask = torch.ones(tq, tk, dtype=torch.bool, device=q.device).tril(tk - tq)
    if hidden is not None:
        mask = ~hidden[:, None, None] if mask is None else mask & ~hidden[:, None, None]  # (B, 1, 1 or Tq, Tk)
    return F.scaled_dot_product_attention(q, k, v, mask, dropout_p, is_causal=1 < tq == tk, scale=scale)


def _may_keep(q: Tensor, k: Tensor, v: Tensor) -> bool:
    """Whether blocks may keep their weights, half of a square; without gradients they keep none."""
    learns = torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad)
    return not learns or q.shape[0] * q.shape[1] * q.shape[2] * k.shape[2] * q.element_size() <= 2 * KEPT_BYTES


def _one_query(q: Tensor, k: Tensor, v: Tensor, scale: float, hidden: Tensor | None) -> Tensor:
    """A step against a cache: two products, which copy nothing, are faster than a kernel made for many queries."""
    logits = (k @ (q * scale).mT).mT  # (B, H, 1, Tk)
    logits = logits.to(torch.promote_types(q.dtype, torch.float32))
    if hidden is not None:
        logits = logits.masked_fill(hidden[:, None, None], -torch.inf)
    return logits.softmax(-1).to(v.dtype) @ v


class Plain(nn.Module):
    """No position in attention itself: for the absolute forms and for none."""

    def __init__(self, d_head: int) -> None:
        super().__init__()
        self.key_width, self.scale = d_head, 1 / math.sqrt(d_head)

    def phase(self, at: Tensor, dtype: torch.dtype) -> Phase:
        return None

    def keys(self, k: Tensor, phase: Phase) -> Tensor:
        return k

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, phase: Phase, dropout_p: float, hidden: Tensor | None = None
    ) -> Tensor:
        return causal_attention(q, k, v, dropout_p, self.scale, hidden)


class Table(nn.Module):
    """A learned embedding of every distance (Huang et al. 2018); `impl` names the kernel."""

    def __init__(self, n_heads: int, d_head: int, max_distance: int, impl: str) -> None:
        super().__init__()
        self.key_width, self.impl = d_head, impl
        self.rel = nn.Parameter(torch.empty(n_heads, max_distance, d_head))  # (H, M, D)

    def phase(self, at: Tensor, dtype: torch.dtype) -> Phase:
        return None

    def keys(self, k: Tensor, phase: Phase) -> Tensor:
        return k

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, phase: Phase, dropout_p: float, hidden: Tensor | None = None
    ) -> Tensor:
        # parameters stay float32 under autocast; the kernels want one dtype
        return relative_attention(q, k, v, self.rel.to(q.dtype), self.impl, dropout_p, hidden)


class Rotary(nn.Module):
    """Queries and keys turned by their position (Su et al. 2021, section 3.2)."""

    def __init__(self, d_head: int, base: float = 10_000.0) -> None:
        super().__init__()
        self.key_width, self.scale = d_head, 1 / math.sqrt(d_head)
        # float64 whatever the weights are, so no buffer; and made before a CUDA graph is, which may copy nothing
        self.frequency = torch.tensor([base ** (-2 * i / d_head) for i in range(d_head // 2)], dtype=torch.float64)

    def phase(self, at: Tensor, dtype: torch.dtype) -> Phase:
        if self.frequency.device != at.device:
            self.frequency = self.frequency.to(at.device)
        return phases(at, self.frequency[None], dtype)

    def keys(self, k: Tensor, phase: Phase) -> Tensor:
        assert phase is not None
        cos, sin = phase
        half = k.shape[-1] // 2
        a, b = k[..., :half], k[..., half : 2 * half]
        return torch.cat([a * cos - b * sin, a * sin + b * cos, k[..., 2 * half :]], -1)

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, phase: Phase, dropout_p: float, hidden: Tensor | None = None
    ) -> Tensor:
        return causal_attention(self.keys(q, phase), k, v, dropout_p, self.scale, hidden)


class Fourier(nn.Module):
    """Relative embeddings on a Fourier basis: e_d = sum over f of a_f cos(d w_f) + b_f sin(d w_f), w learned per head.

    cos and sin of (i - j) w split into products of a term in i and one in j, so q_i · e_{i-j} is a plain dot product
    of an extended query and the extended key [k_j, cos(j w), sin(j w)], which any attention kernel takes.
    """

    def __init__(self, n_heads: int, d_head: int, n_frequencies: int, waves: tuple[float, float]) -> None:
        """`waves`: the shortest and the longest wavelength to begin with, in units of the clock."""
        super().__init__()
        self.key_width, self.scale = d_head + 2 * n_frequencies, 1 / math.sqrt(d_head)
        lengths = torch.logspace(math.log10(waves[0]), math.log10(waves[1]), n_frequencies)
        self.log_frequency = nn.Parameter((2 * math.pi / lengths).log().repeat(n_heads, 1))  # (H, F)
        self.basis = nn.Parameter(torch.empty(n_heads, d_head, 2 * n_frequencies))  # (H, D, 2F): a, then b

    def phase(self, at: Tensor, dtype: torch.dtype) -> Phase:
        return phases(at, self.log_frequency.double().exp(), dtype)

    def keys(self, k: Tensor, phase: Phase) -> Tensor:
        assert phase is not None
        cos, sin = phase
        b, h, t, _ = k.shape
        return torch.cat([k, cos.expand(b, h, t, -1), sin.expand(b, h, t, -1)], -1)

    def queries(self, q: Tensor, phase: Phase) -> Tensor:
        """(B, H, Tq, D + 2F): their product with the extended keys is content and distance together."""
        assert phase is not None
        cos, sin = phase
        a, b = (q @ self.basis.to(q.dtype)).chunk(2, -1)  # (B, H, Tq, F) each
        return torch.cat([q, a * cos + b * sin, a * sin - b * cos], -1)

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, phase: Phase, dropout_p: float, hidden: Tensor | None = None
    ) -> Tensor:
        return causal_attention(self.queries(q, phase), k, v, dropout_p, self.scale, hidden)


def phases(at: Tensor, frequency: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """cos and sin (B, H, T, F) of clock times frequency, reduced in float64: a float32 product loses all meaning
    after 10^6 steps. `frequency` (H or 1, F) float64."""
    angle = (at[:, None, :, None] * frequency[None, :, None]) % (2 * math.pi)
    return angle.cos().to(dtype), angle.sin().to(dtype)


def sinusoidal(at: Tensor, width: int, dtype: torch.dtype) -> Tensor:
    """(B, T, C) the fixed embedding of positions (Vaswani et al. 2017, section 3.5)."""
    frequency = 10_000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64, device=at.device) / width)
    cos, sin = phases(at, frequency[None], dtype)
    return torch.stack([sin, cos], -1).flatten(-2)[:, 0, :, :width]
