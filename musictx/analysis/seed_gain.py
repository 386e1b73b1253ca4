"""Seed gain: what seeing the seed is worth on the true continuation, in nats a token, without drawing a note.

Each piece is cut in two as for motif retention. A model reads it twice: once with the whole seed, once with only the
seed's end. The gain of a part of the continuation is how many fewer nats its tokens have the first time. 0 means that
the seed is forgotten, or says nothing about what follows; figures compare only over the same pieces.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from musictx.analysis.bootstrap import interval
from musictx.analysis.likelihood import Scored
from musictx.errors import ConfigError, UserError
from musictx.model.protocol import newest
from musictx.tokenizers import Ids, Tokenizer

END_TOKENS = 17  # of the seed's end, which the second reading has too: a beat of a chorale


class Place(NamedTuple):
    """Where a piece is cut: the index of the first token of each part of the continuation, and of the one after."""

    ids: Ids  # (T,)
    cuts: list[int]  # parts + 1


class SeedGain(NamedTuple):
    """The gain of each part over all pieces, with its interval over pieces; `seconds` (W,) are the parts' ends."""

    seconds: NDArray[np.float64]
    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    tokens: NDArray[np.int64]  # (W,) from the seed's beginning to the part's end, in the median piece
    pieces: int


def places(
    pieces: Iterable[Ids], tokenizer: Tokenizer, seed_s: float, parts: int, part_s: float, period: int
) -> list[Place]:
    """All pieces long enough for the seed and its continuation. Each is cut at the first whole `period` of tokens at or
    after each time. Raises UserError for fewer than two."""
    found = []
    for piece in pieces:
        ids = np.asarray(piece)
        cuts = [_index_at(ids, tokenizer.seconds, seed_s + k * part_s, period) for k in range(parts + 1)]
        if cuts[-1] <= len(ids) and cuts[0] > max(END_TOKENS, period):
            found.append(Place(ids[: cuts[-1]], cuts))
    if len(found) < 2:
        what = f"{len(found)} pieces are long enough for a seed of {seed_s:g} s and {parts * part_s:g} s after it"
        raise UserError(what, "give shorter times")
    return found


def _index_at(ids: Ids, lasts_s: Callable[[Ids], float], seconds: float, period: int) -> int:
    """How many tokens of `ids` come before that time, up to a whole period; len(ids) + 1 if that time never comes."""
    if lasts_s(ids) < seconds - 1e-9:
        return len(ids) + 1
    n = bisect_left(range(len(ids)), seconds - 1e-9, key=lambda n: lasts_s(ids[:n]))
    return n + -n % period


def gains(
    model: Scored,
    tokenizer: Tokenizer,
    found: list[Place],
    kept: int = END_TOKENS,
    device: str = "cpu",
    stranger: bool = False,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Nats that the seed saves in each part of each place, and the part's tokens, (P, W) both. The model reads all
    places whole, whatever its window. With `stranger` the second reading has the beginning of the next piece, in its
    own key, in place of the seed's. So every token keeps its place: a model of absolute positions also gains by
    knowing where it is. A stranger also misleads. Raises ConfigError for a model without positions for so many
    tokens."""
    period, bos = max(model.cycle, tokenizer.group), np.array([tokenizer.vocab.bos])
    saved, counts = [], []
    for k, (ids, cuts) in enumerate(found):
        seed, rest = ids[: cuts[0]], ids[cuts[0] :]
        end = seed[newest(len(seed), kept, period) :]
        if stranger:
            other = np.resize(found[(k + 1) % len(found)].ids, len(seed) - len(end))  # a short piece once more
            end = np.concatenate([bos, other, end])
        nats = _raised(model, np.concatenate([bos, seed]), end, rest, device)
        saved.append([nats[a - cuts[0] : b - cuts[0]].sum() for a, b in pairwise(cuts)])
        counts.append(np.diff(cuts))
    return np.array(saved), np.array(counts)


def seed_gain(model: Scored, tokenizer: Tokenizer, found: list[Place], part_s: float, device: str = "cpu") -> SeedGain:
    """The seed gain of one model on all places. Raises ConfigError as `gains` does."""
    gain, count = gains(model, tokenizer, found, device=device)  # (P, W)
    columns = [interval(gain[:, k], count[:, k]) for k in range(gain.shape[1])]
    mean, low, high = np.array(columns).T
    seconds = part_s * np.arange(1, gain.shape[1] + 1)
    tokens = np.median([cuts[1:] for _, cuts in found], axis=0).astype(np.int64)
    return SeedGain(seconds, mean, low, high, tokens, len(found))


def raised_by_seed(
    model: Scored, tokenizer: Tokenizer, ids: Ids, seed_s: float, quarter_s: float, device: str = "cpu"
) -> NDArray[np.float64]:
    """(T,) nats by which the seed, the music before `seed_s`, made each id of a piece likelier than only the seed's end
    did; NaN for the seed's own ids. The seed ends with a whole period of tokens. Raises ConfigError for a seed not
    longer than that end, and for a piece not longer than the seed."""
    period = max(model.cycle, tokenizer.group)
    n = _index_at(ids, lambda some: tokenizer.seconds(some, quarter_s), seed_s, period)
    least = max(END_TOKENS, period)
    if not least < n < len(ids):
        why = f"{min(n, len(ids))} of {len(ids)} tokens are the seed"
        allowed = f"a time before the end and after more than {least} tokens"
        raise ConfigError("seed_seconds", got=seed_s, why=why, allowed=allowed)
    seed, rest = ids[:n], ids[n:]
    begun, end = np.concatenate([[tokenizer.vocab.bos], seed]), seed[newest(n, END_TOKENS, period) :]
    return np.concatenate([np.full(n, np.nan), _raised(model, begun, end, rest, device)])


def _raised(
    model: Scored, begun: NDArray[np.integer], end: NDArray[np.integer], rest: Ids, device: str
) -> NDArray[np.float64]:
    """(len(rest),) nats by which one reading of what comes before makes each id of the rest likelier than another."""
    one, other = (log_p_of_last(model, np.concatenate([before, rest]), len(rest), device) for before in (begun, end))
    return one - other


@torch.inference_mode()
def log_p_of_last(model: Scored, ids: NDArray[np.integer], last: int, device: str) -> NDArray[np.float64]:
    """(last,) the log-probability of each of the last ids (T,), given all before it."""
    full = torch.from_numpy(ids.astype(np.int64)).to(device)
    logits = model(full[None, :-1])[0, -last:].float()
    log_p: NDArray[np.float64] = logits.log_softmax(-1).gather(1, full[-last:, None])[:, 0].cpu().double().numpy()
    return log_p
