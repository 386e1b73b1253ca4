"""Which ids may come next, for a whole batch, after every token: the entry to the encodings' grammars."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from musictx.errors import ConfigError
from musictx.tokenizers.rules import Rules
from musictx.tokenizers.tokenizer import Tokenizer


class Grammar(Protocol):
    """Where every row of a batch is in its music."""

    def legal(self) -> NDArray[np.bool_]:
        """(B, V) the ids that may be drawn now, at least one a row; the caller only reads it."""
        ...

    def update(self, ids: NDArray[np.int64]) -> None:
        """One more token a row, (B,)."""
        ...

    def move(self, rows: NDArray[np.int64]) -> None:
        """Row b becomes what row rows[b] was, (B,), of the same prompt."""
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
        """Does nothing: what came before forbids nothing."""

    def move(self, rows: NDArray[np.int64]) -> None:
        """Does nothing: all rows are alike."""


def build_grammar(
    tokenizer: Tokenizer,
    rules: Rules,
    prompts: Sequence[NDArray[np.integer]],
    quarter_s: Sequence[float],
    on_grid: Sequence[bool] = (),
) -> Grammar:
    """An encoding's grammar after one prompt for each row, at that row's tempo, and on a grid or not. Raises
    ConfigError for rules that it cannot keep."""
    if not rules.masks:
        return Free(tokenizer, len(prompts))
    for name in () if tokenizer.voices else ("voice_order", "voice_ranges", "no_parallels"):
        if getattr(rules, name):
            why = f"it is for chorale models, and {tokenizer.name} has no voices"
            raise ConfigError(name, got=True, why=why, allowed="false")
    return tokenizer.grammar(rules, prompts, quarter_s, on_grid)
