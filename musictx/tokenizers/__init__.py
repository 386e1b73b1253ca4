"""Score <-> ids: `build_tokenizer` is the entry, `Tokenizer` the interface."""

import copy
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from musictx.errors import UserError
from musictx.tokenizers.chorale import ChoraleTokenizer
from musictx.tokenizers.miditok import KINDS, MidiTokTokenizer
from musictx.tokenizers.performance import PerformanceTokenizer
from musictx.tokenizers.score import ScoreTokenizer
from musictx.tokenizers.tokenizer import Tokenizer
from musictx.tokenizers.vocab import EventRange, Ids, Vocab

TOKENIZERS: dict[str, Callable[[str], Tokenizer]] = {  # by its state, "" for none
    "performance": PerformanceTokenizer,
    "chorale": ChoraleTokenizer,
    **{name: partial(MidiTokTokenizer, name) for name in KINDS},
    "score": ScoreTokenizer,
}

T = TypeVar("T", bound=Tokenizer)


def build_tokenizer(name: str, state: str = "", added: Iterable[Iterable[Any]] = ()) -> Tokenizer:
    """The tokenizer of that name and state, with added ids, (type, min, max) each. Raises UserError."""
    if name not in TOKENIZERS:
        hint = f"choose one of {', '.join(TOKENIZERS)}, or run the script that adds it with these words"
        raise UserError(f"tokenizer {name!r} is not in musictx", hint)
    return with_added(TOKENIZERS[name](state), (EventRange(*row) for row in added))


def with_added(tokenizer: T, added: Iterable[EventRange]) -> T:
    """The tokenizer with an objective's ids after its own. Raises UserError as `Vocab`."""
    rows = tuple(added)
    if not rows:
        return tokenizer
    vocab = replace(tokenizer.vocab, added=rows)
    result = copy.copy(tokenizer)
    result.vocab, padding = vocab, (0, vocab.size - tokenizer.vocab.size)
    result.pitch = np.pad(tokenizer.pitch, padding, constant_values=-1)
    if tokenizer.pace is not None:
        result.pace = np.pad(tokenizer.pace, padding)
    return result


def knows_one_piano(tokenizer: Tokenizer) -> bool:
    """Whether notes have neither voices nor instruments."""
    return not (tokenizer.voices or tokenizer.programs)


__all__ = ["TOKENIZERS", "EventRange", "Ids", "Tokenizer", "Vocab", "build_tokenizer", "knows_one_piano", "with_added"]
