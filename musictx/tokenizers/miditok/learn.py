"""Learns byte pairs from a corpus."""

import json
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from musictx.errors import ConfigError
from musictx.tokenizers.miditok.merges import MAX_PART, as_text
from musictx.tokenizers.miditok.tokens import MidiTokTokenizer
from musictx.tokenizers.vocab import MAX_IDS, SPECIALS


def check_size(name: str, vocab_size: int) -> MidiTokTokenizer:
    """The tokenizer without merges. Raises ConfigError for a size below its vocabulary or above 65,535."""
    tokenizer = MidiTokTokenizer(name)
    if not tokenizer.vocab.size <= vocab_size <= MAX_IDS:
        allowed = f"{tokenizer.vocab.size}, the size of {name}, to {MAX_IDS}"
        raise ConfigError("bpe_vocab", got=vocab_size, allowed=allowed)
    return tokenizer


def train_bpe(name: str, pieces: Iterable[NDArray[np.integer]], vocab_size: int) -> MidiTokTokenizer:
    """The tokenizer `name` with merges from pieces of its base ids; deterministic. `vocab_size` counts all
    tokens; a small corpus yields fewer. Raises ConfigError for a size below the base vocabulary or above 65,535."""
    tokenizer = check_size(name, vocab_size)
    from tokenizers import Tokenizer
    from tokenizers.models import BPE
    from tokenizers.trainers import BpeTrainer

    n_base = tokenizer.vocab.n_events
    model = Tokenizer(BPE())
    trainer = BpeTrainer(
        vocab_size=vocab_size - len(SPECIALS),
        min_frequency=2,
        show_progress=False,
        initial_alphabet=[as_text([i]) for i in range(n_base)],  # every base token, used or not, in order of id
        max_token_length=MAX_PART,
    )
    model.train_from_iterator((tokenizer.units(tokenizer.events(ids)) for ids in pieces), trainer)
    ids = model.get_vocab()
    merges = [[ids[a], ids[b]] for a, b in json.loads(model.to_str())["model"]["merges"]]
    return MidiTokTokenizer(name, json.dumps(merges, separators=(",", ":")) if merges else "")
