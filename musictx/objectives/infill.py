"""Filling gaps: the next token, given the music after the gap."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from musictx.errors import ConfigError
from musictx.objectives import NEXT_TOKEN, Example
from musictx.objectives.next_token import NextToken
from musictx.tokenizers import Tokenizer
from musictx.tokenizers.gap import ADDED, clock_of, most_framing, read_first, split_at, step_of, with_gap_clock

if TYPE_CHECKING:
    from torch import Tensor


class Infill(NextToken):
    """Puts the music after a random moment first (`musictx.tokenizers.gap`); a share `plain` of windows stays uncut."""

    added = ADDED
    continuous = False
    compared_by = NEXT_TOKEN  # the model continues music too

    def __init__(self, tokenizer: Tokenizer, plain: float = 0.5, cycle: int = 1) -> None:
        if not 0 <= plain <= 1:
            raise ConfigError("plain", got=plain, allowed="a share of the windows, 0 to 1")
        super().__init__(with_gap_clock(tokenizer))
        self.plain, self.period = plain, max(cycle, tokenizer.group)

    def example(self, window: Tensor, rng: np.random.Generator) -> Example:
        """Inputs and targets (T,); only the music before the cut is a target."""
        plain, share = rng.random() < self.plain, rng.random()
        ids = window[window != self.pad].numpy()
        x, music = ids[:1], ids[1:].astype(np.uint16)
        room = (len(window) - 1 - most_framing(self.period)) // self.period * self.period
        music, ids = music[: max(room, 0)], ids[: max(room, 0) + 1]
        end = float(clock_of(self.tokenizer, music)[-1]) if len(music) else 0.0
        step = step_of(self.tokenizer)
        border = round(share * end / step) * step
        if plain or not 0 < border < end:
            return super().example(window, rng)
        before, after = split_at(self.tokenizer, music, border)
        length = float(clock_of(self.tokenizer, ids)[-1])  # x may be a token that takes time
        first = read_first(self.tokenizer, after, len(before), length, self.period)
        gap_window = np.concatenate([first, x, before])
        out = window.new_full(window.shape, self.pad)
        out[: len(gap_window)] = window.new_tensor(gap_window.astype(np.int64))
        targets = out[1:].clone()
        targets[: len(first)] = self.pad
        return Example((out[:-1],), targets)
