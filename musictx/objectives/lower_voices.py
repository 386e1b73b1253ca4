"""The task of `conditional` without the soprano: alto, tenor and bass, one token after the other."""

import numpy as np
from torch import Tensor

from musictx.objectives import Example
from musictx.objectives.conditional import by_voice, check_voices
from musictx.objectives.next_token import NextToken
from musictx.tokenizers import Tokenizer


class LowerVoices(NextToken):
    """The difference between its loss and that of `conditional` is what the soprano is worth."""

    continuous = False
    continues = False

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__(tokenizer)
        check_voices(tokenizer, "lower_voices")

    def example(self, window: Tensor, rng: np.random.Generator) -> Example:
        parts = by_voice(window, self.tokenizer, "lower_voices")
        return Example((parts.read,), parts.lower)
