"""New music in a score: some bars of some parts are drawn, all else is forced."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.errors import ConfigError
from musictx.generate.batch import Batch, Take
from musictx.generate.engine import BatchRow, begin_stream, enough_memory
from musictx.generate.requests import MOST_TOKENS, UNSAID, Accompany, Fill, NewMusic, Own, Request
from musictx.generate.score_control import ScoreSteering, check_control
from musictx.generate.score_loops import Loop
from musictx.generate.score_templates import SPARE, Template
from musictx.model.steps import Player, newest
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Note
from musictx.tokenizers.gap import knows_gaps, read_first
from musictx.tokenizers.rules import CHOIR_RULES
from musictx.tokenizers.score import ScoreTokenizer
from musictx.tokenizers.score.rules import Row
from musictx.tokenizers.vocab import Ids

FREE = -1  # in a script: ids are drawn until the one after it
SHARE = 3  # each side of a gap has at most this part of the window


class Script(NamedTuple):
    """Ids before the first free bar (A,), then those of free groups with FREE, and ids after the last one (C,). They
    begin with music, or with what is free: after silence a model goes on with silence."""

    before: Ids
    ids: list[int]
    places: dict[int, tuple[int, int]]  # the slot and the bar of each FREE
    after: Ids
    begin: int  # where its first bar begins in the score, in units

    @classmethod
    def of(cls, template: Template, tokenizer: ScoreTokenizer) -> "Script":
        """Raises TokenError for a score that the ids lack."""
        notation, free = template.notation, template.free
        if template.goes_on:  # without a bar ahead of it the last new bar would be an ending
            extra = notation.bars[-1]._replace(onset=notation.end)
            free |= {(slot, bar + 1) for slot, bar in free if bar + 1 == len(notation.bars)}
            notation = replace(notation, bars=(*notation.bars, extra), end=notation.end + extra.full)
        start = min(notation.silent_bars, *(bar for _, bar in free))
        groups = tokenizer.sections(notation, template.slots, template.ahead, start)
        groups = groups[: len(groups) - template.goes_on]  # of the bar after, only what is ahead
        is_free = [any((each.slot, each.bar) in free for each in group) for group in groups]
        first, last = is_free.index(True), len(groups) - is_free[::-1].index(True)
        ids, places = list[int](), dict[int, tuple[int, int]]()
        for section in (section for group in groups[first:last] for section in group):
            if section.slot is not None and (section.slot, section.bar) in free:
                places[len(ids) + 1] = section.slot, section.bar
                ids += [section.ids[0], FREE]
            else:
                ids += section.ids
        sides = ([i for group in side for each in group for i in each.ids] for side in (groups[:first], groups[last:]))
        before, after = (np.array(side, np.uint16) for side in sides)
        return cls(before, ids, places, after, notation.bars[start].onset)

    def context(self, tokenizer: ScoreTokenizer, window: int | None, period: int) -> NDArray[np.int64]:
        """(P,) BOS and the bars before that the window holds; those after come first, if the ids can say that."""
        before, after, bar, vocab = self.before, self.after, tokenizer.bar, tokenizer.vocab
        if not (knows_gaps(vocab) and len(after)):
            return np.asarray(_newest(before, window, tokenizer, period), np.int64)
        room = None if window is None else window // SHARE
        begin = _newest(before, room, tokenizer, period)
        if room is None or len(after) < room:
            after = np.append(after, np.uint16(vocab.eos))
        else:
            ends = np.flatnonzero(after == bar) + 1
            after = after[: ends[ends <= room].max(initial=0)]
        bars = sum(int((np.asarray(ids) == bar).sum()) for ids in (begin, self.ids, after))
        first = read_first(tokenizer, after, len(begin) - 1, bars, period)
        return np.concatenate([first, begin]).astype(np.int64)

    def bare(self, tokenizer: ScoreTokenizer) -> NDArray[np.int64]:
        """(P,) what the second stream of seed guidance reads: the last bar alone."""
        bars = np.flatnonzero(self.before[:-1] == tokenizer.bar)
        last = self.before[bars[-1] :] if len(bars) else np.append(np.uint16(tokenizer.vocab.bos), self.before)
        return last.astype(np.int64)


def _newest(before: Ids, room: int | None, tokenizer: ScoreTokenizer, period: int) -> Ids:
    """BOS and all ids, or a BAR in its place and the last whole bars."""
    if room is None or len(before) < room:
        return np.append(np.uint16(tokenizer.vocab.bos), before)
    bars = np.flatnonzero(before[:-1] == tokenizer.bar)
    bars = bars[bars >= len(before) - room]
    return before[bars[0] if len(bars) else newest(len(before), room, period) :]


class AroundParts:
    """The `Grammar` of a script: one id is legal where the script says it. Each row has a place of its own."""

    def __init__(self, row: Row, script: Script, rows: int, loop: Loop | None = None) -> None:
        """`row` has read what comes before the script; `loop`, the guard against one, too."""
        self.ids, self.tokenizer = script.ids, row.tokenizer
        self.rows, self.at = [copy.copy(row) for _ in range(rows)], [0] * rows
        self.loops = [] if loop is None else [copy.copy(loop) for _ in range(rows)]

    def legal(self) -> NDArray[np.bool_]:
        t = self.tokenizer
        masks = np.zeros((len(self.rows), t.vocab.size), dtype=bool)
        for b, (mask, row, k) in enumerate(zip(masks, self.rows, self.at, strict=True)):
            if k == len(self.ids):  # the row waits for the others
                mask[t.bar] = True
            elif self.ids[k] != FREE:
                mask[self.ids[k]] = True
            else:
                legal, ends = row.legal(), self.ids[k + 1]
                mask[t.at0 : t.bar], mask[ends] = legal[t.at0 : t.bar], legal[ends]
                mask[ends] |= not mask.any()
                if self.loops and (again := self.loops[b].pitch) is not None:
                    mask[again] &= mask.sum() == 1  # where nothing else is legal, it comes again
        return masks

    def draws(self, b: int) -> bool:
        """Whether the next id of row b is new music."""
        return self.at[b] < len(self.ids) and self.ids[self.at[b]] == FREE

    def update(self, ids: NDArray[np.int64]) -> None:
        for b, i in enumerate(ids.tolist()):
            if self.at[b] < len(self.ids):
                self.rows[b].take(i)
                if self.loops:
                    self.loops[b].take(i)
                self.at[b] = following(self.ids, self.at[b], i)

    def move(self, rows: NDArray[np.int64]) -> None:
        self.rows = [copy.copy(self.rows[n]) for n in rows.tolist()]
        self.at = [self.at[n] for n in rows.tolist()]
        if self.loops:
            self.loops = [copy.copy(self.loops[n]) for n in rows.tolist()]


def following(script: Sequence[int], k: int, i: int) -> int:
    """The place in a script after an id at place `k`."""
    if script[k] != FREE:
        return k + 1
    return k + 2 if i == script[k + 1] else k


@dataclass(frozen=True)
class BarsDone:
    """A row's `Goal`: so many ids `bar`."""

    bar: int
    bars: int

    def after(self, row: NDArray[np.integer]) -> float:
        return int((row == self.bar).sum()) / self.bars


