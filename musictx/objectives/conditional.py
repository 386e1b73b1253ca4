"""Accompaniment: the melody goes in whole, and the rest of the music comes out."""

import numpy as np
import torch
from torch import Tensor

from musictx.errors import ConfigError
from musictx.music.score import Score
from musictx.objectives import Example
from musictx.objectives.next_token import NextToken
from musictx.tokenizers import Tokenizer


def by_track(window: Tensor, tokenizer: Tokenizer) -> tuple[Tensor, Tensor]:
    """The melody (S,) and the rest (L,) of a window (T + 1,). Nothing at all is one PAD."""
    vocab = tokenizer.vocab
    ids = window[1:][window[1:] < vocab.n_events].numpy()
    # a wait that the window's end cuts short is in neither: only its whole shifts are certain
    melody, rest = (tokenizer.certain(part).tolist() or [vocab.pad] for part in tokenizer.apart(ids))
    return window.new_tensor(melody), window.new_tensor(rest)


class Conditional(NextToken):
    """An objective for a source and a target. Raises ConfigError for an encoding without melody marks."""

    name = "conditional"  # for `objective=`
    inputs: tuple[str, ...] = ("source", "ids")
    continuous = False
    continues = False

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__(tokenizer)
        if tokenizer.melody is None:
            why = f"{tokenizer.name} tokens mark no melody"
            hint = "choose tokenizer=performance_melody, or objective=voices for chorales"
            raise ConfigError("objective", got=self.name, why=why, hint=hint)

    def example(self, window: Tensor, rng: np.random.Generator) -> Example:
        melody, rest = by_track(window, self.tokenizer)
        return Example((melody, torch.cat([window[:1], rest[:-1]])), rest)

    def asked(self, score: Score) -> Score:
        """The notes of the rest."""
        return score.select(score.program != self.tokenizer.melody)
