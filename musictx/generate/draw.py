"""Continuations of primers and fills of gaps: music above the sampling engine, which knows only ids."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musictx.errors import ConfigError, TokenError, UserError, counted
from musictx.generate.batch import Batch, Progress, Take
from musictx.generate.character import Character, bounds_of, can_hold
from musictx.generate.chords import line_after
from musictx.generate.continuation import Continuation, after_primer
from musictx.generate.engine import BatchRow, StreamStep, begin_stream
from musictx.generate.gap import Gap, fill, gap_prompt, ids_in_gap, most_tokens, music_of
from musictx.generate.outcome import outcome
from musictx.generate.particles import Particles, random_keys
from musictx.generate.primer import Primer, Prompt, bare_prompt, grid_of, make_prompt
from musictx.generate.requests import MOST_TOKENS, UNSAID, Continue, Length, Own
from musictx.generate.steering import Steering
from musictx.model.steps import Player
from musictx.music.beat_grid import BeatGrid
from musictx.music.grid import STEPS_PER_QUARTER
from musictx.music.score import Meter, Score, merge_marked
from musictx.tokenizers import Ids, Tokenizer
from musictx.tokenizers.beat_grammar import BeatGrammar
from musictx.tokenizers.grammar import build_grammar
from musictx.tokenizers.rules import Rules
from musictx.tokenizers.score import ScoreTokenizer
from musictx.waiting import Waiting

MOST_LINES_S = 4 * 3600.0  # later notes may begin at any moment
OFF_GRID_S = 0.006  # a step of the clock that stands for a line is at most half a step away from it


def continue_primers(
    primers: Sequence[Primer | Gap | None],
    player: Player,
    tokenizer: Tokenizer,
    request: Continue,
    **settings: Any,
) -> list[list[Continuation]]:
    """All continuations of a `Drawing`."""
    drawing = Drawing(primers, player, tokenizer, request, **settings)
    drawing.draw_all()
    return drawing.continuations()


OF_SCORES = "a model of scores writes bars of parts, and continues no notes in seconds"


class Drawing:
    """An iterator that continues primers (None: from nothing) or fills gaps of one length; each step draws a token a
    row.

    The caller may end it after any step with `stop`. Variation k depends on the primer, the random seed and k alone.
    `own` are the bundle's settings where the sampling says auto.

    Raises TokenError for a primer beyond the vocabulary, NanError for NaN or infinite logits, ConfigError for a request
    that this model cannot meet."""

    def __init__(
        self,
        primers: Sequence[Primer | Gap | None],
        player: Player,
        tokenizer: Tokenizer,
        request: Continue,
        *,
        own: Own = UNSAID,
    ) -> None:
        request.refuse_humanize()
        if isinstance(tokenizer, ScoreTokenizer):
            raise UserError(OF_SCORES, "musictx generate and accompany give it scores")
        self.player, self.tokenizer = player, tokenizer
        has_seeds = all(isinstance(primer, Primer) for primer in primers)  # guidance is about a seed
        sampling = request.sampling.suited({**own, **({} if has_seeds else {"seed_guidance": None})})
        self.request = request = replace(request, sampling=sampling, window=request.window or player.window)
        self.primers, gaps = primers, [primer for primer in primers if isinstance(primer, Gap)]
        make = (tokenizer, request.window, player.cycle)
        self.prompts = [gap_prompt(p, *make) if isinstance(p, Gap) else make_prompt(p, *make) for p in primers]
        silence = tokenizer.decode(np.zeros(0, np.uint16))
        free = grid_of(request.rules, silence, Meter(silence.quarter_s), tokenizer)  # of a beginning from nothing
        self.grids = [free if primer is None else primer.grid for primer in primers]
        if gaps:  # all that the model hears must stay in the window
            most = max(most_tokens(gap, tokenizer) for gap in gaps)
            self.request = request = replace(request, window=None, max_tokens=request.max_tokens or most)
        asks = request.control.chords is not None  # once, before anything is drawn
        self.lines = [line_after(p, request.control, tokenizer) if asks else None for p in self.prompts]
        self.begins_s = [
            new_from_s(*each) for each in zip(self.prompts, self.grids, strict=True)
        ]  # on the prompts' clocks
        self.bare = list[NDArray[np.int64]]()
        if sampling.strength is not None:
            if not has_seeds:
                raise ConfigError(
                    "seed_guidance", got=sampling.strength, why="there is no seed", hint="give one, or leave it out"
                )
            self.bare = [bare_prompt(p.context, max(player.cycle, tokenizer.group)) for p in self.prompts]
        self.variations = [(i, k) for i in range(len(self.prompts)) for k in range(request.variations)]
        # the size of a batch must not shorten its rows
        self.each = request.rows_each
        most = max(min(len(self.variations) * self.each, Continue.rows_at_once), self.each)
        self.limit = min(request.max_tokens or MOST_TOKENS, MOST_TOKENS // most)
        if (tokens := request.length.tokens) is not None:  # a whole number of groups
            self.limit = min(self.limit, tokens + -tokens % tokenizer.group)
        self.takes: list[tuple[int, Take]] = []  # a row as drawn, and its prompt's number
        self.rows: list[tuple[int, int]] = []  # prompt and variation, of the batch under way
        self.batch: Batch | None = None

    def __iter__(self) -> Iterator[StreamStep]:
        at_once = max(self.request.rows_at_once // self.each, 1)
        for first in range(0, len(self.variations), at_once):
            self.rows = self.variations[first : first + at_once]
            self.batch = self._begin(self.rows)
            yield from self.batch
            self._keep()

    def draw_all(self) -> None:
        """Draws to the end, and prints its progress where it takes long."""
        n = len(self.variations)
        waiting = Waiting(f"drawing {counted(n, 'piece')} of new music", n)
        for _ in self:
            waiting.reach(len(self.takes) + (len(self.rows) * self.batch.share if self.batch else 0.0))

    def stop(self, why: str) -> None:
        """Ends the drawing; rows under way name the reason."""
        if self.batch is not None:
            self.batch.stop(why)
            self._keep()

    def continuations(self) -> list[list[Continuation]]:
        """The continuations so far, primer by primer; lists may be short."""
        out: list[list[Continuation]] = [[] for _ in self.prompts]
        for i, take in [*self.takes, *self._under_way()]:
            if len(take.ids):
                out[i].append(self._finish(take, i))
        return out

    def _begin(self, rows: Sequence[tuple[int, int]]) -> Batch:
        """A batch of rows (prompt, variation)."""
        request, tokenizer, prompts = self.request, self.tokenizer, sorted({i for i, _ in rows})
        each = [self.prompts[i] for i, _ in rows for _ in range(self.each)]
        ids, quarter_s = [p.ids for p in each], [p.quarter_s for p in each]
        on_grid = [self.grids[i] is not None for i, _ in rows for _ in range(self.each)]
        grammar, fold = build_grammar(tokenizer, request.rules, ids, quarter_s, on_grid), None
        if any(on_grid):
            lines = [self._lines_s(i) for i, _ in rows for _ in range(self.each)]
            grammar = grid_grammar = BeatGrammar(grammar, tokenizer, ids, lines)
            fold = grid_grammar.fold
        random_seed = request.random_seed
        keys = [BatchRow(prompts.index(i), key) for i, k in rows for key in random_keys(random_seed, k, self.each)]
        contexts, bare = [self.prompts[i].context for i in prompts], [self.bare[i] for i in prompts if self.bare]
        most = max(map(len, contexts)) + self.limit
        room = min(most, request.window or most)
        steering = Steering(request.control, tokenizer, each) if request.control.is_active else None
        character = self._character([i for i, _ in rows for _ in range(self.each)])
        stream = begin_stream(
            self.player, contexts, keys, request.sampling, grammar, room, room < most, bare, steering, fold, character
        )
        progress = [Progress(request.length, p.meter, tokenizer, p.ids, p.quarter_s) for p in each]
        particles = Particles(stream, self.each, [row.key for row in keys]) if self.each > 1 else None
        return Batch(stream, progress, self.limit, particles)

    def _character(self, of_row: Sequence[int]) -> Character | None:
        """The characters of rows; None without the guard, or in an encoding without keys."""
        tokenizer, free = self.tokenizer, self.request.control.free
        if not (self.request.sampling.guard and can_hold(tokenizer)):
            return None
        if (self.request.rules.lowest, self.request.rules.highest) != (Rules.lowest, Rules.highest):
            free = [*free, "low", "high"]
        most = {i: bounds_of(self._seeds(i), tokenizer, free) for i in set(of_row)}
        return Character([most[i] for i in of_row], tokenizer, [self.prompts[i].ids for i in of_row])

    def _seeds(self, i: int) -> list[Ids]:
        """The music whose character prompt i has."""
        primer, tokenizer = self.primers[i], self.tokenizer
        if isinstance(primer, Gap):
            return [music_of(ids, tokenizer) for ids in (primer.before, primer.after)]
        return [self.prompts[i].ids]

    def _lines_s(self, i: int) -> NDArray[np.float64] | None:
        """The places of prompt i's grid in seconds; None without a grid."""
        grid, prompt = self.grids[i], self.prompts[i]
        if grid is None:
            return None
        seconds = self.request.length.in_seconds(prompt.meter, prompt.start_s) or float(self.limit)
        return grid.lines_s(prompt.meter, prompt.start_s + min(seconds, MOST_LINES_S))

    def _under_way(self) -> list[tuple[int, Take]]:
        if self.batch is None:
            return []
        return [(i, take) for (i, _), take in zip(self.rows, self.batch.takes(), strict=True)]

    def _keep(self) -> None:
        self.takes += self._under_way()
        self.batch = None

    def _finish(self, take: Take, i: int) -> Continuation:
        gap, prompt, control = self.primers[i], self.prompts[i], self.request.control
        if isinstance(gap, Gap):
            ids = ids_in_gap(gap, take.ids, self.tokenizer)
            score, is_new = fill(gap, music_of(take.ids, self.tokenizer), self.tokenizer, prompt.program, ringing=True)
            mean_log_p = float(take.log_p[: len(ids)].mean())
            if gap.grid is not None:
                new = gap.grid.put_on(score.select(is_new), prompt.meter, gap.from_s, OFF_GRID_S)
                score, is_new = merge_marked(score.select(~is_new), new)
            lines = _lines(score, self.tokenizer)
            music = Continuation(
                score, gap.from_s, take.stopped, mean_log_p, prompt.unheard, is_new, gap.to_s, lines=lines
            )
        else:
            music = _decode(take, prompt, self.tokenizer, self.request.length, self.grids[i], self.begins_s[i])
        music = replace(music, held=take.held)
        if control.is_active:
            to_s = min(music.new_to_s, music.score.duration_s)
            lines_s = control.lines_s(prompt.meter, music.new_from_s)[1]
            chords, summary = outcome(control, music.new_notes, music.new_from_s, to_s, lines_s, self.lines[i])
            music = replace(music, chords=chords, became=summary)
        return music if self.request.include_seed else after_primer(music)


