"""The task of `conditional` without the melody: what goes with it, one token after the other."""

import numpy as np
from torch import Tensor

from musictx.objectives import Example
from musictx.objectives.conditional import Conditional


class LowerVoices(Conditional):
    """The difference between its loss and that of `conditional` is what the melody is worth."""

    name = "lower_voices"
    inputs = ("ids",)

    def example(self, window: Tensor, rng: np.random.Generator) -> Example:
        parts = self.parts(window)
        return Example((parts.read,), parts.lower)
