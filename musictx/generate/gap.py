"""A gap in music: its prompt, of both sides, and its fill."""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.errors import ConfigError, UserError
from musictx.generate.primer import ON_LINE_S, Prompt, program_of
from musictx.model.steps import newest
from musictx.music.beat_grid import BeatGrid
from musictx.music.grid import STEPS_PER_QUARTER, in_steps
from musictx.music.score import Meter, Score, merge_marked
from musictx.tokenizers import Ids, Tokenizer
from musictx.tokenizers.gap import STEPS, clock_of, longest, most_framing, read_first, split_at, step_of

MOST_S = 24 * 3600.0
LARGEST = 0.75  # largest share of the window that a gap may take
SLACK = 8  # times the tokens that the music around a gap has in such a time: a longer fill is not music
NEAR_S = 20.0  # of each side say how dense the music is: a whole piece has other parts
MOST_RING_S = 1.0  # of a note over the second border, where no id says when the note ends
SPARE = 1.5  # times that density has room: of true middles of 2 to 10 s in MAESTRO's validation, 9 in 10 need no more


class Gap(NamedTuple):
    """The file's notes around a gap, and the ids of its sides, `before` (Ta,) and `after` (Tc,), which ends with
    EOS."""

    notes: Score
    before: Ids
    after: Ids
    from_s: float
    to_s: float
    meter: Meter
    grid: BeatGrid | None = None  # that new notes keep to

    @property
    def seconds(self) -> float:
        return self.to_s - self.from_s


def step_s(tokenizer: Tokenizer, quarter_s: float) -> float:
    """The least time between two borders, in seconds."""
    return quarter_s / STEPS_PER_QUARTER if tokenizer.metrical else STEPS[1]


def cut_gap(score: Score, audible: Score, from_s: float, to_s: float, meter: Meter, tokenizer: Tokenizer) -> Gap:
    """Cuts a gap out of a piece, at the nearest steps; `audible` are the notes that the model has. Raises ConfigError
    for an impossible region."""
    if not (abs(from_s) < MOST_S and abs(to_s) < MOST_S):  # refuses NaN too
        raise ConfigError("from_s", got=from_s, why=f"to_s={to_s:g}", allowed="seconds, as in from_s=8 to_s=12")
    step = step_s(tokenizer, audible.quarter_s)
    first, last, end = (round(at / step) for at in (from_s, to_s, audible.duration_s))
    if not 0 <= first < last:
        allowed = f"a region of at least one step, {step:g} s, from 0 on"
        raise ConfigError("from_s", got=from_s, why=f"to_s={to_s:g}", allowed=allowed)
    if last >= end:
        why = f"the music ends at {audible.duration_s:.2f} s, and something must come after the gap"
        raise ConfigError("to_s", got=to_s, why=why, allowed="an earlier one, or continue the music")
    unit = step_of(tokenizer)
    before, rest = split_at(tokenizer, tokenizer.encode(audible), first * unit)
    after = split_at(tokenizer, rest, (last - first) * unit)[1]
    on, off = in_steps(score, step)
    notes = score.select((on < first) | (off > last))
    return Gap(notes, before, with_eos(after, tokenizer), first * step, last * step, meter)


def join_with_gap(
    first: tuple[Score, Score],
    second: tuple[Score, Score],
    seconds: float,
    meter: Meter,
    tokenizer: Tokenizer,
    grid: BeatGrid | None = None,
) -> Gap:
    """One piece, a gap of `seconds`, and another piece; each as all notes, and those that the model has. With a grid
    the gap begins at the next bar line, and ends at a beat. Raises ConfigError for a gap shorter than a step."""
    (a, audible_a), (b, audible_b) = first, second
    end_s = a.duration_s if grid is None else float(meter.bars_s(a.duration_s - ON_LINE_S)[-1])
    step = step_s(tokenizer, a.quarter_s)
    before = tokenizer.encode(audible_a)
    # silence replaces last notes that the model cannot hear
    rest_s = round(end_s / step) * step - tokenizer.seconds(before, a.quarter_s)
    before = np.concatenate([before, tokenizer.silence(rest_s, a.quarter_s)]).astype(np.uint16)
    from_s = tokenizer.seconds(before, a.quarter_s)
    to_s = from_s + max(round(seconds / step), 0) * step
    if to_s <= from_s:
        raise ConfigError("Length.seconds", got=seconds, allowed=f"at least one step, {step:g} s")
    if grid is not None:  # they may lie between two steps of the clock
        beats = meter.beats_s(end_s + seconds + meter.bar_s)
        beats = beats[beats > end_s + ON_LINE_S]
        from_s, to_s = end_s, float(beats[np.abs(beats - end_s - seconds).argmin()])
    later = replace(b, onset_s=b.onset_s + to_s, offset_s=b.offset_s + to_s)
    notes = Score.merge([a, later], a.quarter_s)
    return Gap(notes, before, with_eos(tokenizer.encode(audible_b), tokenizer), from_s, to_s, meter, grid)


