"""Negative log-likelihood in nats per token, beside what needs no model at all."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from musictx.data.dataset import batch_segments, scoring_segments
from musictx.data.store import Split
from musictx.evaluation.bootstrap import Interval, interval
from musictx.model.protocol import LanguageModel
from musictx.tokenizers import Tokenizer, Vocab


@dataclass(frozen=True)
class Likelihood:
    """What each piece of a split cost. Targets are every event after BOS, EOS not counted."""

    nats: NDArray[np.float64]  # (P,)
    tokens_of: NDArray[np.int64]  # (P,)

    @property
    def tokens(self) -> int:
        return int(self.tokens_of.sum())

    @property
    def nll(self) -> float:
        """Nats per token of the whole split: long pieces weigh more."""
        return float(self.nats.sum() / self.tokens)

    def per(self, amounts: NDArray[Any]) -> Interval:
        """Nats per unit of `amounts` (P,), the tokens, notes or seconds of each piece, with a bootstrap interval."""
        return interval(self.nats, amounts)


@torch.inference_mode()
def negative_log_likelihood(
    model: LanguageModel,
    split: Split,
    tokenizer: Tokenizer,
    segment: int | None,
    batch_tokens: int = 4096,
    device: str = "cpu",
) -> Likelihood:
    """Scores a split: whole pieces (`segment` None: the JSB protocol) or inputs of `segment` ids that do not
    overlap and carry nothing over (2048: the MAESTRO protocol). Raises StoreError for an empty split, ConfigError."""
    segments, pad = scoring_segments(split, tokenizer, segment, model.cycle), tokenizer.vocab.pad
    parts = [-(-len(piece) // (segment or max(len(piece), 1))) for piece in split]
    owner = np.repeat(np.arange(len(split)), parts)[np.argsort([len(s) for s in segments], kind="stable")]
    nats, done = np.zeros(len(split)), 0
    for batch in batch_segments(segments, pad, batch_tokens):
        ids = batch.to(device)
        logits = model(ids[:, :-1]).float()  # (B, T, V)
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), ignore_index=pad, reduction="none")
        rows = loss.double().view(len(ids), -1).sum(1).cpu().numpy()  # (B,)
        np.add.at(nats, owner[done : done + len(ids)], rows)
        done += len(ids)
    return Likelihood(nats, np.array([len(piece) for piece in split]))


def notes_and_seconds(split: Split, tokenizer: Tokenizer) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """How many notes each piece has, and how long it lasts (P,): figures per note compare across encodings."""
    scores = [tokenizer.decode(np.asarray(piece)) for piece in split]
    return np.array([len(s) for s in scores]), np.array([s.duration_s for s in scores])


def uniform_nll(vocab: Vocab) -> float:
    """Every event equally likely: ln of their number."""
    return math.log(vocab.n_events)


def unigram_nll(train_ids: NDArray[np.uint16], ids: NDArray[np.uint16], vocab: Vocab) -> float:
    """Each event as likely as it is frequent in training, every count plus one."""
    counts = np.bincount(train_ids, minlength=vocab.n_events)[: vocab.n_events] + 1.0
    log_p = np.log(counts / counts.sum())
    return float(-log_p[ids].mean())
