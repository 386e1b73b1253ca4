"""What `conditional` asks, of a model that hears no melody at all: what goes with it, one token after the other."""

import numpy as np
from torch import Tensor

from musictx.objectives import Example
from musictx.objectives.conditional import Conditional


class LowerVoices(Conditional):
    """What the melody is worth is the difference between this and `conditional`."""

    name = "lower_voices"
    inputs = ("ids",)

    def example(self, window: Tensor, rng: np.random.Generator) -> Example:
        parts = self.parts(window)
        return Example((parts.read,), parts.lower)
