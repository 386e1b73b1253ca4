"""A primer as a model reads it: its ids up to the moment at which it ends, only the newest if there are too many."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.generate.primer import Primer
from musictx.model.steps import newest
from musictx.music.score import DRUMS, Meter, Score
from musictx.tokenizers import Ids, Tokenizer


class Prompt(NamedTuple):
    """`context` (P,): BOS and the ids, or the newest of them (`newest`)."""

    ids: Ids  # (T,)
    context: NDArray[np.int64]
    start_s: float  # when the new music begins
    quarter_s: float
    meter: Meter
    program: int | None  # for all notes, if ids do not say it
    unheard: int  # number of oldest ids that the model does not read


def make_prompt(primer: Primer | None, tokenizer: Tokenizer, window: int | None, cycle: int = 1) -> Prompt:
    """The prompt of a primer; None begins from nothing. `cycle` is the model's.

    Raises TokenError for a primer beyond the vocabulary."""
    bos = np.array([tokenizer.vocab.bos])
    if primer is None:
        nothing = tokenizer.decode(np.zeros(0, np.uint16))
        primer = Primer(nothing, 0.0, Meter(nothing.quarter_s))
    quarter_s = primer.score.quarter_s
    ids = tokenizer.encode(primer.score)
    ids = np.concatenate([ids, tokenizer.silence(primer.end_s - tokenizer.seconds(ids, quarter_s), quarter_s)])
    context = np.concatenate([bos, ids])
    period = max(cycle, tokenizer.group)
    if window is not None and len(context) > max(window, period):
        context = ids[newest(len(ids), window, period) :]
    return Prompt(
        ids.astype(np.uint16),
        context.astype(np.int64),
        tokenizer.seconds(ids, quarter_s),
        quarter_s,
        primer.meter,
        program_of(primer.score, tokenizer),
        max(len(ids) - len(context), 0),
    )


def program_of(score: Score, tokenizer: Tokenizer) -> int | None:
    """The instrument of most notes, which new notes get too; None if ids say it, or there is none."""
    melodic = score.program[score.program != DRUMS]
    return int(np.bincount(melodic).argmax()) if len(melodic) and not tokenizer.programs else None
