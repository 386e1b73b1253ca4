"""What a model gained by learning more: nats a token of pieces that neither it nor its beginning learned."""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.analysis.bootstrap import Interval, interval
from musictx.analysis.likelihood import negative_log_likelihood
from musictx.data.store import Split, Store
from musictx.tokenizers.tokenizer import Tokenizer

PASSAGE = 256  # tokens
FEWEST = 10  # passages: an interval over fewer is too often too narrow


class Gain(NamedTuple):
    """Held-out pieces before and after: nats a token each, their difference over passages, that of each piece."""

    before: float
    after: float
    difference: Interval  # below 0: better
    of_pieces: list[float]
    passages: int

    @property
    def is_better(self) -> bool:
        """On every piece, and surely over enough passages."""
        return self.passages >= FEWEST and self.difference.high < 0 and max(self.of_pieces) < 0


def gain(before: Any, after: Any, tokenizer: Tokenizer, test: Split, device: str) -> Gain:
    """Two models on the same pieces, passage by passage."""
    passages, piece = cut(test)
    scored = [negative_log_likelihood(model, passages, tokenizer, None, device=device) for model in (before, after)]
    nats, tokens = np.array([each.nats for each in scored]), scored[0].tokens_of  # (2, P), (P,)
    change = nats[1] - nats[0]
    of_pieces = [float(change[piece == n].sum() / tokens[piece == n].sum()) for n in range(len(test))]
    whole = nats.sum(1) / tokens.sum()
    return Gain(float(whole[0]), float(whole[1]), interval(change, tokens), of_pieces, len(tokens))


def cut(split: Split) -> tuple[Split, NDArray[np.int64]]:
    """Passages of the pieces, and the number of each one's piece (P,)."""
    starts = [np.arange(a, b, PASSAGE) for a, b in pairwise(split.offsets.tolist())]
    bounds = np.concatenate([*starts, split.offsets[-1:]]).astype(np.int64)
    piece = np.repeat(np.arange(len(starts)), [len(each) for each in starts])
    return Split(split.ids, bounds, [split.names[n] for n in piece]), piece


def different(store: Store) -> Split:
    """The held-out pieces, one of each group of near-duplicates: copies would seem to measure more."""
    test = store.split("test")
    copies = {name for group in store.manifest.extra["near_duplicates"] for name in group[1:]}
    numbers = [n for n, name in enumerate(test.names) if name not in copies]
    pieces = [test[n] for n in numbers]
    bounds = np.cumsum([0, *map(len, pieces)]).astype(np.int64)
    return Split(np.concatenate(pieces), bounds, [test.names[n] for n in numbers])
