"""Seed guidance: the next token is drawn from what the seed makes likelier.

Two streams read the music. One has the seed in sight, the other only its end. With p and p' their probabilities, a
token is drawn from log p + g (log p - log p'). Only tokens at least `cut` times as likely as the likeliest of p can
come: beyond them the difference is noise. g = 0 is the first stream alone, with that cut. For text this is
context-aware decoding (Shi et al. 2023, arXiv 2305.14739).
"""

import math

import torch
from torch import Tensor

from musictx.errors import ConfigError
from musictx.generate.requests import Sampling
from musictx.model.protocol import newest


class NothingToHold(ConfigError):
    """A seed too short for guidance."""


def guided(logits: Tensor, bare: Tensor, strength: float, cut: float) -> Tensor:
    """Log-probabilities up to a constant (B, V), from logits (B, V) with and without the seed in sight; -inf where a
    token is illegal in both or falls to the cut."""
    log_p = logits.log_softmax(-1)
    least = log_p.amax(-1, keepdim=True) + math.log(cut)
    gain = log_p - bare.log_softmax(-1)  # NaN where both are -inf
    return torch.where(log_p >= least, log_p + strength * gain, -torch.inf)


def bare_prompt(heard: Tensor, sampling: Sampling, period: int, asked: bool = True) -> Tensor:
    """The end of what is heard of a seed (P,), which is all that the second stream reads. For a shorter seed it
    raises NothingToHold, or gives all of it where no person `asked` for guidance: then nothing is guided."""
    ids, said = heard[1:], max(sampling.guidance_tokens, period)  # after BOS, or the token in its place
    if len(ids) > said:
        return ids[newest(len(ids), sampling.guidance_tokens, period) :]
    if asked:
        raise NothingToHold(
            "seed_guidance",
            got=sampling.strength,
            why=f"the seed has {len(ids)} tokens, and guidance is about those before the last {said}",
            allowed="null for no guidance, fewer guidance_tokens=, or a longer seed",
        )
    return heard
