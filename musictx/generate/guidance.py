"""Seed guidance: tokens that the seed makes likelier are drawn more often.

Two streams read the music. One has the seed in sight, the other only its end. With p and p' their probabilities, a
token is drawn from log p + g (log p - log p'). Only tokens at least `CUT` times as likely as the likeliest of p can
come: beyond them the difference is noise. g = 0 is the first stream alone, with that cut. For text this is
context-aware decoding (Shi et al. 2023, arXiv 2305.14739).
"""

import math

import numpy as np
from numpy.typing import NDArray

from musictx.generate.filters import log_softmax
from musictx.model.steps import newest

CUT = 0.01
BARE = 17  # tokens at the seed's end that both streams read
Array = NDArray[np.float64]


def guided(logits: Array, bare: Array, strength: float | Array) -> Array:
    """Log-probabilities up to a constant (B, V), from logits (B, V) with and without the seed in sight. -inf where a
    token is illegal in both or falls to the cut. `strength` may be (B, 1)."""
    log_p = log_softmax(logits)
    least = log_p.max(1, keepdims=True) + math.log(CUT)
    with np.errstate(invalid="ignore"):
        gain = log_p - log_softmax(bare)  # NaN where both are -inf
        guided_log_p: Array = np.where(log_p >= least, log_p + strength * gain, -np.inf)
    return guided_log_p


def bare_prompt(context: NDArray[np.int64], period: int, n_new: int = 0) -> NDArray[np.int64]:
    """The ids that the second stream reads of a context (P,): the seed's end, and `n_new` tokens after it. The whole
    context, if nothing comes before: then nothing is guided."""
    ids, most = context[1:], BARE + n_new  # after BOS, or the token in its place
    return ids[newest(len(ids), most, period) :] if len(ids) > max(most, period) else context
