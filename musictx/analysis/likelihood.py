"""Negative log-likelihood in nats per token, of models and of a baseline without a model."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from musictx.analysis.bootstrap import Interval
from musictx.data.dataset import batch_segments, scoring_batch, scoring_segments
from musictx.data.store import Split
from musictx.music.score import Score
from musictx.objectives import Example, Objective
from musictx.objectives.next_token import NextToken
from musictx.tokenizers import Tokenizer, Vocab


@dataclass(frozen=True)
class Likelihood:
    """The nats of each piece of a split. For next tokens the targets are all events after BOS, without EOS."""

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
) -> Likelihood:
    """Scores a split, by next tokens or by another objective. It reads whole pieces (`segment` None: the JSB protocol)
    or separate inputs of `segment` ids that do not overlap (2048: the MAESTRO protocol). Raises StoreError for an empty
    split, ConfigError."""
    asked = objective or NextToken(tokenizer)
    segments = scoring_segments(split, tokenizer, segment, model.cycle)
    parts = [-(-len(piece) // (segment or max(len(piece), 1))) for piece in split]
    owner = np.repeat(np.arange(len(split)), parts)
    nats, tokens = np.zeros(len(split)), np.zeros(len(split), np.int64)
    for numbers in batch_segments(segments, batch_tokens):
        inputs, targets = scoring_batch(segments, numbers, asked)
        example = Example([ids.to(device) for ids in inputs], targets.to(device))
        rows, counts = asked.loss(model, example, by_row=True)  # (B,)
        np.add.at(nats, owner[numbers], rows.cpu().numpy())
        np.add.at(tokens, owner[numbers], counts.cpu().numpy())
    return Likelihood(nats, tokens)


def notes_and_seconds(
    split: Split, tokenizer: Tokenizer, asked: Callable[[Score], Score] = lambda score: score
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """How many notes each piece has of those `asked` for, and how long it lasts (P,): figures per note compare across
    encodings."""
    scores = [tokenizer.decode(np.asarray(piece)) for piece in split]
    return np.array([len(asked(s)) for s in scores]), np.array([s.duration_s for s in scores])


def unigram_nll(train_ids: NDArray[np.uint16], ids: NDArray[np.uint16], vocab: Vocab) -> float:
    """The nats of a token if each event is as likely as it is frequent in training, every count plus one."""
    counts = np.bincount(train_ids, minlength=vocab.n_events)[: vocab.n_events] + 1.0
    log_p = np.log(counts / counts.sum())
    return float(-log_p[ids].mean())


@dataclass(frozen=True)
class Evaluation:
    """Negative log-likelihood of one split under one model; nats per token, per note and per second of music."""

    bundle: str
    store: str
    split: str
    segment: int | None  # null: whole pieces
    pieces: int
    tokens: int
    per_token: Interval
    per_note: Interval
    per_second: Interval
    uniform: float
    unigram: float
