"""What `conditional` asks, of a model that hears no melody at all: what goes with it, one token after the other."""

import numpy as np
from torch import Tensor

from musictx.objectives import Example
from musictx.objectives.conditional import check_melody, parts_of
from musictx.objectives.next_token import NextToken
from musictx.tokenizers import Tokenizer


class LowerVoices(NextToken):
    """What the melody is worth is the difference between this and `conditional`."""

    continuous = False
    continues = False

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__(tokenizer)
        check_melody(tokenizer, "lower_voices")

    def example(self, window: Tensor, rng: np.random.Generator) -> Example:
        parts = parts_of(window, self.tokenizer, "lower_voices")
        return Example((parts.read,), parts.lower)
