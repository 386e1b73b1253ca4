"""Score <-> ids. `build_tokenizer(name, state)` is the door; what an encoding gives beside, `Tokenizer` lists."""

import copy
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from musictx.errors import ConfigError
from musictx.tokenizers.chorale import ChoraleTokenizer
from musictx.tokenizers.miditok import KINDS, MidiTokTokenizer
from musictx.tokenizers.performance import PerformanceTokenizer
from musictx.tokenizers.tokenizer import Tokenizer
from musictx.tokenizers.vocab import MAX_IDS, EventRange, Ids, Vocab

TOKENIZERS: dict[str, Callable[[str], Tokenizer]] = {  # from what it has learnt, "" where that is nothing
    "performance": PerformanceTokenizer,
    "chorale": ChoraleTokenizer,
    **{name: partial(MidiTokTokenizer, name) for name in KINDS},
}


def build_tokenizer(name: str, state: str = "", added: Iterable[Iterable[Any]] = ()) -> Tokenizer:
    """The tokenizer of that name, with what it has learnt, and with ids that an objective adds, (type, min, max) each.
    Raises ConfigError naming the known ones, for a package that is not installed, and for a state that is not this
    tokenizer's."""
    if name not in TOKENIZERS:
        raise ConfigError(f"tokenizer {name!r} does not exist: choose one of {', '.join(TOKENIZERS)}")
    return with_added(TOKENIZERS[name](state), (EventRange(*row) for row in added))


def with_added(tokenizer: Tokenizer, added: Iterable[EventRange]) -> Tokenizer:
    """The tokenizer with more ids after all of its own, which no music is written with: they mean something to an
    objective alone, take no time and are never drawn. Its stores stay as they are. Raises ConfigError for a type that
    is there already, and for more ids than MAX_IDS."""
    rows = tuple(added)
    if not rows:
        return tokenizer
    vocab = replace(tokenizer.vocab, added=rows)
    types = [row.type for row in vocab.table]
    if twice := sorted({type for type in types if types.count(type) > 1}):
        raise ConfigError(f"added ids {', '.join(twice)}: the vocabulary has these already; give them other names")
    if min(row.hi - row.lo for row in rows) < 0 or vocab.size > MAX_IDS:
        raise ConfigError(f"added ids {', '.join(map(str, rows))}: give types with 1 id or more, {MAX_IDS} ids in all")
    grown = copy.copy(tokenizer)
    grown.vocab, more = vocab, (0, vocab.size - tokenizer.vocab.size)
    grown.pitch = np.pad(tokenizer.pitch, more, constant_values=-1)
    if tokenizer.pace is not None:
        grown.pace = np.pad(tokenizer.pace, more)
    return grown


def knows_one_piano(tokenizer: Tokenizer) -> bool:
    """Whether its notes have neither voices nor instruments."""
    return not (tokenizer.voices or tokenizer.programs)


__all__ = ["TOKENIZERS", "EventRange", "Ids", "Tokenizer", "Vocab", "build_tokenizer", "knows_one_piano", "with_added"]