def new_from_s(prompt: Prompt, grid: BeatGrid | None) -> float:
    """The second at which new music begins; on a grid a place near the prompt's end."""
    if grid is None:
        return prompt.start_s
    places_s = grid.lines_s(prompt.meter, prompt.start_s)
    near = float(places_s[np.abs(places_s - prompt.start_s).argmin()])
    return near if abs(near - prompt.start_s) <= OFF_GRID_S else prompt.start_s


def _lines(score: Score, tokenizer: Tokenizer) -> tuple[Score, ...]:
    """The voices of a filled score, if the model has voices."""
    try:
        return tuple(tokenizer.lines(tokenizer.encode(score), score.quarter_s)) if tokenizer.voices else ()
    except TokenError:  # a note that rings into the gap beside four new ones
        return ()


def _decode(
    take: Take, prompt: Prompt, tokenizer: Tokenizer, length: Length, grid: BeatGrid | None, start_s: float
) -> Continuation:
    """The primer and new notes from `start_s` on, cut at the requested length."""
    seconds, end_s = length.in_seconds(prompt.meter, start_s), np.inf
    score = tokenizer.decode(np.concatenate([prompt.ids, take.ids]), prompt.quarter_s)
    if grid is not None:
        score = grid.put_on(score, prompt.meter, start_s, OFF_GRID_S)
        # a note of the primer ends there too, or it would begin again in the new music
        ends = (score.onset_s < start_s) & (np.abs(score.offset_s - start_s) <= OFF_GRID_S)
        score = replace(score, offset_s=np.where(ends, start_s, score.offset_s))
    if prompt.program is not None:
        score = replace(score, program=np.array(prompt.program))
    if seconds is not None:
        end_s = _last_place_s(tokenizer, prompt, grid, start_s, start_s + seconds)
        score = score.select(score.onset_s < end_s - 1e-6)  # or rounding could leave a note without length
    score = score.clip(0.0, min(end_s, score.duration_s + 1))
    lines = tuple(
        replace(line, program=np.array(prompt.program or 0)).clip(0.0, min(end_s, line.duration_s + 1))
        for line in tokenizer.lines(np.concatenate([prompt.ids, take.ids]), prompt.quarter_s)
    )
    mean_log_p = float(take.log_p.mean())
    return Continuation(score, start_s, take.stopped, mean_log_p, prompt.unheard, lines=lines)


def _last_place_s(tokenizer: Tokenizer, prompt: Prompt, grid: BeatGrid | None, start_s: float, end_s: float) -> float:
    """The last place of a grid up to `end_s`, so that the last notes have lengths of the grid; without one, `end_s`."""
    if grid is not None:
        places_s = grid.lines_s(prompt.meter, end_s)
    elif tokenizer.voices:
        step_s = prompt.quarter_s / STEPS_PER_QUARTER
        places_s = step_s * np.arange(end_s / step_s + 1)
    else:
        return end_s
    inside = places_s[(places_s > start_s + 1e-6) & (places_s <= end_s + 1e-6)]
    last_s = float(inside.max(initial=start_s))
    return last_s if start_s < last_s > end_s - 2 * prompt.quarter_s else end_s  # places have an end, too
