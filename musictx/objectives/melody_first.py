"""The task of `conditional` for a model of one stream: it reads the whole soprano, then writes the voices below."""

import numpy as np
import torch
from torch import Tensor

from musictx.objectives import Example
from musictx.objectives.conditional import by_voice, check_voices
from musictx.objectives.next_token import NextToken
from musictx.tokenizers import EventRange, Tokenizer


class MelodyFirst(NextToken):
    """BOS soprano <voices> alto tenor bass alto …; only the lower voices count."""

    added = (EventRange("VOICES", 0, 0),)
    continuous = False
    continues = False

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__(tokenizer)
        check_voices(tokenizer, "melody_first")

    def example(self, window: Tensor, rng: np.random.Generator) -> Example:
        parts, voices = by_voice(window, self.tokenizer, "melody_first"), self.tokenizer.vocab.id("VOICES")
        sounding = parts.melody != self.pad
        melody, lower = parts.melody[sounding], parts.lower[sounding.repeat_interleave(self.tokenizer.voices - 1)]
        short = len(window) - len(melody) - len(lower) - 1
        ids = torch.cat([parts.before, melody, lower.new_tensor([voices]), lower, lower.new_full((short,), self.pad)])
        targets = torch.cat([lower.new_full((len(melody) + 1,), self.pad), ids[len(melody) + 2 :]])
        return Example((ids[:-1],), targets)
