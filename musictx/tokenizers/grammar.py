"""Which ids may come next, for a whole batch, after every token: the entry to the encodings' grammars."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from musictx.errors import ConfigError
from musictx.tokenizers.rules import Rules
from musictx.tokenizers.tokenizer import Tokenizer


class Grammar(Protocol):
    """Where every row of a batch is in its music."""

    def legal(self) -> Tensor:
        """(B, V) bool: the ids that may be drawn now; at least one a row."""
        ...

    def update(self, ids: Tensor) -> None:
        """One more token a row, (B,)."""
        ...

    def move(self, rows: Tensor) -> None:
        """Row b becomes what row rows[b] was, (B,), of the same prompt."""
        ...


class Free:
    """Any event may follow any other; PAD, BOS and EOS never may."""

    def __init__(self, tokenizer: Tokenizer, rows: int, device: torch.device | str) -> None:
        vocab = tokenizer.vocab
        legal = torch.from_numpy(vocab.mask(*(row.type for row in vocab.events))).to(device)  # (V,)
        self.mask = legal.expand(rows, -1)

    def legal(self) -> Tensor:
        return self.mask

    def update(self, ids: Tensor) -> None:
        """Does nothing: what came before forbids nothing."""

    def move(self, rows: Tensor) -> None:
        """Does nothing: all rows are alike."""


def build_grammar(
    tokenizer: Tokenizer,
    rules: Rules,
    prompts: Sequence[NDArray[np.integer]],
    quarter_s: Sequence[float],
    device: torch.device | str,
) -> Grammar:
    """An encoding's grammar after one prompt for each row, at that row's tempo. Raises ConfigError for rules that it
    cannot keep."""
    if not rules.masks:
        return Free(tokenizer, len(prompts), device)
    for name in () if tokenizer.voices else ("voice_order", "voice_ranges", "no_parallels"):
        if getattr(rules, name):
            why = f"it is for chorale models, and {tokenizer.name} has no voices"
            raise ConfigError(name, got=True, why=why, allowed="false")
    return tokenizer.grammar(rules, prompts, quarter_s, device)
