"""Music around a gap, in the order in which a model reads it: the music after the gap comes first.

    AFTER … C, BACK_1024 BACK_32 BACK_1, BEFORE … x A B

A is the music before the gap, B the fill, C the music after it; x is BOS or the token before A. This is the
suffix-prefix-middle of Bavarian et al. 2022 (arXiv 2207.14255, section 3.1). The digits of BACK move the clock back by
the length of A, B and C. AFTER and BEFORE keep a cycle of `period` tokens.
"""

import copy
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from musictx.errors import ConfigError, TokenError
from musictx.tokenizers.tokenizer import Tokenizer
from musictx.tokenizers.vocab import EventRange, Ids, Vocab

DIGITS = (1024, 32, 1)  # worth of the length's digits, in units
ADDED = (
    EventRange("AFTER", 0, 0),
    *(EventRange(f"BACK_{worth}", 0, 31) for worth in DIGITS),
    EventRange("BEFORE", 0, 0),
)
STEPS = 1.0, 0.01  # least time between borders: a sixteenth where the encoding counts beats, else 0.01 seconds
CLOSE = 1e-6  # tolerance, as a share of a unit: times are sums of floats

T = TypeVar("T", bound=Tokenizer)


def knows_gaps(vocab: Vocab) -> bool:
    """Whether the vocabulary has the ids of `ADDED`."""
    return all(row in vocab.added for row in ADDED)


def step_of(tokenizer: Tokenizer) -> float:
    """The least time between borders, on the clock."""
    return STEPS[0] if tokenizer.metrical else STEPS[1]


def unit_of(tokenizer: Tokenizer) -> float:
    """The unit of a length: a token of a grid, else a step."""
    return step_of(tokenizer) / tokenizer.group


def with_gap_clock(tokenizer: T) -> T:
    """The tokenizer with a clock that BACK moves back. Raises ConfigError without a clock."""
    if tokenizer.pace is None:
        why = f"{tokenizer.name} tokens carry no time, and gaps are times"
        raise ConfigError("objective", got="infill", why=why, hint="choose tokenizer=chorale or performance")
    result, vocab = copy.copy(tokenizer), tokenizer.vocab
    result.pace = tokenizer.pace.copy()
    for worth in DIGITS:
        value = vocab.values(f"BACK_{worth}")
        result.pace[value >= 0] = -worth * unit_of(tokenizer) * value[value >= 0]
    return result


def clock_of(tokenizer: Tokenizer, ids: NDArray[np.integer]) -> NDArray[np.float64]:
    """(T,) the clock after each id."""
    assert tokenizer.pace is not None  # with_gap_clock refuses others
    at: NDArray[np.float64] = np.cumsum(tokenizer.pace[ids])
    return at


def split_at(tokenizer: Tokenizer, ids: Ids, border: float) -> tuple[Ids, Ids]:
    """The music before and after a moment of the clock."""
    assert tokenizer.pace is not None
    at, is_shift = clock_of(tokenizer, ids), tokenizer.pace[ids] > 0
    tolerance = CLOSE * unit_of(tokenizer)
    k = int(np.searchsorted(at, border - tolerance))  # the token that reaches the border
    if k == len(ids):
        return ids, ids[:0]
    if border < tolerance:
        return ids[:0], ids
    if at[k] <= border + tolerance:
        return ids[: k + 1], ids[k + 1 :]
    first, last = k, k + 1  # the range of consecutive shifts
    while first and is_shift[first - 1]:
        first -= 1
    while last < len(ids) and is_shift[last]:
        last += 1
    start = float(at[first - 1]) if first else 0.0
    waits = tokenizer.silence(border - start), tokenizer.silence(float(at[last - 1]) - border)
    return np.concatenate([ids[:first], waits[0]]), np.concatenate([waits[1], ids[last:]])


def read_first(tokenizer: Tokenizer, after: Ids, before_tokens: int, length: float, period: int) -> Ids:
    """The ids before x: C and its frame. Raises TokenError for a length beyond BACK.

    `before_tokens` is that of A and B; `length` is of x, A, B and C together, on the clock.
    """
    units, vocab = round(length / unit_of(tokenizer)), tokenizer.vocab
    if not 0 <= units < 32 * DIGITS[0]:
        raise TokenError(f"{length:g} of music around a gap", f"give at most {longest(tokenizer):g}")
    begin = [vocab.id("AFTER")] * (before_tokens % period + 1)
    back = [vocab.id(f"BACK_{worth}", units // worth % 32) for worth in DIGITS]
    n_ids = len(begin) + len(after) + len(back)
    end = [vocab.id("BEFORE")] * (period - n_ids % period)
    return np.concatenate([begin, after, back, end]).astype(np.uint16)


def longest(tokenizer: Tokenizer) -> float:
    """The most for `length`, on the clock."""
    return (32 * DIGITS[0] - 1) * unit_of(tokenizer)


def most_framing(period: int) -> int:
    """The most tokens that this order adds to the music."""
    return 2 * period + len(DIGITS) + 1
