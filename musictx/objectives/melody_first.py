"""What `conditional` asks, for a model of one stream: it reads the whole melody, and then writes what goes with it."""

import numpy as np
import torch
from torch import Tensor

from musictx.objectives import Example
from musictx.objectives.conditional import check_melody, parts_of
from musictx.objectives.next_token import NextToken
from musictx.tokenizers import EventRange, Tokenizer


class MelodyFirst(NextToken):
    """BOS melody <voices> alto tenor bass alto …, or what else goes with it; only that counts."""

    added = (EventRange("VOICES", 0, 0),)
    continuous = False
    continues = False

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__(tokenizer)
        check_melody(tokenizer, "melody_first")

    def example(self, window: Tensor, rng: np.random.Generator) -> Example:
        parts, voices = parts_of(window, self.tokenizer, "melody_first"), self.tokenizer.vocab.id("VOICES")
        melody, lower = (part[part != self.pad] for part in (parts.melody, parts.lower))
        short = max(len(window) - len(melody) - len(lower) - 1, 0)  # parts with waits of their own may be longer
        ids = torch.cat([parts.before, melody, lower.new_tensor([voices]), lower, lower.new_full((short,), self.pad)])
        targets = torch.cat([lower.new_full((len(melody) + 1,), self.pad), ids[len(melody) + 2 :]])
        return Example((ids[:-1],), targets)
