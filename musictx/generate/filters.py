"""From logits to one id a row: filters on (B, V), and one draw for the whole batch."""

import math

import numpy as np
from numpy.typing import NDArray

from musictx.errors import UserError
from musictx.generate.requests import Sampling

Array = NDArray[np.float64]
CUT = 0.01  # share of the likeliest: below it the gain of seed guidance is noise


def log_softmax(logits: Array) -> Array:
    """Of (B, V), in each row. All NaN where a logit is NaN or infinity, or none is finite."""
    with np.errstate(invalid="ignore"):
        away = logits - logits.max(1, keepdims=True)
        log_p: Array = away - np.log(np.exp(away).sum(1, keepdims=True))
    return log_p


def softmax(logits: Array) -> Array:
    """Of (B, V), in each row; -inf is 0."""
    p: Array = np.exp(logits - logits.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    return p


def filter_logits(logits: Array, sampling: Sampling, temperature: Array | float) -> Array:
    """Divides logits (B, V) by the temperature, a number or (B, 1), and sets those filtered out to -inf."""
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
    """The smallest set of tokens whose probability reaches `mass`, at least one (Holtzman et al. 2020, section 3.1)."""
    order = np.argsort(-logits, axis=1, kind="stable")
    p = np.take_along_axis(softmax(logits), order, 1)
    drop = p.cumsum(1) - p >= mass
    drop[:, 0] = False  # the first always stays
    result: Array = logits.copy()
    np.put_along_axis(result, order, np.where(drop, -np.inf, np.take_along_axis(logits, order, 1)), 1)
    return result


def guided(logits: Array, bare: Array, strength: float | Array) -> Array:
    """Log-probabilities up to a constant (B, V), from logits (B, V) with and without the seed in sight. -inf where a
    token is illegal in both or falls to the cut. `strength` may be (B, 1)."""
    log_p = log_softmax(logits)
    least = log_p.max(1, keepdims=True) + math.log(CUT)
    with np.errstate(invalid="ignore"):
        gain = log_p - log_softmax(bare)  # NaN where both are -inf
        guided_log_p: Array = np.where(log_p >= least, log_p + strength * gain, -np.inf)
    return guided_log_p


def draw(logits: Array, sampling: Sampling, temperature: Array | float, uniform: Array) -> NDArray[np.int64]:
    """One id a row (B,): where the distribution function of row b first exceeds `uniform` (B, 1), in [0, 1)."""
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
