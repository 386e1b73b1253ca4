"""Any voices of a chorale, given any others."""

from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from musictx.errors import ConfigError
from musictx.music.grid import N_VOICES, VOICE_SETS, VOICES
from musictx.objectives import Example
from musictx.objectives.next_token import NextToken
from musictx.tokenizers import Tokenizer

SOPRANO_SHARE = 0.3  # of the examples in which only the soprano is given, the commonest wish
REGION_SHARE = 0.25  # of the examples in which all is given outside of a region


class Voices(NextToken):
    """The source is a grid in which PAD hides the target's voices. Raises ConfigError for an encoding without voices.

    `given` names the voices of every source, as in "S" or "SB"; "any" chooses them.
    """

    name = "voices"
    inputs: tuple[str, ...] = ("source", "ids")
    continuous = False
    continues = False
    compared_with: ClassVar[dict[str, Any]] = {"given": "S"}
    source_voices = N_VOICES
    target_voices = N_VOICES

    def __init__(self, tokenizer: Tokenizer, given: str = "any") -> None:
        super().__init__(tokenizer)
        if tokenizer.voices != N_VOICES:
            why = f"{tokenizer.name} tokens are not a grid of four voices"
            raise ConfigError("objective", got=self.name, why=why, allowed="tokenizer=chorale")
        if given not in ("any", *VOICE_SETS):
            raise ConfigError("given", got=given, allowed=f"any, or one of {', '.join(VOICE_SETS)}")
        self.given = None if given == "any" else given

    def example(self, window: Tensor, rng: np.random.Generator) -> Example:
        steps = whole_steps(window, self.tokenizer)  # (S, 4)
        n_steps = int((steps != self.pad).any(1).sum())  # PAD is at the end
        given = torch.ones_like(steps, dtype=torch.bool)  # (S, 4)
        given[:n_steps] = torch.from_numpy(self.choose(n_steps, rng))
        source = steps.masked_fill(~given, self.pad).flatten()  # (4S,)
        prompt = torch.cat([window[:1], steps.flatten()[:-1]])
        return Example((source, prompt), steps.masked_fill(given, self.pad).flatten())

    def choose(self, steps: int, rng: np.random.Generator) -> NDArray[np.bool_]:
        """(S, 4) the source's part of steps with music."""
        voices = self.given
        if voices is None:
            voices = "S" if rng.random() < SOPRANO_SHARE else VOICE_SETS[rng.integers(len(VOICE_SETS))]
        given = np.zeros((steps, N_VOICES), bool)
        given[:, [VOICES.index(name) for name in voices]] = True
        if self.given is None and rng.random() < REGION_SHARE and steps:
            first, last = np.sort(rng.choice(steps + 1, 2, replace=False))
            given[:first] = given[last:] = True
        return given


def whole_steps(window: Tensor, tokenizer: Tokenizer) -> Tensor:
    """(S, 4) the steps of a window (T + 1,); EOS becomes PAD. Raises ConfigError for windows of other lengths."""
    steps, vocab = window[1:], tokenizer.vocab
    if len(steps) % tokenizer.voices:
        why = f"windows of {len(steps)} ids are not whole steps of {tokenizer.voices} voices"
        hint = f"give length= and segment= as multiples of {tokenizer.voices}"
        raise ConfigError("objective", got=Voices.name, why=why, hint=hint)
    return steps.masked_fill(steps == vocab.eos, vocab.pad).view(-1, tokenizer.voices)