class Drawn(NamedTuple):
    """The new notes of each slot, and the mean log-probability of their ids under the model alone, in nats."""

    notes: Mapping[int, list[Note]]
    mean_log_p: float
    stopped: str = ""  # why bars are missing


def draw_parts(
    template: Template,
    player: Player,
    tokenizer: ScoreTokenizer,
    request: Request,
    *,
    own: Own = UNSAID,
    window: int | None = None,
    report: Callable[[float, float], None] = lambda done, of: None,
) -> list[Drawn]:
    """Draws the free bars of a template, once a variation.

    Variation k depends on the template, the random seed and k alone. Raises TokenError for a score that the ids lack,
    ConfigError for settings that a score cannot keep, NanError, and UserError where memory runs out."""
    check_settings(request)
    has_seed = not isinstance(request, Accompany | Fill)  # guidance is about a seed
    sampling = request.sampling.suited({**own, **({} if has_seed else {"seed_guidance": None})})
    script, window = Script.of(template, tokenizer), window or player.window
    limits = template.limits(request.rules, request.control)
    row = Row(tokenizer, limits, now=(script.begin, script.begin))
    for i in script.before.tolist():
        row.take(i)
    context = script.context(tokenizer, window, max(player.cycle, tokenizer.group))
    bare = [] if sampling.strength is None else [script.bare(tokenizer)]
    loop = Loop.after(script.before.tolist(), script.after.tolist(), tokenizer) if sampling.guard else None
    goal = BarsDone(tokenizer.bar, script.ids.count(tokenizer.bar))
    room_for = MOST_TOKENS // (SPARE * len(script.ids))  # rows; a long score has fewer at once
    at_once, out = max(min(request.rows_at_once, request.variations, room_for), 1), list[Drawn]()
    limit = MOST_TOKENS // at_once
    if isinstance(request, NewMusic):
        limit = min(limit, request.max_tokens or limit)
    most = len(context) + limit
    room = min(most, window or most)
    for done in range(0, request.variations, at_once):
        numbers = range(done, min(done + at_once, request.variations))
        rows = [BatchRow(0, (request.random_seed, k)) for k in numbers]
        with enough_memory(at_once, "give a shorter score"):
            grammar = AroundParts(row, script, len(rows), loop)
            steering = ScoreSteering(request.control, template, grammar) if request.control.is_active else None
            stream = begin_stream(player, [context], rows, sampling, grammar, room, room < most, bare, steering)
            batch = Batch(stream, [goal] * len(rows), limit)
            for _ in batch:
                report(done + batch.share * len(rows), request.variations)
        out += [_read(take, script, template.notation, tokenizer) for take in batch.takes()]
    return out


