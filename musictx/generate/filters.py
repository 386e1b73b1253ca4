"""From logits to one id a row: filters on (B, V), and one draw for the whole batch. Finds where a NaN came from."""

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

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
    if sampling.typical is not None and sampling.typical < 1:
        logits = typical(logits, sampling.typical)
    return logits


def nucleus(logits: Tensor, mass: float) -> Tensor:
    """The smallest set of tokens whose probability reaches `mass` (Holtzman et al. 2020, section 3.1)."""
    return _keep_first(logits, logits.argsort(dim=-1, descending=True), mass)


def typical(logits: Tensor, mass: float) -> Tensor:
    """The tokens with a surprise nearest to the entropy, its expected value, until their probability reaches `mass`
    (Meister et al. 2022, "Locally Typical Sampling", section 4)."""
    log_p = logits.log_softmax(-1)
    p = log_p.exp()
    entropy = -torch.where(p > 0, p * log_p, 0.0).sum(-1, keepdim=True)
    return _keep_first(logits, (log_p + entropy).abs().argsort(dim=-1), mass)


def _keep_first(logits: Tensor, order: Tensor, mass: float) -> Tensor:
    """The first tokens in `order` (B, V) until their probability reaches `mass`; at least one."""
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


NO_NUMBERS = "the model's logits are not finite numbers (NaN)"


class NanError(UserError):
    """Logits are NaN or infinite: nothing can be drawn from them."""

    def __init__(self, what: str = NO_NUMBERS) -> None:
        super().__init__(what, "train it again, or use weights=float32")


@torch.inference_mode()
def nan_error(model: Any, ids: Tensor) -> NanError:
    """The error for a model that gave NaN or infinity somewhere after ids (T,); a further forward pass finds the
    layer."""
    first = first_bad_module(model, ids) if isinstance(model, nn.Module) else ""
    weights = [name for name, p in model.named_parameters() if not p.isfinite().all()] if first else []
    where = f"; {first} is the first layer to give them" if first else ""
    cause = f", and its weights have them ({weights[0]})" if weights else ""
    return NanError(f"{NO_NUMBERS}{where}{cause}")


def first_bad_module(model: nn.Module, ids: Tensor) -> str:
    """The name of the first module whose output has NaN or infinity for ids (T,); "" when none has."""
    found: list[str] = []

    def look(name: str, module: nn.Module, args: Any, output: Any) -> None:
        out = output[0] if isinstance(output, tuple) else output
        if not found and isinstance(out, Tensor) and not out.isfinite().all():
            found.append(name)

    # inner modules finish first, so they report before those around them
    handles = [part.register_forward_hook(partial(look, name)) for name, part in model.named_modules() if name]
    try:
        model(ids[None])
    finally:
        for handle in handles:
            handle.remove()
    return found[0] if found else ""
