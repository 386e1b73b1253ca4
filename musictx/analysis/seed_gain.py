"""Seed gain: nats a token that the whole seed saves on the true continuation, beside only its end."""

from bisect import bisect_left
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from musictx.analysis.bootstrap import interval
from musictx.errors import UserError, counted
from musictx.model.steps import newest
from musictx.tokenizers import Ids, Tokenizer
from musictx.waiting import estimated

END_TOKENS = 17  # of the seed's end, which the second reading has too: a beat of a chorale


class Place(NamedTuple):
    """The first token of each part of a continuation, and the end."""

    ids: Ids  # (T,)
    cuts: list[int]  # parts + 1


# 0: the seed is forgotten, or says nothing about the continuation; figures compare only over the same pieces
class SeedGain(NamedTuple):
    """The gain of each part (W,) over all pieces; `seconds` are the parts' ends."""

    seconds: NDArray[Any]
    mean: NDArray[Any]
    low: NDArray[Any]
    high: NDArray[Any]
    tokens: NDArray[np.int64]  # (W,) from the seed's beginning to the part's end, in the median piece
    pieces: int


def places(
    pieces: Iterable[Ids], tokenizer: Tokenizer, seed_s: float, parts: int, part_s: float, period: int
) -> list[Place]:
    """All pieces long enough, cut at whole periods of tokens. Raises UserError for fewer than two."""
    places = []
    for piece in pieces:
        ids = np.asarray(piece)
        cuts = [_index_at(ids, tokenizer, seed_s + k * part_s, period) for k in range(parts + 1)]
        if cuts[-1] <= len(ids) and cuts[0] > max(END_TOKENS, period):
            places.append(Place(ids[: cuts[-1]], cuts))
    if len(places) < 2:
        found = counted(len(places), "piece is", "pieces are")
        what = f"{found} long enough for a seed of {seed_s:g} s and {parts * part_s:g} s after it"
        raise UserError(what, "give shorter times")
    return places


def _index_at(ids: Ids, tokenizer: Tokenizer, seconds: float, period: int) -> int:
    """How many tokens come before that time, up to a whole period; len(ids) + 1 if it never comes."""
    if tokenizer.seconds(ids) < seconds - 1e-9:
        return len(ids) + 1
    n = bisect_left(range(len(ids)), seconds - 1e-9, key=lambda n: tokenizer.seconds(ids[:n]))
    return n + -n % period


def seed_gain(model: Any, tokenizer: Tokenizer, places: list[Place], part_s: float, device: str = "cpu") -> SeedGain:
    """The seed gain of one model. Raises ConfigError without positions for so many tokens."""
    period, bos = max(model.cycle, tokenizer.group), np.array([tokenizer.vocab.bos])
    gains, counts = [], []  # of each place: nats that the seed saves in each part, and the part's tokens
    for ids, cuts in estimated(places, f"seed gain at {counted(len(places), 'place')}", lambda place: len(place.ids)):
        seed, rest = ids[: cuts[0]], ids[cuts[0] :]
        end = seed[newest(len(seed), END_TOKENS, period) :]
        gain = log_p_of_last(model, np.concatenate([bos, ids]), len(rest), device)
        gain -= log_p_of_last(model, np.concatenate([end, rest]), len(rest), device)
        gains.append([gain[a - cuts[0] : b - cuts[0]].sum() for a, b in pairwise(cuts)])
        counts.append(np.diff(cuts))
    mean, low, high = np.array(list(map(interval, np.transpose(gains), np.transpose(counts)))).T
    seconds = part_s * np.arange(1, len(mean) + 1)
    tokens = np.median([cuts[1:] for _, cuts in places], axis=0).astype(np.int64)
    return SeedGain(seconds, mean, low, high, tokens, len(places))


@torch.inference_mode()
def log_p_of_last(model: Any, ids: NDArray[np.integer], last: int, device: str) -> NDArray[np.float64]:
    """(last,) the log-probability of each of the last ids (T,), given all before it."""
    sequence = torch.from_numpy(ids.astype(np.int64)).to(device)
    logits = model(sequence[None, :-1])[0, -last:].float()
    log_p: NDArray[np.float64] = logits.log_softmax(-1).gather(1, sequence[-last:, None])[:, 0].cpu().double().numpy()
    return log_p
