"""From logits to one id a row: filters on (B, V), and one draw for the whole batch."""

import torch
from torch import Tensor

from musictx.errors import UserError
from musictx.generate.requests import Sampling


def filter_logits(logits: Tensor, sampling: Sampling, temperature: Tensor | float) -> Tensor:
    """Divides logits (B, V) by the temperature, a number or (B, 1), and sets those filtered out to -inf."""
    logits = logits / temperature
    if sampling.top_k is not None and sampling.top_k < logits.shape[-1]:
        least = logits.topk(sampling.top_k).values[:, -1:]
        logits = logits.masked_fill(logits < least, -torch.inf)
    if sampling.nucleus is not None and sampling.nucleus < 1:
        logits = nucleus(logits, sampling.nucleus)
    if sampling.min_p is not None:
        p = logits.softmax(-1)
        logits = logits.masked_fill(p < sampling.min_p * p.amax(-1, keepdim=True), -torch.inf)
    return logits


def nucleus(logits: Tensor, mass: float) -> Tensor:
    """The smallest set of tokens whose probability reaches `mass`, at least one (Holtzman et al. 2020, section 3.1)."""
    order = logits.argsort(dim=-1, descending=True)
    p = logits.softmax(-1).gather(-1, order)
    before = p.cumsum(-1) - p
    before[:, 0] = -1.0  # the first always stays, even if the mass is 0 in single precision
    drop = torch.zeros_like(before, dtype=torch.bool).scatter(-1, order, before >= mass)
    return logits.masked_fill(drop, -torch.inf)


def draw(logits: Tensor, sampling: Sampling, temperature: Tensor | float, uniform: Tensor) -> Tensor:
    """One id a row (B,): where the distribution function of row b first exceeds `uniform` (B, 1), float64 in [0, 1)."""
    if sampling.temperature == 0:
        return logits.argmax(-1)
    below = filter_logits(logits, sampling, temperature).softmax(-1).double().cumsum(-1)  # (B, V)
    # slightly below 1, or rounding could step past the last id that has any probability
    at = uniform * (1 - 2**-50) * below[:, -1:]
    ids = torch.searchsorted(below, at, right=True)[:, 0]
    return ids.clamp_(max=logits.shape[-1] - 1)  # NaN gives V, one past the last id: the caller checks for NaN


class NanError(UserError):
    """Logits are NaN or infinite: nothing can be drawn from them."""

    def __init__(
        self,
        what: str = "the model's logits are not finite numbers (NaN)",
        hint: str = "train it again, or use weights=float32",
    ) -> None:
        super().__init__(what, hint)
