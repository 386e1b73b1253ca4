"""Continues primers and fills gaps: the one file on music above the sampling engine, which knows only ids."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from musictx.errors import ConfigError
from musictx.generate.batch import Batch, NoNumbers, Progress, Take
from musictx.generate.engine import BatchRow, Drawn, begin_stream
from musictx.generate.filters import nan_error
from musictx.generate.gap import Gap, fill, gap_prompt, most_tokens, music_of, split_drawn
from musictx.generate.guidance import NothingToHold, bare_prompt
from musictx.generate.outcome import ChordSpan, outcome
from musictx.generate.particles import Particles, keys_of
from musictx.generate.primer import Primer
from musictx.generate.prompt import Prompt, make_prompt
from musictx.generate.requests import MOST_TOKENS, UNSAID, Continue, Own
from musictx.generate.steering import Steering, line_after
from musictx.model.protocol import LanguageModel
from musictx.model.static_steps import StaticSteps
from musictx.music.score import Filled, Score
from musictx.tokenizers import Tokenizer
from musictx.tokenizers.grammar import build_grammar


@dataclass(frozen=True)
class Continuation:
    """Music that begins with the primer (or right after it), or a piece with its gap filled."""

    score: Score  # all of its notes
    new_from_s: float  # when the new music begins
    stopped: str = ""  # why it is shorter than asked; "" if it is not
    variation: int = 0  # its number among those of one primer
    mean_log_p: float = 0.0  # nats a token, by the model itself, without filters or guidance
    unheard: int = 0  # how many of the primer's oldest tokens lie further back than the model looks
    is_new: NDArray[np.bool_] | None = None  # (N,) the notes that fill a gap; None: those from `new_from_s` on are new
    new_to_s: float = np.inf  # when a fill ends
    chords: tuple[ChordSpan, ...] = ()  # that were asked for
    became: str = ""  # of all that was asked for, in words

    @property
    def new_notes(self) -> Score:
        return self.score.select(self.score.onset_s >= self.new_from_s if self.is_new is None else self.is_new)

    @property
    def new(self) -> float | Filled | NDArray[np.bool_]:
        """What is new, in the form that pictures take."""
        return self.new_from_s if self.is_new is None else Filled(self.is_new, self.new_from_s, self.new_to_s)


def continue_primers(
    primers: Sequence[Primer | Gap | None],
    model: LanguageModel,
    tokenizer: Tokenizer,
    request: Continue,
    **given: Any,
) -> list[list[Continuation]]:
    """What a `Drawing` of these draws, whole."""
    drawing = Drawing(primers, model, tokenizer, request, **given)
    for _ in drawing:
        pass
    return drawing.continuations()


class Drawing:
    """Continues every primer, or fills every gap, as a request asks; None is a beginning from nothing. All gaps of one
    drawing are as long as the request says. An iterator: each step gives a token a row of one batch.

    The caller may stop after any step, at a deadline or when a person asks for it, and says why with `stop`.
    `continuations` gives what exists by then, also between two steps; lists may be short.

    Variation k of a primer is a function of the primer, the random seed and k, whatever else is asked for. Music
    longer than the window is drawn looking back that far. Where the sampling says auto, the bundle's `own` counts.

    Raises TokenError for a primer beyond the vocabulary, NanError for a model that gives NaN
    or infinity, ConfigError for what this model cannot do.
    """

    def __init__(
        self,
        primers: Sequence[Primer | Gap | None],
        model: LanguageModel,
        tokenizer: Tokenizer,
        request: Continue,
        *,
        device: str = "cpu",
        own: Own = UNSAID,
    ) -> None:
        self.model, self.tokenizer, self.device = model, tokenizer, device
        seeded = all(isinstance(primer, Primer) for primer in primers)  # guidance is about a seed
        sampling = request.sampling.suited({**own, **({} if seeded else {"seed_guidance": None})})
        asked = request.sampling.strength is not None
        self.request = request = replace(request, sampling=sampling, window=request.window or model.window)
        self.primers, gaps = primers, [primer for primer in primers if isinstance(primer, Gap)]
        make = (tokenizer, request.window, device, model.cycle)
        self.prompts = [gap_prompt(p, *make) if isinstance(p, Gap) else make_prompt(p, *make) for p in primers]
        if gaps:  # all that the model hears must stay in the window
            most = max(most_tokens(gap, tokenizer) for gap in gaps)
            self.request = request = replace(request, window=None, max_tokens=request.max_tokens or most)
        asks = request.control.chords is not None  # once, before anything is drawn
        self.lines = [line_after(p, request.control, tokenizer) if asks else None for p in self.prompts]
        self.bare = list[torch.Tensor]()
        if sampling.strength is not None:
            if not seeded:
                raise ConfigError(
                    "seed_guidance", got=sampling.strength, why="there is no seed", hint="give one, or leave it out"
                )
            period = max(model.cycle, tokenizer.group)
            self.bare = [_bare(p.heard, sampling.strength, period, asked) for p in self.prompts]
        self.asked = [(i, k) for i in range(len(self.prompts)) for k in range(request.rows)]
        # the size of a batch must not shorten its rows
        self.each = request.rows_each
        most = max(min(len(self.asked) * self.each, Continue.rows_at_once), self.each)
        self.limit = _limit(request, most, tokenizer.group)
        self.takes: list[tuple[int, int, Take]] = []  # prompt, variation, row as drawn
        self.rows: list[tuple[int, int]] = []  # of the batch under way
        self.batch: Batch | None = None

    def __iter__(self) -> Iterator[Drawn]:
        at_once = max(self.request.rows_at_once // self.each, 1)
        for first in range(0, len(self.asked), at_once):
            self.rows = self.asked[first : first + at_once]
            try:
                self.batch = self._begin(self.rows)
                yield from self.batch
            except NoNumbers as error:
                heard = self.prompts[self.rows[error.row // self.each][0]].heard
                ids = torch.cat([heard, torch.from_numpy(error.ids.astype(np.int64)).to(heard.device)])
                model = self.model.model if isinstance(self.model, StaticSteps) else self.model
                raise nan_error(model, ids) from None
            self._keep()

    def stop(self, why: str) -> None:
        """Ends the drawing. The current rows keep their length and the reason; no others begin."""
        if self.batch is not None:
            self.batch.stop(why)
            self._keep()

    def continuations(self) -> list[list[Continuation]]:
        """The continuations that have begun, primer by primer, in order."""
        out: list[list[Continuation]] = [[] for _ in self.prompts]
        under_way = zip(self.rows, self.batch.takes(), strict=True) if self.batch is not None else ()
        for i, k, take in [*self.takes, *((*row, take) for row, take in under_way)]:
            if len(take.ids):
                out[i].append(self._finish(take, i, k))
        return out

    def _begin(self, rows: Sequence[tuple[int, int]]) -> Batch:
        """A batch of rows (prompt, variation), ready to draw; reads each of their prompts once."""
        request, tokenizer, used = self.request, self.tokenizer, sorted({i for i, _ in rows})
        each = [self.prompts[i] for i, _ in rows for _ in range(self.each)]
        ids, quarter_s = [p.ids for p in each], [p.quarter_s for p in each]
        grammar = build_grammar(tokenizer, request.rules, ids, quarter_s, self.device)
        keys = [BatchRow(used.index(i), key) for i, k in rows for key in keys_of(request.random_seed, k, self.each)]
        heard, bare = [self.prompts[i].heard for i in used], [self.bare[i] for i in used if self.bare]
        room, rolling = _room([self.prompts[i] for i in used], self.limit, request.window)
        steering = Steering(request.control, tokenizer, each, self.device) if request.control.asked else None
        stream = begin_stream(self.model, heard, keys, request.sampling, grammar, room, rolling, bare, steering)
        progress = [Progress(request.length, p.meter.bar_s, tokenizer, p.ids, p.quarter_s) for p in each]
        particles = Particles(stream, self.each, [row.key for row in keys]) if self.each > 1 else None
        return Batch(stream, progress, self.limit, particles)

    def _keep(self) -> None:
        assert self.batch is not None
        self.takes += [(*row, take) for row, take in zip(self.rows, self.batch.takes(), strict=True)]
        self.batch = None

    def _finish(self, take: Take, i: int, k: int) -> Continuation:
        made, prompt = self._music(take, i, k), self.prompts[i]
        if not self.request.control.asked:
            return made
        whole = made
        if not self.request.include_seed:  # there, sounding notes of the seed begin again and seem new
            whole = _continued(take, prompt, k, self.tokenizer, replace(self.request, include_seed=True))
        to_s, later_s = min(whole.new_to_s, whole.score.duration_s), made.new_from_s - whole.new_from_s
        asked = self.request.control, whole.new_notes, whole.new_from_s, to_s, prompt.meter, self.lines[i]
        chords, became = outcome(*asked)
        return replace(made, chords=tuple(chord.later(later_s) for chord in chords), became=became)

    def _music(self, take: Take, i: int, k: int) -> Continuation:
        gap, prompt = self.primers[i], self.prompts[i]
        if not isinstance(gap, Gap):
            return _continued(take, prompt, k, self.tokenizer, self.request)
        ids = split_drawn(gap, take.ids, self.tokenizer)
        score, is_new = fill(gap, music_of(take.ids, self.tokenizer), self.tokenizer, prompt.program, ringing=True)
        mean_log_p = float(take.log_p[: len(ids)].mean())
        return Continuation(score, gap.from_s, take.stopped, k, mean_log_p, prompt.unheard, is_new, gap.to_s)


def _bare(heard: torch.Tensor, strength: float, period: int, asked: bool) -> torch.Tensor:
    """The prompt of the second stream. The whole of a seed too short for it where no person `asked` for guidance, so
    that nothing is guided."""
    try:
        return bare_prompt(heard, strength, period)
    except NothingToHold:
        if asked:
            raise
        return heard


def _limit(request: Continue, rows: int, group: int) -> int:
    """The most tokens of a row: a whole number of groups, if the length is given in tokens."""
    limit = min(request.max_tokens or MOST_TOKENS, MOST_TOKENS // rows)
    if request.length.tokens is not None:
        limit = min(limit, request.length.tokens + -request.length.tokens % group)
    return limit


def _room(prompts: Sequence[Prompt], limit: int, window: int | None) -> tuple[int, bool]:
    """How many tokens the model's state must have room for, and whether it must roll."""
    most = max(len(prompt.heard) for prompt in prompts) + limit
    return (window, True) if window is not None and most > window else (most, False)


