"""Byte pairs on top of MidiTok's tokens."""

import json
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from musictx.errors import UserError
from musictx.tokenizers.vocab import Ids

MAX_PART = 256  # base tokens in one BPE token
FIRST_CHAR = 0x4E00  # BPE works on text: a base id is a Chinese character, so none is a space

BaseIds = NDArray[np.int64]  # (T,) ids of MidiTok's own tokens only: no BPE, no PAD, BOS, EOS


class Merges:
    """BPE merges: `parts[id]` are an id's base ids. Raises UserError for a damaged state."""

    def __init__(self, n_base: int, state: str) -> None:
        from tokenizers import Tokenizer
        from tokenizers.models import BPE

        self.parts = [(i,) for i in range(n_base)]
        words, merges = set(self.parts), []
        try:
            for a, b in json.loads(state):
                whole = self.parts[a] + self.parts[b]
                if min(a, b) < 0 or len(whole) > MAX_PART:  # repeated doubling would fill the memory
                    raise ValueError(whole)
                merges.append((as_text(self.parts[a]), as_text(self.parts[b])))
                if whole not in words:  # two merges that make the same word share its id
                    words.add(whole)
                    self.parts.append(whole)
        except (ValueError, TypeError, IndexError, RecursionError):
            raise UserError("the tokenizer's BPE merges are damaged", "prepare the data again") from None
        self._model = Tokenizer(BPE({as_text(part): i for i, part in enumerate(self.parts)}, merges))

    def expand(self, ids: NDArray[np.integer]) -> BaseIds:
        return np.array([base for i in ids.tolist() for base in self.parts[i]], dtype=np.int64)

    def apply(self, units: list[str]) -> Ids:
        return np.array(self._model.encode(units, is_pretokenized=True).ids, dtype=np.uint16)


def learn_merges(corpus: Iterable[list[str]], n_base: int, most_ids: int) -> str:
    """The state of `Merges` for texts of base ids; "" where no pair repeats."""
    from tokenizers import Tokenizer
    from tokenizers.models import BPE
    from tokenizers.trainers import BpeTrainer

    model = Tokenizer(BPE())
    trainer = BpeTrainer(
        vocab_size=most_ids,
        min_frequency=2,
        show_progress=False,
        initial_alphabet=[as_text([i]) for i in range(n_base)],  # every base token, used or not, in order of id
        max_token_length=MAX_PART,
    )
    model.train_from_iterator(corpus, trainer)
    ids = model.get_vocab()
    merges = [[ids[a], ids[b]] for a, b in json.loads(model.to_str())["model"]["merges"]]
    return json.dumps(merges, separators=(",", ":")) if merges else ""


def as_text(base: Sequence[int] | BaseIds) -> str:
    """Base ids as the text of BPE."""
    return (np.asarray(base, dtype="<u4") + FIRST_CHAR).tobytes().decode("utf-32-le")
