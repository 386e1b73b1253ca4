"""Negative log-likelihood in nats per token, beside what needs no model at all."""

import math
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from musictx.data.dataset import batch_segments, scoring_segments
from musictx.data.store import Split
from musictx.model.protocol import LanguageModel
from musictx.tokenizers import Tokenizer, Vocab


class Likelihood(NamedTuple):
    """Nats per token over `tokens` targets: every event after BOS, EOS not counted."""

    nll: float
    tokens: int


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
    total, count, pad = 0.0, 0, tokenizer.vocab.pad
    for batch in batch_segments(scoring_segments(split, tokenizer, segment), pad, batch_tokens):
        ids = batch.to(device)
        logits = model(ids[:, :-1]).float()  # (B, T, V)
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), ignore_index=pad, reduction="none")
        total += float(loss.double().sum())
        count += int((ids[:, 1:] != pad).sum())
    return Likelihood(total / count, count)


def uniform_nll(vocab: Vocab) -> float:
    """Every event equally likely: ln of their number."""
    return math.log(vocab.n_events)


def unigram_nll(train_ids: NDArray[np.uint16], ids: NDArray[np.uint16], vocab: Vocab) -> float:
    """Each event as likely as it is frequent in training, every count plus one."""
    counts = np.bincount(train_ids, minlength=vocab.n_events)[: vocab.n_events] + 1.0
    log_p = np.log(counts / counts.sum())
    return float(-log_p[ids].mean())
