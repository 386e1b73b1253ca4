"""Fill gain: what knowing what comes after a gap is worth on the true middle, in nats a token, without drawing a note.

Each piece has gaps at random moments. A model reads its true middle after both sides, and after the left side alone;
another that never learnt to fill reads it after the left side alone too.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.data.store import Split
from musictx.errors import UserError
from musictx.evaluation.bootstrap import Interval, interval
from musictx.evaluation.seed_gain import log_p_of_last
from musictx.model.protocol import LanguageModel, newest
from musictx.notes.meter import Meter
from musictx.sampling.gap import Gap, cut_gap, gap_prompt, step_s, steps_in
from musictx.tokenizers import Ids, Tokenizer
from musictx.tokenizers.gap import clock_of, split_at, step_of

MARGIN_S = 2.0  # of music on both sides at least


class TrueGap(NamedTuple):
    """A gap, and what stands there."""

    piece: int
    gap: Gap
    middle: Ids  # (T,)


class FillGain(NamedTuple):
    """Nats a token of the true middles of one length, each with its interval over pieces; and of both sides' and the
    left's readings, how much less the first costs, in parts of the gap counted from its end."""

    seconds: float
    gaps: int
    pieces: int
    both: Interval
    left: Interval
    plain: Interval | None
    gain: Interval  # left - both
    to_end_s: NDArray[Any]  # (W,) the far end of each part
    gain_to_end: list[Interval]  # (W,)


def true_gaps(split: Split, tokenizer: Tokenizer, seconds: float, per_piece: int, seed: int = 0) -> list[TrueGap]:
    """Gaps at moments drawn evenly over each piece that is long enough. Raises UserError for fewer than two pieces."""
    found = []
    for i, piece in enumerate(split):
        ids, rng = np.asarray(piece), np.random.default_rng((seed, i))
        score = tokenizer.decode(ids)
        step = step_s(tokenizer, score.quarter_s)
        steps, margin = round(seconds / step), round(MARGIN_S / step)
        last = int(score.duration_s / step) - steps - margin
        for first in rng.integers(margin, last + 1, per_piece) if last >= margin else ():
            gap = cut_gap(score, score, first * step, (first + steps) * step, Meter(score.quarter_s), tokenizer)
            rest = split_at(tokenizer, ids, first * step_of(tokenizer))[1]
            found.append(TrueGap(i, gap, split_at(tokenizer, rest, steps_in(gap, tokenizer) * step_of(tokenizer))[0]))
    if len({each.piece for each in found}) < 2:
        raise UserError(
            f"fewer than two pieces last for a gap of {seconds:g} s and {MARGIN_S:g} s beside it: give less"
        )
    return found


def fill_gain(
    model: LanguageModel,
    tokenizer: Tokenizer,
    gaps: list[TrueGap],
    window: int | None,
    part_s: float,
    plain: LanguageModel | None = None,
    device: str = "cpu",
) -> FillGain:
    """One model, whose `window` is how much it hears, and perhaps one that never learnt to fill."""
    pieces = sorted({each.piece for each in gaps})
    length_s = gaps[0].gap.seconds
    n_parts = int(np.ceil(length_s / part_s - 1e-6))
    nats = np.zeros((3, len(pieces)))  # both sides, left side, left side by the plain model
    counts = np.zeros(len(pieces))
    parts, in_parts = np.zeros((n_parts, len(pieces))), np.zeros((n_parts, len(pieces)))
    for piece, gap, middle in gaps:
        row = pieces.index(piece)
        heard = gap_prompt(gap, tokenizer, window, "cpu", model.cycle).heard.numpy()
        left = left_side(gap, tokenizer, window, len(middle), model.cycle)
        readers = [(model, heard), (model, left), *([(plain, left)] if plain else [])]
        costs = [-log_p_of_last(m, np.concatenate([begin, middle]), len(middle), device) for m, begin in readers]
        for k, cost in enumerate(costs):
            nats[k, row] += cost.sum()
        counts[row] += len(middle)
        per_s = steps_in(gap, tokenizer) * step_of(tokenizer) / gap.seconds  # of the clock
        to_end_s = gap.seconds - clock_of(tokenizer, middle) / per_s
        part = np.clip((to_end_s / part_s).astype(int), 0, n_parts - 1)
        np.add.at(parts[:, row], part, costs[1] - costs[0])
        np.add.at(in_parts[:, row], part, 1)
    return FillGain(
        length_s,
        len(gaps),
        len(pieces),
        interval(nats[0], counts),
        interval(nats[1], counts),
        interval(nats[2], counts) if plain else None,
        interval(nats[1] - nats[0], counts),
        part_s * np.arange(1, n_parts + 1),
        [interval(parts[k], in_parts[k]) for k in range(n_parts)],
    )


def left_side(gap: Gap, tokenizer: Tokenizer, window: int | None, middle: int, cycle: int) -> NDArray[np.integer]:
    """BOS and what is before the gap, or the newest of it: as much as leaves room for the middle."""
    period = max(cycle, tokenizer.group)
    if window is None or len(gap.before) + 1 + middle <= window:
        return np.append(np.uint16(tokenizer.vocab.bos), gap.before)
    return gap.before[newest(len(gap.before), window - middle, period) :]
