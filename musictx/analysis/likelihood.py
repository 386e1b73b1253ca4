"""Negative log-likelihood in nats per token, of models and of unigrams, and its gain by further training."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from musictx.analysis.bootstrap import Interval, interval
from musictx.data.scoring import (
    batch_segments,
    carried_batches,
    check_segment,
    check_stride,
    scoring_batch,
    scoring_segments,
)
from musictx.data.store import Split, Store
from musictx.errors import counted
from musictx.model.build import can
from musictx.objectives import Example, Objective
from musictx.objectives.next_token import NextToken
from musictx.tokenizers import Tokenizer, Vocab
from musictx.waiting import estimated

PASSAGE = 256  # tokens
FEWEST = 10  # passages: an interval over fewer is too often too narrow


@dataclass(frozen=True)
class Likelihood:
    """The nats and target tokens of each piece of a split; next tokens are all events after BOS, without EOS."""

    nats: NDArray[np.float64]  # (P,)
    tokens_of: NDArray[np.int64]  # (P,)

    @property
    def tokens(self) -> int:
        return int(self.tokens_of.sum())

    @property
    def nll(self) -> float:
        """Nats per token of the whole split: long pieces weigh more."""
        return float(self.nats.sum() / self.tokens)


@torch.inference_mode()
def negative_log_likelihood(
    model: Any,
    split: Split,
    tokenizer: Tokenizer,
    segment: int | None,
    batch_tokens: int = 4096,
    device: str = "cpu",
    objective: Objective | None = None,
    stride: int | None = None,
) -> Likelihood:
    """Scores a split by an objective, None: the next token. Raises StoreError for an empty split, ConfigError.

    `segment`: None reads whole pieces (the JSB protocol), 2048 is the MAESTRO protocol. With a `stride` inputs overlap,
    or a state is carried through whole pieces.
    """
    objective = objective or NextToken(tokenizer)
    check_stride(stride, objective)
    check_segment(segment, model.cycle, stride)
    carries = carries_state(model, stride)
    segments = scoring_segments(split, tokenizer, segment, model.cycle, None if carries else stride)
    lengths = [len(segment.ids) for segment in segments]
    batches = (
        carried_batches(segments, batch_tokens) if carries else [[n] for n in batch_segments(lengths, batch_tokens)]
    )
    owner = np.array([segment.piece for segment in segments])
    nats, tokens = np.zeros(len(split)), np.zeros(len(split), np.int64)
    what = f"scoring {counted(len(split), 'piece')}"
    for steps in estimated(batches, what, lambda steps: sum(lengths[n] for numbers in steps for n in numbers)):
        examples = (to_device(scoring_batch(segments, numbers, objective), device) for numbers in steps)
        by_example = (objective.loss(model, example, True) for example in examples)
        losses = carried_losses(model, examples, objective) if carries else by_example
        for numbers, (rows, counts) in zip(steps, losses, strict=True):  # (B,)
            np.add.at(nats, owner[numbers], rows.cpu().numpy())
            np.add.at(tokens, owner[numbers], counts.cpu().numpy())
    return Likelihood(nats, tokens)


def carries_state(model: Any, stride: int | None) -> bool:
    """Whether scoring carries the model's state through whole pieces."""
    return stride is not None and can(model, "carries")


def to_device(example: Example, device: str) -> Example:
    return Example([ids.to(device) for ids in example.inputs], example.targets.to(device))


def carried_losses(model: Any, examples: Iterable[Example], objective: Objective) -> Iterator[tuple[Tensor, Tensor]]:
    """Nats and tokens (B,) of examples whose rows continue the example before."""
    state: Any = None
    for example in examples:
        rows, length = example.targets.shape
        if state is None:
            state = model.init_state(rows, length)
        state = state.take(torch.arange(rows, device=example.targets.device))
        yield objective.loss(partial(model.carry, state=state), example, by_row=True)


def in_words(segment: int | None, stride: int | None, carries: bool) -> str:
    """The model's inputs during scoring, in words."""
    if carries:
        return f"whole pieces, the state carried over blocks of {segment} tokens"
    inputs = f"inputs of {segment} tokens" if segment else "whole pieces"
    return f"{inputs}, moved on by {stride}" if stride else inputs


def notes_and_seconds(split: Split, tokenizer: Tokenizer) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The number of notes and the duration of each piece, (P,)."""
    scores = [tokenizer.decode(np.asarray(piece)) for piece in split]
    return np.array([len(s) for s in scores]), np.array([s.duration_s for s in scores])


def unigram_nll(train_ids: NDArray[np.uint16], ids: NDArray[np.uint16], vocab: Vocab) -> float:
    """Nats per token by the frequencies in training, every count plus one."""
    counts = np.bincount(train_ids, minlength=vocab.n_events)[: vocab.n_events] + 1.0
    log_p = np.log(counts / counts.sum())
    return float(-log_p[ids].mean())


@dataclass(frozen=True)
class Evaluation:
    """Negative log-likelihood of one split under one model."""

    bundle: str
    store: str
    split: str
    segment: int | None  # null: whole pieces
    stride: int | None  # null: segments do not overlap
    inputs: str  # the same in words
    pieces: int
    tokens: int
    per_token: Interval
    per_note: Interval
    per_second: Interval
    uniform: float
    unigram: float


class Gain(NamedTuple):
    """Nats a token of held-out pieces before and after training."""

    before: float
    after: float
    difference: Interval  # below 0: better
    of_pieces: list[float]
    passages: int

    @property
    def is_better(self) -> bool:
        """Better on every piece, and surely over enough passages."""
        return self.passages >= FEWEST and self.difference.high < 0 and max(self.of_pieces) < 0


def gain(before: Any, after: Any, tokenizer: Tokenizer, test: Split, device: str) -> Gain:
    """The gain from one model to another on the same pieces."""
    passages, piece = passages_of(test)
    likelihoods = [
        negative_log_likelihood(model, passages, tokenizer, None, device=device) for model in (before, after)
    ]
    nats, tokens = np.array([each.nats for each in likelihoods]), likelihoods[0].tokens_of  # (2, P), (P,)
    change = nats[1] - nats[0]
    piece_changes = [float(change[piece == n].sum() / tokens[piece == n].sum()) for n in range(len(test))]
    per_token = nats.sum(1) / tokens.sum()
    return Gain(float(per_token[0]), float(per_token[1]), interval(change, tokens), piece_changes, len(tokens))


def passages_of(split: Split) -> tuple[Split, NDArray[np.int64]]:
    """Passages of the pieces, and the number of each one's piece (P,)."""
    starts = [np.arange(a, b, PASSAGE) for a, b in pairwise(split.offsets.tolist())]
    bounds = np.concatenate([*starts, split.offsets[-1:]]).astype(np.int64)
    piece = np.repeat(np.arange(len(starts)), [len(each) for each in starts])
    return Split(split.ids, bounds, [split.names[n] for n in piece]), piece


def distinct_pieces(store: Store) -> Split:
    """The test pieces, one of each group of near-duplicates."""
    test = store.split("test")
    # copies would seem to measure more
    copies = {name for group in store.manifest.extra["near_duplicates"] for name in group[1:]}
    numbers = [n for n, name in enumerate(test.names) if name not in copies]
    pieces = [test[n] for n in numbers]
    bounds = np.cumsum([0, *map(len, pieces)]).astype(np.int64)
    return Split(np.concatenate(pieces), bounds, [test.names[n] for n in numbers])
