"""How good a fill is: what knowing the music after a gap is worth, and how the fill meets that music.

Fill gain needs no drawing. Each piece has gaps at random moments. A model reads the true middle after both sides, and
after only the left side. A model that was not trained to fill reads it after only the left side too.

Borders: notes cut there, and silence around them. Compare a model's fill with the composer's own notes
at the same borders: notes end, repeat and pause there too.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.analysis.bootstrap import Interval, interval
from musictx.analysis.seed_gain import log_p_of_last
from musictx.data.store import Split
from musictx.errors import ConfigError, UserError
from musictx.generate.gap import Gap, cut_gap, gap_prompt, step_s, steps_in
from musictx.model.protocol import LanguageModel, newest
from musictx.music.score import Meter, Score
from musictx.tokenizers import Ids, Tokenizer
from musictx.tokenizers.gap import clock_of, split_at, step_of

MARGIN_S = 2.0  # of music on both sides at least


class TrueGap(NamedTuple):
    """A gap, and the piece's own music in it."""

    piece: int
    gap: Gap
    middle: Ids  # (T,)


class FillGain(NamedTuple):
    """Nats a token of the true middles of one length, each with its interval over pieces. After both sides, after the
    left side, and by the plain model. The gain, left less both, also in parts of the gap counted from its end."""

    seconds: float
    gaps: int
    pieces: int
    both: Interval
    left: Interval
    plain: Interval | None
    gain: Interval  # left - both
    to_end_s: NDArray[Any]  # (W,) the far end of each part
    gain_to_end: list[Interval]  # (W,)


def true_gaps(
    split: Split, tokenizer: Tokenizer, seconds: float, per_piece: int, random_seed: int = 0
) -> list[TrueGap]:
    """Gaps at moments drawn evenly over each piece that is long enough. Raises UserError for fewer than 2 pieces."""
    found = []
    for i, piece in enumerate(split):
        ids, rng = np.asarray(piece), np.random.default_rng((random_seed, i))
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
            f"fewer than two pieces are long enough for a gap of {seconds:g} s and {MARGIN_S:g} s beside it: give less"
        )
    return found


def fill_gain(
    model: LanguageModel,
    tokenizer: Tokenizer,
    gaps: list[TrueGap],
    window: int | None,
    part_s: float,
    plain: LanguageModel | None = None,
) -> FillGain:
    """The fill gain of a model that looks back `window` tokens; `plain` is a model that was not trained to fill."""
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
        costs = [-log_p_of_last(m, np.concatenate([begin, middle]), len(middle), "cpu") for m, begin in readers]
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
    """BOS and the music before the gap, or its newest part that leaves room for the middle."""
    period = max(cycle, tokenizer.group)
    if window is None or len(gap.before) + 1 + middle <= window:
        return np.append(np.uint16(tokenizer.vocab.bos), gap.before)
    return gap.before[newest(len(gap.before), window - middle, period) :]


WITHIN_S = 0.005  # half a step of the 10 ms clock: anything nearer counts as on the border
SILENT_S = 0.5  # at about 1 in 80 true borders of MAESTRO's validation pieces, 1 in 230 of the JSB chorales'


class Border(NamedTuple):
    """The music at a border. Silence goes back no further than the filled part, and lasts to the next onset."""

    cut_notes: int  # end on the border, and their pitch begins again there
    ending_notes: int  # end on the border, the cut ones included
    silence_s: float  # around the border or touching it; 0 if a note sounds over it

    @property
    def silent(self) -> bool:
        return self.silence_s > SILENT_S

    @property
    def met(self) -> bool:
        """Whether no note is cut and there is no silence."""
        return not (self.cut_notes or self.silent)


def border(score: Score, from_s: float, to_s: float) -> Border:
    """The border at `to_s` of a whole piece that was filled from `from_s` to there. Raises ConfigError for a part
    without length or without music after it."""
    begun = score.onset_s < to_s - WITHIN_S
    if not 0 <= from_s < to_s or begun.all():
        last_s = score.onset_s.max(initial=0.0)
        why = f"to_s={to_s:g}, the last onset {last_s:g} s"
        raise ConfigError("from_s", got=from_s, why=why, allowed="0 <= from_s < to_s <= the last onset")
    first_s = float(score.onset_s[~begun].min())
    before = score.select(begun)
    ending = np.abs(before.offset_s - to_s) < WITHIN_S
    struck = score.pitch[np.abs(score.onset_s - to_s) < WITHIN_S]
    heard_s = max(before.duration_s, from_s)
    return Border(
        cut_notes=int(np.isin(before.pitch[ending], struck).sum()),
        ending_notes=int(ending.sum()),
        silence_s=max(first_s - heard_s, 0.0) if heard_s < to_s + WITHIN_S else 0.0,
    )


def summary(pieces: Sequence[Sequence[Border]]) -> dict[str, Interval]:
    """The shares of borders with a cut note, with silence, and met; and how many notes end on a border.
    Intervals are over N pieces of any number of borders each. Raises ConfigError for no borders."""
    count = [len(piece) for piece in pieces]
    measures: dict[str, Callable[[Border], float]] = {
        "cut": lambda b: b.cut_notes > 0,
        "silent": lambda b: b.silent,
        "met": lambda b: b.met,
        "ending_notes": lambda b: b.ending_notes,
    }
    return {name: interval([sum(map(of, piece)) for piece in pieces], count) for name, of in measures.items()}
