"""Held-out scores cut in two at a bar line, and a model's continuations of their beginnings.

All bars are heard as long, `BAR_S`, and as four quarters, whatever their meter: so one cut suits all pieces, and the
measures of music on beats know where bars begin.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from musictx.analysis.continuations import Beginnings
from musictx.data.store import Split
from musictx.errors import ConfigError, UserError
from musictx.generate.open_player import Playing
from musictx.generate.requests import Continue
from musictx.generate.score_templates import Template, more_bars
from musictx.generate.scores import draw_parts
from musictx.music.notation.parts import Note, Part
from musictx.music.score import Score
from musictx.tokenizers.score import ScoreTokenizer

BAR_S = 2.0
VELOCITY = 80


class Cut(NamedTuple):
    """A piece whose bars to draw are empty, and its notes on both sides of the cut, with where they begin."""

    template: Template
    before: list[Note]
    after: list[Note]
    begin: int
    at: int


def cut_scores(
    opened: Playing, split: Split, pieces: int, seed_s: float, length_s: float
) -> tuple[Beginnings, Callable[[Continue], list[Score]]]:
    """So many pieces of a split, spread evenly over it, and what continues them all. Raises UserError for fewer than
    two, ConfigError for lengths that are no whole bars."""
    tokenizer = opened.tokenizer
    assert isinstance(tokenizer, ScoreTokenizer)
    for name, seconds in (("seed_seconds", seed_s), ("length_seconds", length_s)):
        if seconds % BAR_S:
            raise ConfigError(name, got=seconds, why="scores are cut at bar lines", allowed=f"bars of {BAR_S:g} s each")
    bars = int(seed_s / BAR_S), int(length_s / BAR_S)
    fit = [found for ids in split if (found := cut(np.asarray(ids), tokenizer, *bars))]
    if min(len(fit), pieces) < 2:
        what = f"{len(fit)} pieces have {sum(bars)} whole bars of one meter"
        raise UserError(what, "give less for seed_seconds= or length_seconds=")
    chosen = [fit[n] for n in np.linspace(0, len(fit) - 1, min(pieces, len(fit))).round().astype(int)]
    seeds = [heard(each.before, each, each.begin) for each in chosen]
    true = [heard(each.after, each, each.at) for each in chosen]

    def continue_all(request: Continue) -> list[Score]:
        return [heard(_drawn(each, opened, tokenizer, request), each, each.at) for each in chosen]

    return Beginnings(seeds, true, seed_s, length_s), continue_all


def cut(ids: np.ndarray, tokenizer: ScoreTokenizer, seed_bars: int, new_bars: int) -> Cut | None:
    """A piece cut behind its first bars; None where these and the new ones are not whole, of one meter, and with notes
    on both sides."""
    whole = tokenizer.decode_notation(ids)
    first = int(whole.has_upbeat)
    spans = whole.spans[first : first + seed_bars + new_bars]
    if len(spans) < seed_bars + new_bars or any(
        bar[1:] != spans[0][0][1:] or end - bar.onset != bar.full for bar, end in spans
    ):
        return None
    at, end = spans[seed_bars][0].onset, spans[-1][1]
    slots = sorted({each.slot for each in tokenizer.placed(ids)[0]})  # of the parts
    sides = [(slot, part, _within(part, 0, at)) for slot, part in zip(slots, whole.parts, strict=True)]
    sides = [side for side in sides if side[2]]
    before = [note for _, _, notes in sides for note in notes]
    after = [note for _, part, _ in sides for note in _within(part, at, end)]
    if not before or not after:
        return None
    parts = tuple(replace(part, notes=tuple(notes)) for _, part, notes in sides)
    keys = tuple(key for key in whole.keys if key.onset < at)
    seed = replace(whole, parts=parts, bars=whole.bars[: first + seed_bars], end=at, keys=keys)
    template = more_bars(seed, tuple(slot for slot, _, _ in sides), new_bars)
    return Cut(template, before, after, spans[0][0].onset, at)


def _within(part: Part, begin: int, end: int) -> list[Note]:
    """The notes that begin between two places, no longer than up to the second."""
    return [
        note._replace(length=min(note.offset, end) - note.onset) for note in part.notes if begin <= note.onset < end
    ]


def _drawn(each: Cut, opened: Playing, tokenizer: ScoreTokenizer, request: Continue) -> list[Note]:
    (drawn,) = draw_parts(each.template, opened.player, tokenizer, request)
    if drawn.stopped:
        raise UserError("a score ended before its last bar", drawn.stopped)
    return [note for notes in drawn.notes.values() for note in notes]


def heard(notes: Iterable[Note], each: Cut, begin: int) -> Score:
    """The notes from a place on, which is time 0; an upbeat is left out."""
    rows = sorted({(note.onset, note.pitch, note.length) for note in notes if note.onset >= begin})
    onset, pitch, length = np.array(rows, np.int64).reshape(-1, 3).T
    unit_s = BAR_S / each.template.notation.bars[-1].full
    onset_s, offset_s = (onset - begin) * unit_s, (onset + length - begin) * unit_s
    return Score(onset_s, offset_s, pitch, np.full(len(rows), VELOCITY), BAR_S / 4)
