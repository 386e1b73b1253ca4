"""Windows of ids for training (random crops, augmented on the fly) and for scoring (every token once)."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from musictx.data.store import Split
from musictx.errors import ConfigError, StoreError
from musictx.tokenizers import Ids, Tokenizer

FASTEST, SLOWEST = 0.75, 1.33  # beyond these a stretched clock is another piece of music


class RandomCrops(Dataset[Tensor]):
    """Windows of `length + 1` ids without end: number `index` is a function of (seed, index) alone.

    A piece is drawn in proportion to its length. Its window slides over both ends and is then moved inside,
    so that first and last tokens are seen as often as the others and many windows begin with BOS. The others begin
    with the token before a group (of the tokenizer's, or of `cycle` tokens), in the place of BOS.
    Raises ConfigError, TokenError for lengths and factors that the tokenizer cannot take.
    """

    def __init__(
        self,
        split: Split,
        tokenizer: Tokenizer,
        length: int,
        seed: int,
        transpose: int = 0,
        stretch: Sequence[float] = (1.0,),
        cycle: int = 1,
    ) -> None:
        if not stretch or not all(SLOWEST >= factor >= FASTEST for factor in stretch):  # refuses NaN too
            raise ConfigError(f"data.stretch={list(stretch)}: give factors from {FASTEST} to {SLOWEST}, [1.0] for none")
        self.period = max(cycle, tokenizer.group)
        if length < self.period:
            raise ConfigError(
                f"data.length={length}: windows begin every {self.period} ids; give {self.period} or more"
            )
        for factor in stretch:  # refused here, not in the middle of a run
            tokenizer.stretch(np.zeros(0, np.uint16), factor)
        self.split, self.tokenizer, self.length = split, tokenizer, length
        self.seed, self.transpose, self.stretch = seed, transpose, tuple(stretch)

    def __getitem__(self, index: int) -> Tensor:
        """(length + 1,) int64: BOS, events, EOS, filled up with PAD."""
        rng = np.random.default_rng((self.seed, index))
        factor = float(rng.choice(self.stretch))
        token = int(rng.integers(self.split.offsets[-1]))
        piece = self.split[int(np.searchsorted(self.split.offsets, token, side="right")) - 1]
        # a faster clock needs fewer ids for the same music: read some more
        wanted = self.length if factor >= 1 else int(self.length / factor) + 1
        last = max(len(piece) - wanted + 1, 0)
        last += -last % self.period  # EOS is inside from here on
        start = int(np.clip(rng.integers(-wanted, max(len(piece), last + 1)), 0, last))
        start -= start % self.period
        body = self.augment(np.asarray(piece[max(start - 1, 0) : start + wanted]), factor, rng)
        vocab = self.tokenizer.vocab
        begin = [] if start else [vocab.bos]
        end = [vocab.eos] if start + wanted > len(piece) else []
        window = np.array([*begin, *body.tolist(), *end], dtype=np.int64)
        # a stretched piece may have more ids than were read for: its end must be seen too
        from_end = bool(end) and (start > 0 or (len(window) > self.length + 1 and rng.random() < 0.5))
        window = window[-self.length - 1 :] if from_end else window[: self.length + 1]
        return torch.from_numpy(np.pad(window, (0, self.length + 1 - len(window)), constant_values=vocab.pad))

    def augment(self, ids: Ids, factor: float, rng: np.random.Generator) -> Ids:
        """Stretches, then transposes by an amount that keeps every pitch inside the vocabulary."""
        if factor != 1.0:
            ids = self.tokenizer.stretch(ids, factor)
        span = self.tokenizer.pitch_range(ids)
        if self.transpose and span:
            low = max(-self.transpose, self.tokenizer.lo - span[0])
            high = min(self.transpose, self.tokenizer.hi - span[1])
            ids = self.tokenizer.transpose(ids, int(rng.integers(low, high + 1)))
        return ids


def check_segment(segment: int | None, cycle: int) -> None:
    """Raises ConfigError for a segment that holds nothing, or no whole cycles."""
    if segment is not None and segment < 1:
        raise ConfigError(f"data.segment={segment}: give 1 or more, or null for whole pieces")
    if segment is not None and segment % cycle:
        raise ConfigError(
            f"data.segment={segment}: the model counts places in cycles of {cycle} tokens; "
            f"give a multiple of {cycle}, or null for whole pieces"
        )


def scoring_segments(split: Split, tokenizer: Tokenizer, segment: int | None, cycle: int = 1) -> list[Ids]:
    """What likelihood is measured on: BOS and the events of a piece, whole (None) or cut into inputs of
    `segment` ids without overlap. Each array is one id longer than its input; every event is a target once.
    Raises StoreError when there are none, ConfigError for a segment that holds nothing, or no whole cycles."""
    check_segment(segment, cycle)
    if not len(split.ids):
        raise StoreError("the split holds no tokens to score: choose another split or prepare the data again")
    segments = []
    for i in range(len(split)):
        ids = np.concatenate([[tokenizer.vocab.bos], split[i]]).astype(np.uint16)
        step = segment or len(ids)
        segments += [ids[start : start + step + 1] for start in range(0, len(ids) - 1, step)]
    return segments


def batch_segments(segments: list[Ids], batch_tokens: int) -> list[list[int]]:
    """Numbers of segments of like length, which make a batch of at most `batch_tokens` ids (one segment at least).
    Raises ConfigError for a budget that holds nothing."""
    if batch_tokens < 1:
        raise ConfigError(f"data.score_batch_tokens={batch_tokens}: give 1 or more")
    batches: list[list[int]] = [[]]
    for i in sorted(range(len(segments)), key=lambda i: len(segments[i])):
        if batches[-1] and len(segments[i]) * (len(batches[-1]) + 1) > batch_tokens:
            batches.append([])
        batches[-1].append(i)
    return batches