def _continued(take: Take, prompt: Prompt, k: int, tokenizer: Tokenizer, request: Continue) -> Continuation:
    """Makes music of ids: cut at the length asked for, with or without the primer."""
    ids, start_s, end_s = take.ids, prompt.start_s, np.inf
    if (seconds := request.length.in_seconds(prompt.meter.bar_s)) is not None:
        end_s = start_s + seconds
    score = tokenizer.decode(np.concatenate([prompt.ids, ids]), prompt.quarter_s)
    if request.length.notes is not None:
        new = np.flatnonzero(score.onset_s >= start_s - 1e-6)[: request.length.notes]
        score = score.select(np.arange(len(score)) <= new.max(initial=-1))
    if prompt.program is not None:
        score = replace(score, program=np.array(prompt.program))
    begin_s = 0.0
    if not request.include_seed:  # a note that sounds across the border is cut there, not lost
        begin_s = start_s
        held = score.offset_s > start_s + 1e-6
        score = replace(score, onset_s=np.where(held, np.maximum(score.onset_s, start_s), score.onset_s))
    score = score.select(score.onset_s < end_s - 1e-6)  # or rounding could leave a note without length
    score = score.clip(begin_s, end_s if np.isfinite(end_s) else score.duration_s + 1)
    mean_log_p = float(take.log_p[: len(ids)].mean()) if len(ids) else 0.0
    return Continuation(score, start_s - begin_s, take.stopped, k, mean_log_p, prompt.unheard)