def with_eos(ids: Ids, tokenizer: Tokenizer) -> Ids:
    return np.append(ids, np.uint16(tokenizer.vocab.eos))


def gap_prompt(gap: Gap, tokenizer: Tokenizer, window: int | None, cycle: int = 1) -> Prompt:
    """The ids after the gap, then those before it, as many as a window has room for. Raises UserError for no room."""
    period, vocab = max(cycle, tokenizer.group), tokenizer.vocab
    before, after, n_tokens = gap.before, gap.after, tokens_in(gap, tokenizer)
    lasts = steps_in(gap, tokenizer) * step_of(tokenizer)  # on the clock, as all that follows
    room, room_on_clock = room_beside(gap, n_tokens, lasts, tokenizer, window, period)
    to_gap, from_gap = clock_of(tokenizer, before[::-1]), clock_of(tokenizer, after)  # (Ta,), (Tc,) away from the gap
    of_after = max(room_on_clock / 2, room_on_clock - to_gap.max(initial=0))
    n_after = int(np.searchsorted(from_gap, of_after, side="right"))
    n_after = min(n_after, max(room // 2, room - len(before)))
    after = after[: n_after if n_after == len(after) else n_after // period * period]
    of_before = room_on_clock - from_gap[: len(after)].max(initial=0)
    n_before = min(int(np.searchsorted(to_gap, of_before, side="right")), room - len(after))
    x = newest(len(before), n_before, period) if n_before < len(before) else -1
    begin = np.append(np.uint16(vocab.bos), before) if x < 0 else before[x:]
    length = float(clock_of(tokenizer, begin)[-1]) + lasts
    if len(after):
        length += float(clock_of(tokenizer, after)[-1])
    first = read_first(tokenizer, after, len(begin) - 1 + n_tokens, length, period)
    context = np.concatenate([first, begin]).astype(np.int64)
    quarter_s = gap.notes.quarter_s
    program, unheard = program_of(gap.notes, tokenizer), len(before) - (len(begin) - 1)
    return Prompt(before, context, tokenizer.seconds(before, quarter_s), quarter_s, gap.meter, program, unheard)


def room_beside(
    gap: Gap, n_tokens: int, lasts: float, tokenizer: Tokenizer, window: int | None, period: int
) -> tuple[int, float]:
    """The room of both sides, in tokens and on the clock, beside `n_tokens` that last `lasts`. Raises UserError for too
    little."""
    room, advice = len(gap.before) + len(gap.after), "and fill more in several steps"
    if window is not None:
        # the grid knows how many tokens come; elsewhere a fill may be denser than its sides
        reserve = n_tokens if tokenizer.voices else int(np.ceil(SPARE * n_tokens))
        room = window - reserve - 1 - most_framing(period)
        if reserve > LARGEST * window or room < 2 * period:
            most = min(LARGEST * window, window - 1 - most_framing(period) - 2 * period) / reserve
            what = f"a gap of {gap.seconds:.1f} s is about {n_tokens} tokens, and the model hears {window} in all"
            raise UserError(what, f"give at most {math.floor(max(most, 0) * gap.seconds)} s, {advice}")
    if lasts > LARGEST * longest(tokenizer):
        most_s = LARGEST * longest(tokenizer) / lasts * gap.seconds
        raise UserError(f"a gap of {gap.seconds:.1f} s is too long", f"give at most {math.floor(most_s)} s, {advice}")
    return room, longest(tokenizer) - lasts


def steps_in(gap: Gap, tokenizer: Tokenizer) -> int:
    """The length of the gap in steps of time."""
    return round(gap.seconds / step_s(tokenizer, gap.notes.quarter_s))


def tokens_in(gap: Gap, tokenizer: Tokenizer) -> int:
    """The expected tokens of a fill: those of the grid, or as many as near the gap in that time."""
    if tokenizer.voices:
        return steps_in(gap, tokenizer) * tokenizer.voices
    ends_s = clock_of(tokenizer, gap.before[::-1]), clock_of(tokenizer, gap.after)  # (Ta,), (Tc,) away from the gap
    tokens = sum(int(np.searchsorted(at, NEAR_S)) for at in ends_s)
    seconds = sum(min(float(at[-1]), NEAR_S) for at in ends_s if len(at))
    return int(np.ceil(gap.seconds * tokens / max(seconds, 1.0)))


def most_tokens(gap: Gap, tokenizer: Tokenizer) -> int:
    """The most tokens of a fill."""
    return SLACK * (tokens_in(gap, tokenizer) + 32)


def ids_in_gap(gap: Gap, ids: Ids, tokenizer: Tokenizer) -> Ids:
    """The ids (T,) that fall into the gap."""
    return split_at(tokenizer, music_of(ids, tokenizer), steps_in(gap, tokenizer) * step_of(tokenizer))[0]


def music_of(ids: Ids, tokenizer: Tokenizer) -> Ids:
    return ids[ids < tokenizer.vocab.n_events]


def fill(
    gap: Gap, ids: Ids, tokenizer: Tokenizer, program: int | None, ringing: bool = False
) -> tuple[Score, NDArray[np.bool_]]:
    """The whole piece with the ids (T,) between its sides, and which notes are new, (N,).

    `ids` may go beyond the gap, and end notes there. With `ringing` a note without an end rings until the next note
    after the border, for a second at most. A note of the file that sounds across a border stays whole if the new music
    continues it."""
    around, step = gap.notes, step_s(tokenizer, gap.notes.quarter_s)
    first, last = round(gap.from_s / step), round(gap.to_s / step)
    on, off = in_steps(around, step)
    left, right = around.select(on < first), around.select(off > last)
    into, out_of = off[on < first] > first, on[off > last] < last  # sounding across the first border, and the second
    middle = tokenizer.decode(np.concatenate([gap.before, ids]), around.quarter_s)
    begin, end = in_steps(middle, step)
    inside = (begin < last) & (end > first)
    middle, begin, rings, end = middle.select(inside), begin[inside], end[inside], np.minimum(end[inside], last)

    left_off = np.where(into, gap.from_s, left.offset_s)
    new_off, is_new = end * step, np.ones(len(middle), dtype=bool)
    right_on, right_mask = np.where(out_of, gap.to_s, right.onset_s), np.ones(len(right), dtype=bool)
    left_of = dict[int, int]()  # a new note -> the note of the left side that it continues
    for k in np.flatnonzero(begin < first).tolist():
        free = into & (left.pitch == middle.pitch[k]) & ~np.isin(np.arange(len(left)), list(left_of.values()))
        if free.any():
            left_of[k], is_new[k] = int(np.flatnonzero(free)[0]), False
    reaching: list[int] = np.flatnonzero(end == last).tolist()
    for j in np.flatnonzero(out_of).tolist():
        alike = [k for k in reaching if middle.pitch[k] == right.pitch[j]]
        if alike:
            k, right_mask[j] = alike[0], False
            reaching.remove(k)
            new_off[k] = right.offset_s[j]
    end_s = tokenizer.seconds(np.concatenate([gap.before, ids]), around.quarter_s)  # of the last id
    next_s = float(right_on[right_on > gap.to_s].min(initial=gap.to_s + MOST_RING_S))
    for k in reaching if not tokenizer.voices else ():
        again = right_on[right.pitch == middle.pitch[k]]
        let_go_s = max(rings[k] * step, next_s if ringing and rings[k] >= round(end_s / step) else 0.0)
        new_off[k] = min(max(let_go_s, gap.to_s), float(again.min(initial=np.inf)))
    left_off[list(left_of.values())] = new_off[list(left_of)]
    new_on = np.maximum(begin, first) * step
    new = replace(middle.select(is_new), onset_s=new_on[is_new], offset_s=new_off[is_new])
    if program is not None:
        new = replace(new, program=np.array(program))
    sides = replace(left, offset_s=left_off), replace(right.select(right_mask), onset_s=right_on[right_mask])
    return merge_marked(Score.merge(sides, around.quarter_s), new)
