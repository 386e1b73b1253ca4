"""Accompaniment: a whole melody goes in. To the soprano of a four-voice grid alto, tenor and bass come out; where ids
mark a melody, the rest of the music does."""

import numpy as np
import torch
from torch import Tensor

from musictx.errors import ConfigError
from musictx.music.grid import N_VOICES
from musictx.music.score import Score
from musictx.objectives import Example
from musictx.objectives.next_token import NextToken
from musictx.tokenizers import Tokenizer


def whole_steps(window: Tensor, tokenizer: Tokenizer, name: str) -> Tensor:
    """(S, 4) the steps of a window (T + 1,), which is the token before it and then whole steps; the piece's EOS becomes
    PAD. Raises ConfigError for windows of other lengths."""
    steps, vocab = window[1:], tokenizer.vocab
    if len(steps) % tokenizer.voices:
        why = f"windows of {len(steps)} ids are not whole steps of {tokenizer.voices} voices"
        hint = f"give length= and segment= as multiples of {tokenizer.voices}"
        raise ConfigError("objective", got=name, why=why, hint=hint)
    return steps.masked_fill(steps == vocab.eos, vocab.pad).view(-1, tokenizer.voices)


def by_track(window: Tensor, tokenizer: Tokenizer) -> tuple[Tensor, Tensor]:
    """Of a window (T + 1,) the melody (S,) and the rest (L,), each with its waits, from the same moment on. A wait that
    the window's end cuts short is in neither: only its whole shifts are certain. Nothing at all is one PAD."""
    vocab = tokenizer.vocab
    ids = window[1:][window[1:] < vocab.n_events].numpy()
    melody, rest = (tokenizer.certain(part).tolist() or [vocab.pad] for part in tokenizer.apart(ids))
    return window.new_tensor(melody), window.new_tensor(rest)


class Conditional(NextToken):
    """Obeys `musictx.objectives.Objective`, for models of a source and a target. Raises ConfigError for an encoding
    that does not mark a melody."""

    name = "conditional"  # what `objective=` calls it
    inputs: tuple[str, ...] = ("source", "ids")
    continuous = False
    continues = False
    target_voices = N_VOICES - 1

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__(tokenizer)
        if not tokenizer.voices and tokenizer.melody is None:
            why = f"{tokenizer.name} tokens do not separate a melody from the rest"
            hint = "choose tokenizer=chorale or performance_melody"
            raise ConfigError("objective", got=self.name, why=why, hint=hint)

    def example(self, window: Tensor, rng: np.random.Generator) -> Example:
        if self.tokenizer.voices:
            steps = whole_steps(window, self.tokenizer, self.name)
            melody, lower = steps[:, 0], steps[:, 1:].flatten()
        else:
            melody, lower = by_track(window, self.tokenizer)
        return Example((melody, torch.cat([window[:1], lower[:-1]])), lower)

    def asked(self, score: Score) -> Score:
        """The notes that are asked for; of a grid all, since a Score does not say which voice sings."""
        return score if self.tokenizer.melody is None else score.select(score.program != self.tokenizer.melody)
