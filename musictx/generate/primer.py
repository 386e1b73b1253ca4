"""The primer, the part of a seed that a model continues, and its prompt, the ids."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.errors import ConfigError, UserError, counted
from musictx.model.steps import newest
from musictx.music.beat_grid import BeatGrid, find_grid, grid_by_name
from musictx.music.ending import ending_s
from musictx.music.score import DRUMS, Meter, Score
from musictx.setting import check_types
from musictx.tokenizers import Ids, Tokenizer
from musictx.tokenizers.rules import AUTO, OFF, Rules

ENDS = ("start", "end")
STARTS = (AUTO, "bar", "beat", "end")
ON_LINE_S = 0.02  # a note that ends so little after a line ends on it
ANY_MOMENT = "rules.grid=off for any moment"
ROUNDED_S = 0.01  # a time that a line printed may be so much later than what it means
AMOUNTS = ("seconds", "bars")
MOST_SAID = 9  # numbers of bars in a message
BARE = 17  # tokens at the seed's end that both streams of seed guidance read


def only_one(request: object, names: Iterable[str], prefix: str) -> dict[str, float]:
    """The one amount of a request, by its name, or none. Raises ConfigError for more."""
    amounts = {name: value for name in names if (value := getattr(request, name)) is not None}
    if len(amounts) > 1:
        (name, value), (other, too) = list(amounts.items())[:2]
        raise ConfigError(f"{prefix}{name}", got=value, why=f"{prefix}{other}={too} too", allowed="one of them")
    return amounts


class Primer(NamedTuple):
    """Music from time 0 to `end_s`, where new music begins."""

    score: Score
    end_s: float
    meter: Meter
    left_out_s: float | None = None  # of the seed: where its ending begins, if it is left out
    start_s: float = 0.0  # of the seed: where the primer begins
    grid: BeatGrid | None = None  # of new notes


@dataclass(frozen=True)
class Part:
    """The part of a seed: `seconds`, `bars` or all, from one `side`.

    The seed ends at `until_s`; None: with its last note, or before the ending of a finished piece. New music begins at
    the next bar line or beat, or at once (`end`). Auto: on a grid at a bar line, after a part at a beat; else at once.
    Raises ConfigError for both amounts, and for impossible values."""

    seconds: float | None = None
    bars: int | None = None
    side: str = "start"
    until_s: float | None = None
    start: str = AUTO
    on_beat: bool = False  # begins and ends on beats, for models of a grid

    def __post_init__(self) -> None:
        check_types(self, {**{name: f"seed_{name}" for name in AMOUNTS}, "side": "seed_from", "until_s": "from_s"})
        for name, value in only_one(self, AMOUNTS, "seed_").items():
            if not 0 < value < float("inf"):
                raise ConfigError(f"seed_{name}", got=value, allowed="more than 0, or leave it out for all")
        if self.until_s is not None and not self.until_s > 0:  # refuses NaN too
            raise ConfigError("from_s", got=self.until_s, allowed="more than 0, or leave it out for the music's end")
        if self.start not in STARTS:
            raise ConfigError("start", got=self.start, allowed=f"one of {', '.join(STARTS)}")
        if self.side not in ENDS:
            raise ConfigError("seed_from", got=self.side, allowed=f"one of {', '.join(ENDS)}")

    def beyond(self, bars: int, end_s: float) -> list[str]:
        """A remark on music that has less than this part."""
        if self.bars is not None and self.bars > bars:
            return [f"it has {counted(bars, 'bar')}, fewer than seed_bars={self.bars}"]
        if self.seconds is not None and self.seconds > end_s + ROUNDED_S:
            return [f"it ends at {end_s:.2f} s, before seed_seconds={self.seconds:g}"]
        return []


def grid_of(rules: Rules, score: Score, meter: Meter, tokenizer: Tokenizer) -> BeatGrid | None:
    """The grid of new notes; None for any moment, or the encoding's own grid. Raises ConfigError for one that the
    encoding cannot keep."""
    if tokenizer.metrical or tokenizer.pace is None:
        if rules.grid in (AUTO, OFF):
            return None
        why = f"{tokenizer.name} does not count time in seconds"
        raise ConfigError("grid", got=rules.grid, why=why, allowed="auto or off")
    if rules.grid == OFF or not rules.masks:
        return None
    return find_grid(score, meter) if rules.grid == AUTO else grid_by_name(rules.grid)


def say_grid(grid: BeatGrid) -> str:
    """A remark on the grid of a seed."""
    return f"its notes lie on a grid of {grid.name}, and so will new ones"


def begin_s(end_s: float, meter: Meter, part: Part, whole: bool, grid: BeatGrid | None) -> float:
    """Where new music begins after music that ends at `end_s`."""
    start = part.start
    if start == AUTO:
        start = "end" if grid is None else "bar" if whole else "beat"
    if start == "end":
        return end_s
    lines = meter.bars_s(end_s - ON_LINE_S) if start == "bar" else meter.beats_s(end_s - ON_LINE_S)
    return float(lines[-1])


def choose_primer(score: Score, meter: Meter, part: Part = Part(), grid: BeatGrid | None = None) -> Primer:
    """The requested part of a seed. Raises ConfigError for an end beyond the music, UserError for a part without
    notes."""
    if part.until_s is not None and len(score) and part.until_s > score.duration_s + ROUNDED_S:
        allowed = f"more than 0 and at most {score.duration_s:.2f}, where the music ends"
        raise ConfigError("from_s", got=part.until_s, allowed=allowed)
    from_end, end_s, until_s = part.side == "end" or part.until_s is not None, score.duration_s, part.until_s
    if until_s is not None:
        until_s = begin_s(until_s, meter, part, until_s >= end_s - ROUNDED_S, grid)
    elif from_end or (part.seconds, part.bars) == (None, None):
        until_s = ending_s(score)
        if until_s is not None and grid is not None and part.start in (AUTO, "bar"):
            lines = meter.bars_s(until_s + ON_LINE_S)
            until_s = float(lines[lines <= until_s + ON_LINE_S].max(initial=0.0)) or until_s
    is_cut = until_s is not None and until_s < end_s
    if until_s is not None and is_cut:
        end_s = _beat(until_s, score) if part.on_beat else until_s
        score = score.clip(0.0, end_s)
    left_out_s = end_s if is_cut and part.until_s is None else None
    start_s, stop_s = 0.0, end_s
    if part.bars is not None:
        lines, numbers = meter.numbered(end_s)
        begins = lines[np.unique(numbers, return_index=True)[1]]  # a number may stand for two parts of one bar
        bar = meter.first_bar(begins) + part.bars
        start_s, stop_s = float(lines[0]), float(begins[bar] if bar < len(begins) else lines[-1])
        if from_end:
            start_s, stop_s = float(begins[max(len(begins) - 1 - part.bars, 0)]), float(lines[-1])
            stop_s = end_s if is_cut else stop_s
    elif part.seconds is not None:
        start_s, stop_s = (max(end_s - part.seconds, 0.0), end_s) if from_end else (0.0, min(part.seconds, end_s))
    if not is_cut and part.bars is None:
        stop_s = begin_s(stop_s, meter, part, stop_s >= end_s, grid)
    if part.on_beat:
        start_s = _beat(start_s, score)
    primer = score.clip(start_s, stop_s)
    if not len(primer):
        settings = [f"seed_{name}=" for name in AMOUNTS if getattr(part, name) is not None]
        more = "from_s=" if part.until_s is not None else (settings or ["seed_seconds="])[0]
        raise UserError("no notes to continue", f"give a seed with music in it, or raise {more}")
    return Primer(primer, stop_s - start_s, meter.part(start_s, stop_s), left_out_s, start_s, grid)


def bar_numbers(score: Score, meter: Meter) -> list[int]:
    """The numbers of a score's bars, without an upbeat."""
    lines, numbers = meter.numbered(score.duration_s)
    return [*dict.fromkeys(numbers[meter.first_bar(lines) : -1].tolist())]


