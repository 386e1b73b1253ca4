"""Seed guidance: the next token is drawn from what the seed makes likelier.

Two streams read the music. One has the seed in sight, the other only its end. With p and p' their probabilities, a
token is drawn from log p + g (log p - log p'). Only tokens at least `CUT` times as likely as the likeliest of p can
come: beyond them the difference is noise. g = 0 is the first stream alone, with that cut. For text this is
context-aware decoding (Shi et al. 2023, arXiv 2305.14739).
"""

import math

import torch
from torch import Tensor

from musictx.model.protocol import newest

CUT = 0.01
BARE = 17  # tokens at the seed's end that both streams read


def guided(logits: Tensor, bare: Tensor, strength: float | Tensor) -> Tensor:
    """Log-probabilities up to a constant (B, V), from logits (B, V) with and without the seed in sight. -inf where a
    token is illegal in both or falls to the cut. `strength` may be (B, 1)."""
    log_p = logits.log_softmax(-1)
    least = log_p.amax(-1, keepdim=True) + math.log(CUT)
    gain = log_p - bare.log_softmax(-1)  # NaN where both are -inf
    return torch.where(log_p >= least, log_p + strength * gain, -torch.inf)


def bare_prompt(heard: Tensor, period: int, drawn: int = 0) -> Tensor:
    """The end of what is heard (P,), which is all that the second stream reads. This is the end of the seed, and the
    `drawn` tokens after it. All of what is heard, if nothing comes before that end: then nothing is guided."""
    ids, most = heard[1:], BARE + drawn  # after BOS, or the token in its place
    return ids[newest(len(ids), most, period) :] if len(ids) > max(most, period) else heard
