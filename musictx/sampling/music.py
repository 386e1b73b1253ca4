"""A person's motif in, its continuations out: the one musical file above the sampling engine."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch

from musictx.errors import ConfigError, UserError
from musictx.model.protocol import LanguageModel
from musictx.notes.score import Score
from musictx.sampling.engine import MAX_SEED, Sampling, sample
from musictx.tokenizers import Tokenizer

CHECK_EVERY = 32  # tokens between two looks at how much music there is
MOST_SECONDS = 24 * 3600
MOST_TOKENS = 1_000_000  # of all variations together: their keys and values are kept in memory
MOST_VARIATIONS = 1000


class Continuation(NamedTuple):
    """Music that begins with the seed (or right after it) and the second at which the new music begins."""

    score: Score
    new_from_s: float
    complete: bool  # False: max_tokens was reached before length_seconds


def check_lengths(length_seconds: float, max_tokens: int, variations: int, seed: int) -> None:
    """Raises ConfigError for amounts of music and seeds that no continuation can have."""
    for name, value, most in (
        ("length_seconds", length_seconds, MOST_SECONDS),
        ("max_tokens", max_tokens, MOST_TOKENS),
        ("variations", variations, MOST_VARIATIONS),
    ):
        if not 0 < value <= most:  # refuses NaN too
            raise ConfigError(f"{name}={value}: give more than 0 and at most {most}")
    if max_tokens * variations > MOST_TOKENS:
        raise ConfigError(
            f"max_tokens={max_tokens} for variations={variations}: give at most {MOST_TOKENS} tokens in all"
        )
    if not 0 <= seed <= MAX_SEED:
        raise ConfigError(f"seed={seed}: give 0 to {MAX_SEED}")


def continue_score(
    seed_score: Score,
    model: LanguageModel,
    tokenizer: Tokenizer,
    sampling: Sampling,
    *,
    length_seconds: float,
    max_tokens: int = 4096,
    variations: int = 1,
    seed: int = 0,
    include_seed: bool = True,
    device: str = "cpu",
) -> list[Continuation]:
    """Continues a motif `variations` times by `length_seconds` of new music each; one prefill serves all.

    Raises UserError for a silent seed, TokenError for one the vocabulary cannot hold, ConfigError for impossible
    lengths.
    """
    check_lengths(length_seconds, max_tokens, variations, seed)
    if not len(seed_score):
        raise UserError("the seed has no notes: give one with music in it, or raise seed_seconds")
    quarter_s, vocab = seed_score.quarter_s, tokenizer.vocab
    motif = tokenizer.encode(seed_score)
    prompt = torch.from_numpy(np.concatenate([[vocab.bos], motif]).astype(np.int64)).to(device)
    # PAD and BOS are never music, and an EOS would end before the length that was asked for
    legal = torch.from_numpy(vocab.mask(*(row.type for row in vocab.events))).to(device)

    start_s = tokenizer.seconds(motif, quarter_s)
    end_s = start_s + length_seconds
    drawn: list[torch.Tensor] = []
    rows = np.zeros((variations, 0), dtype=np.uint16)
    complete = False
    for ids in sample(model, prompt, max_tokens, variations, sampling, seed, legal):
        drawn.append(ids)
        if len(drawn) % CHECK_EVERY == 0 or len(drawn) == max_tokens:
            rows = torch.stack(drawn, 1).cpu().numpy().astype(np.uint16)
            complete = all(start_s + tokenizer.seconds(row, quarter_s) >= end_s for row in rows)
            if complete:
                break
    out = []
    for row in rows:
        full = tokenizer.decode(np.concatenate([motif, row]), quarter_s)
        if not include_seed:  # a note held across the border is cut there, not lost
            full = replace(
                full, onset_s=np.where(full.offset_s > start_s + 1e-6, np.maximum(full.onset_s, start_s), full.onset_s)
            )
        score = full.clip(0.0 if include_seed else start_s, end_s)
        out.append(Continuation(score, start_s if include_seed else 0.0, complete))
    return out
