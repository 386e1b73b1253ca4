"""Filters on logits (B, V), seed guidance, and the draw of ids."""

import math

import numpy as np
from numpy.typing import NDArray

from musictx.errors import UserError
from musictx.generate.requests import Sampling

Array = NDArray[np.float64]
CUT = 0.01  # share of the likeliest: below it the gain of seed guidance is noise


def log_softmax(logits: Array) -> Array:
    """Of each row of (B, V): all NaN where a logit is NaN or infinity, or none is finite."""
    with np.errstate(invalid="ignore"):
        away = logits - logits.max(1, keepdims=True)
        log_p: Array = away - np.log(np.exp(away).sum(1, keepdims=True))
    return log_p


def softmax(logits: Array) -> Array:
    """Of each row of (B, V)."""
    p: Array = np.exp(logits - logits.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    return p


def filter_logits(logits: Array, sampling: Sampling, temperature: Array | float) -> Array:
    """Logits (B, V) divided by the temperature, a number or (B, 1); -inf where a filter drops them."""
    logits = logits / temperature
    if sampling.top_k is not None and sampling.top_k < logits.shape[1]:
        least = np.partition(logits, -sampling.top_k, axis=1)[:, -sampling.top_k, None]
        logits = np.where(logits < least, -np.inf, logits)
    if sampling.nucleus is not None and sampling.nucleus < 1:
        logits = nucleus(logits, sampling.nucleus)
    if sampling.min_p is not None:
        p = softmax(logits)
        logits = np.where(p < sampling.min_p * p.max(1, keepdims=True), -np.inf, logits)
    return logits


def nucleus(logits: Array, mass: float) -> Array:
    """Keeps the fewest tokens that have the probability `mass` together (Holtzman et al. 2020, section 3.1)."""
    order = np.argsort(-logits, axis=1, kind="stable")
    p = np.take_along_axis(softmax(logits), order, 1)
    drop = p.cumsum(1) - p >= mass
    drop[:, 0] = False  # the first always stays
    result: Array = logits.copy()
    np.put_along_axis(result, order, np.where(drop, -np.inf, np.take_along_axis(logits, order, 1)), 1)
    return result


def guide(logits: Array, bare: Array, strength: float | Array) -> Array:
    """Seed guidance, log p + strength (log p - log p'), up to a constant: (B, V), -inf below `CUT` of the likeliest.

    p reads the seed (`logits`), p' only its end (`bare`); `strength` may be (B, 1). For text this is context-aware
    decoding (Shi et al. 2023, arXiv 2305.14739)."""
    log_p = log_softmax(logits)
    least = log_p.max(1, keepdims=True) + math.log(CUT)
    with np.errstate(invalid="ignore"):
        gain = log_p - log_softmax(bare)  # NaN where both are -inf
        guided_log_p: Array = np.where(log_p >= least, log_p + strength * gain, -np.inf)
    return guided_log_p


def draw(logits: Array, sampling: Sampling, temperature: Array | float, uniform: Array) -> NDArray[np.int64]:
    """One id a row (B,): the first whose cumulative probability exceeds `uniform` (B, 1), in [0, 1)."""
    if sampling.temperature == 0:
        likeliest: NDArray[np.int64] = logits.argmax(1)
        return likeliest
    below = softmax(filter_logits(logits, sampling, temperature)).cumsum(1)  # (B, V)
    # slightly below 1, or rounding could step past the last id that has any probability
    at = uniform * (1 - 2**-50) * below[:, -1:]
    ids: NDArray[np.int64] = (below <= at).sum(1)
    return ids


class NanError(UserError):
    """Logits are NaN or infinite: nothing can be drawn from them."""

    def __init__(
        self,
        what: str = "the model's logits are not finite numbers (NaN)",
        hint: str = "train it again with a lower lr=, or, if it has fewer bits, give weights=float32",
    ) -> None:
        super().__init__(what, hint)
