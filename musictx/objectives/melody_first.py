"""The task of `conditional` for a model of one stream: it reads the whole melody, then writes what goes with it."""

import numpy as np
import torch
from torch import Tensor

from musictx.objectives import Example
from musictx.objectives.conditional import Conditional
from musictx.tokenizers import EventRange


class MelodyFirst(Conditional):
    """BOS melody <voices> alto tenor bass alto …, or what else goes with it; only that counts."""

    name = "melody_first"
    added = (EventRange("VOICES", 0, 0),)
    inputs = ("ids",)

    def example(self, window: Tensor, rng: np.random.Generator) -> Example:
        parts, voices = self.parts(window), self.tokenizer.vocab.id("VOICES")
        melody, lower = (part[part != self.pad] for part in (parts.melody, parts.lower))
        short = max(len(window) - len(melody) - len(lower) - 1, 0)  # parts with separate waits may be longer
        ids = torch.cat([parts.before, melody, lower.new_tensor([voices]), lower, lower.new_full((short,), self.pad)])
        targets = torch.cat([lower.new_full((len(melody) + 1,), self.pad), ids[len(melody) + 2 :]])
        return Example((ids[:-1],), targets)
