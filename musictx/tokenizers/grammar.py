"""The ids that may come next, for a whole batch."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from musictx.errors import ConfigError
from musictx.tokenizers.rules import CHOIR_RULES, Rules
from musictx.tokenizers.tokenizer import Tokenizer


class Grammar(Protocol):
    """The place in its music of every row of a batch."""

    def legal(self) -> NDArray[np.bool_]:
        """(B, V) the legal ids now, at least one a row; read-only."""
        ...

    def update(self, ids: NDArray[np.int64]) -> None:
        """Takes one more token a row, (B,)."""
        ...

    def move(self, rows: NDArray[np.int64]) -> None:
        """Row b becomes row rows[b], (B,), of the same prompt."""
        ...


class Free:
    """Any event may follow any other; PAD, BOS and EOS never may."""

    def __init__(self, tokenizer: Tokenizer, rows: int) -> None:
        vocab = tokenizer.vocab
        legal = vocab.mask(*(row.type for row in vocab.events))  # (V,)
        self.mask = np.broadcast_to(legal, (rows, vocab.size))

    def legal(self) -> NDArray[np.bool_]:
        return self.mask

    def update(self, ids: NDArray[np.int64]) -> None:
        """Does nothing."""

    def move(self, rows: NDArray[np.int64]) -> None:
        """Does nothing: all rows are alike."""


def build_grammar(
    tokenizer: Tokenizer,
    rules: Rules,
    prompts: Sequence[NDArray[np.integer]],
    quarter_s: Sequence[float],
    on_grid: Sequence[bool] = (),
) -> Grammar:
    """An encoding's grammar, as `Tokenizer.grammar`. Raises ConfigError."""
    if not rules.masks:
        return Free(tokenizer, len(prompts))
    for name in () if tokenizer.voices else CHOIR_RULES:
        if getattr(rules, name):
            why = f"it is for chorale models, and {tokenizer.name} has no voices"
            raise ConfigError(name, got=True, why=why, allowed="false")
    return tokenizer.grammar(rules, prompts, quarter_s, on_grid)
