"""Any voices of a chorale, given any others: those that a person has go in, the rest comes out."""

from itertools import combinations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from musictx.errors import ConfigError
from musictx.music.grid import N_VOICES
from musictx.objectives import Example
from musictx.objectives.conditional import whole_steps
from musictx.objectives.next_token import NextToken
from musictx.tokenizers import Tokenizer

NAMES = "SATB"
SETS = [given for n in range(1, N_VOICES) for given in combinations(range(N_VOICES), n)]  # 14
SOPRANO_SHARE = 0.3  # of the examples in which only the soprano is given, the commonest wish
REGION_SHARE = 0.25  # of the examples in which all is given outside of a region


class Voices(NextToken):
    """The source is a grid of four voices in which PAD hides what is asked for; the target is the whole grid, of which
    only the hidden part counts. Obeys `musictx.objectives.Objective`. Raises ConfigError for an encoding without
    voices.

    `given` names the voices that are given in every example, as in "S" or "SB"; "any": others in each, some of them
    only outside of a region.
    """

    name = "voices"
    inputs: tuple[str, ...] = ("source", "ids")
    continuous = False
    continues = False

    def __init__(self, tokenizer: Tokenizer, given: str = "any") -> None:
        super().__init__(tokenizer)
        if tokenizer.voices != N_VOICES:
            why = f"{tokenizer.name} tokens are not a grid of four voices"
            raise ConfigError("objective", got=self.name, why=why, allowed="tokenizer=chorale")
        if given != "any" and (not given or given not in names_of_sets()):
            raise ConfigError("given", got=given, allowed=f"any, or one of {', '.join(names_of_sets())}")
        self.given = None if given == "any" else tuple(NAMES.index(name) for name in given)

    def example(self, window: Tensor, rng: np.random.Generator) -> Example:
        steps = whole_steps(window, self.tokenizer, self.name)  # (S, 4)
        given = torch.from_numpy(self.choose(len(steps), rng))  # (S, 4)
        source = steps.masked_fill(~given, self.pad).flatten()  # (4S,)
        read = torch.cat([window[:1], steps.flatten()[:-1]])
        return Example((source, read), steps.masked_fill(given, self.pad).flatten())

    def choose(self, steps: int, rng: np.random.Generator) -> NDArray[np.bool_]:
        """(S, 4) what is given."""
        voices = self.given
        if voices is None:
            voices = (0,) if rng.random() < SOPRANO_SHARE else SETS[rng.integers(len(SETS))]
        given = np.zeros((steps, N_VOICES), bool)
        given[:, list(voices)] = True
        if self.given is None and rng.random() < REGION_SHARE:
            first, last = np.sort(rng.integers(0, steps + 1, 2))
            given[:first] = given[last:] = True
        return given


def names_of_sets() -> list[str]:
    """The voices that can be given together: S, A, …, ATB."""
    return ["".join(NAMES[v] for v in given) for given in SETS]