def borders_s(first: int, last: int, score: Score, meter: Meter, source: object) -> tuple[float, float]:
    """The borders of bars in seconds, by their numbers; bar 1 follows an upbeat. Raises ConfigError, which names the
    source."""
    lines, numbers = meter.numbered(score.duration_s)
    check_bars(first, last, bar_numbers(score, meter), source)
    begin, end = np.searchsorted(numbers, first), np.searchsorted(numbers, last, side="right")
    return float(lines[begin]), float(lines[: end + 1][-1])


def check_bars(first: int, last: int, numbers: Collection[int], source: object) -> None:
    """Raises ConfigError, which names the source, for bars that are not among those of these numbers."""
    there = {*numbers}
    if first <= last and {first, last} <= there:
        return
    least, most = (min(numbers), max(numbers)) if numbers else (1, 0)
    gone = [str(number) for number in islice((n for n in range(least, most) if n not in there), MOST_SAID)]
    allowed = f"bars from {least} to {most}" + f"; the page has no {', '.join(gone)}" * bool(gone)
    raise ConfigError("from_bar", got=first, why=f"to_bar={last}", allowed=allowed).of(source)


def _beat(at_s: float, score: Score) -> float:
    """The beat at a moment, or the one before it."""
    return float(max(np.floor(at_s / score.quarter_s + 1e-6), 0) * score.quarter_s)


class Prompt(NamedTuple):
    """A primer as the model reads it."""

    ids: Ids  # (T,)
    context: NDArray[np.int64]  # (P,) BOS and the ids, or the `newest` of them
    start_s: float  # where the new music begins
    quarter_s: float
    meter: Meter
    program: int | None  # for all notes, if ids do not say it
    unheard: int  # number of oldest ids that the model does not read


def make_prompt(primer: Primer | None, tokenizer: Tokenizer, window: int | None, cycle: int = 1) -> Prompt:
    """The prompt of a primer, None for none. Raises TokenError for a primer beyond the vocabulary."""
    bos = np.array([tokenizer.vocab.bos])
    if primer is None:
        silence = tokenizer.decode(np.zeros(0, np.uint16))
        primer = Primer(silence, 0.0, Meter(silence.quarter_s))
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
    """The program of most notes; None if ids have programs, or there are no notes."""
    melodic = score.program[score.program != DRUMS]
    return int(np.bincount(melodic).argmax()) if len(melodic) and not tokenizer.programs else None


def bare_prompt(context: NDArray[np.int64], period: int, n_new: int = 0) -> NDArray[np.int64]:
    """The end of a context (P,) and `n_new` tokens after it, for the second stream of seed guidance; a short context
    whole, which guides nothing."""
    ids, most = context[1:], BARE + n_new  # after BOS, or the token in its place
    return ids[newest(len(ids), most, period) :] if len(ids) > max(most, period) else context