def _read(take: Take, script: Script, notation: Notation, tokenizer: ScoreTokenizer) -> Drawn:
    """The notes of a row; they end with the last of the drawn bars in a line."""
    drawn: dict[tuple[int, int], list[int]] = {place: [] for place in script.places.values()}
    log_p, k = list[float](), 0
    for i, p in zip(take.ids.tolist(), take.log_p.tolist(), strict=True):
        if k == len(script.ids):
            break
        if script.ids[k] == FREE:
            slot, bar = script.places[k]
            log_p += [p] * (bar < len(notation.spans))
            if i != script.ids[k + 1]:
                drawn[slot, bar].append(i)
        k = following(script.ids, k, i)
    spans, notes = notation.spans, dict[int, list[Note]]()
    ends: dict[tuple[int, int], int] = {}
    inside = sorted(place for place in drawn if place[1] < len(spans))  # not what is ahead of the last bar
    for slot, bar in reversed(inside):
        ends[slot, bar] = ends.get((slot, bar + 1), spans[bar][1])
    for slot, bar in inside:
        ids = drawn[slot, bar]
        placed, _, _ = tokenizer.placed(np.array([0, tokenizer.part0 + slot, *ids]))
        for each in placed:
            onset = spans[bar][0].onset + each.note.onset
            length = min(each.note.length, ends[slot, bar] - onset)
            notes.setdefault(slot, []).append(Note(onset, length, each.note.pitch))
    return Drawn(notes, float(np.mean(log_p)) if log_p else 0.0, take.stopped if k < len(script.ids) else "")


def check_settings(request: Request) -> None:
    """Raises ConfigError for settings that a score cannot keep."""
    check_control(request.control)
    if isinstance(request, Accompany) and (strength := request.sampling.strength) is not None:
        raise ConfigError("seed_guidance", got=strength, why="new hands have no seed", hint="leave it out")
    for name in CHOIR_RULES:
        if getattr(request.rules, name):
            raise ConfigError(name, got=True, why="it is for chorale models", allowed="false")
    if not request.rules.masks:
        raise ConfigError("masks", got=False, why="a score has bars and parts", allowed="true")
