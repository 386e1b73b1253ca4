"""Accompaniment: the whole soprano of a four-voice grid goes in, alto, tenor and bass come out."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from musictx.errors import ConfigError
from musictx.objectives import Example
from musictx.objectives.next_token import NextToken
from musictx.tokenizers import Tokenizer


class Parts(NamedTuple):
    """A window of the grid by voice: the token before it (1,), its soprano (S,), and the voices below (3 S,)."""

    before: Tensor
    melody: Tensor
    lower: Tensor

    @property
    def read(self) -> Tensor:
        """(3 S,) the token before each token of the lower voices."""
        return torch.cat([self.before, self.lower[:-1]])


def by_voice(window: Tensor, tokenizer: Tokenizer, name: str) -> Parts:
    """Splits a window (T + 1,), the token before it and then whole steps, by voice; the piece's EOS becomes PAD. Raises
    ConfigError for windows of other lengths."""
    steps, vocab = window[1:], tokenizer.vocab
    if len(steps) % tokenizer.voices:
        raise ConfigError(
            f"objective={name}: windows of {len(steps)} ids are not whole steps of {tokenizer.voices} voices; give "
            f"data.length and data.segment as multiples of {tokenizer.voices}"
        )
    steps = steps.masked_fill(steps == vocab.eos, vocab.pad).view(-1, tokenizer.voices)  # (S, 4)
    return Parts(window[:1], steps[:, 0], steps[:, 1:].flatten())


def check_voices(tokenizer: Tokenizer, name: str) -> None:
    """Raises ConfigError for an encoding without voices."""
    if not tokenizer.voices:
        raise ConfigError(f"objective={name}: {tokenizer.name} tokens have no voices; choose tokenizer=chorale")


class Conditional(NextToken):
    """Obeys `musictx.objectives.Objective`, for models of a source and a target."""

    inputs = ("source", "ids")
    continuous = False
    continues = False

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__(tokenizer)
        check_voices(tokenizer, "conditional")

    def example(self, window: Tensor, rng: np.random.Generator) -> Example:
        parts = by_voice(window, self.tokenizer, "conditional")
        return Example((parts.melody, parts.read), parts.lower)
