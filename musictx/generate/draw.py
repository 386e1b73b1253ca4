"""Continues primers and fills gaps: the one file on music above the sampling engine, which knows only ids."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from musictx.errors import ConfigError
from musictx.model.protocol import LanguageModel
from musictx.model.static_steps import StaticSteps
from musictx.music.score import Filled, Meter, Score
from musictx.sampling.batch import Batch, NoNumbers, Take
from musictx.sampling.beam import Beams
from musictx.sampling.engine import MAX_SEED, Drawn, Row, begin_stream
from musictx.sampling.filters import nan_error
from musictx.sampling.gap import Gap, check_gaps, fill, gap_prompt, most_tokens, music_of, split_drawn
from musictx.sampling.guidance import bare_prompt
from musictx.sampling.primer import Primer
from musictx.sampling.prompt import Prompt, make_prompt
from musictx.sampling.settings import MOST_TOKENS, Length, Progress, Settings
from musictx.tokenizers import Tokenizer
from musictx.tokenizers.grammar import build_grammar
from musictx.tokenizers.rules import AUTO, Rules

MOST_VARIATIONS = 1000
ENDING = (0.9, 1.1)  # a forced ending falls between these shares of the asked length


class Continuation(NamedTuple):
    """Music that begins with the primer (or right after it), and the second at which the new music begins."""

    score: Score
    new_from_s: float
    stopped: str = ""  # why it is shorter than asked; "" if it is not
    variation: int = 0  # its number among those of one primer
    mean_log_p: float = 0.0  # nats a token, by the model itself, without filters or guidance
    unheard: int = 0  # how many of the primer's oldest tokens lie further back than the model looks
    is_new: NDArray[np.bool_] | None = None  # (N,) which notes fill a gap; None: those from `new_from_s` on
    new_to_s: float = np.inf  # the gap's second border

    @property
    def complete(self) -> bool:
        return not self.stopped

    @property
    def new(self) -> float | Filled:
        """What is new, in the form that pictures take."""
        return self.new_from_s if self.is_new is None else Filled(self.is_new, self.new_from_s, self.new_to_s)


def check(settings: Settings, variations: int) -> None:
    """Raises ConfigError for impossible amounts of music and random seeds, and for rules that would not be applied."""
    max_tokens, beams, rules = settings.max_tokens, settings.sampling.beams, settings.rules
    for name, value, most in (("variations", variations, MOST_VARIATIONS), ("max_tokens", max_tokens, MOST_TOKENS)):
        if value is not None and not 0 < value <= most:
            raise ConfigError(f"⟨{name}⟩={value}: give more than 0 and at most {most}")
    if max_tokens is not None and max_tokens * variations > MOST_TOKENS:
        raise ConfigError(
            f"⟨max_tokens⟩={max_tokens} for ⟨variations⟩={variations}: give at most {MOST_TOKENS} tokens in all"
        )
    if not rules.masks and replace(rules, masks=True, max_still_s=rules.max_still_s or AUTO) != Rules():
        raise ConfigError("⟨masks⟩=false forbids nothing: leave out the other rules, or the masks on")
    if settings.rows_at_once < 1:
        raise ConfigError(f"⟨rows_at_once⟩={settings.rows_at_once}: give 1 or more")
    if not 0 <= settings.random_seed <= MAX_SEED:
        raise ConfigError(f"⟨random_seed⟩={settings.random_seed}: give 0 to {MAX_SEED}")
    if settings.window is not None and settings.window < 8:
        raise ConfigError(f"⟨Settings.window⟩={settings.window}: give 8 tokens or more, or null for the model's own")
    if beams is not None and settings.length.tokens is None:
        raise ConfigError(f"⟨beams⟩={beams}: beams are compared at one length; give ⟨length_tokens⟩=")
    if beams is not None and variations > beams:
        raise ConfigError(f"⟨variations⟩={variations}: ⟨beams⟩={beams} find at most as many")


def continue_score(
    seed_score: Score | None,
    model: LanguageModel,
    tokenizer: Tokenizer,
    *,
    length_seconds: float | None = None,
    variations: int = 1,
    **settings: Any,
) -> list[Continuation]:
    """Calls `continue_primers` for one primer, which ends with its last note, and `Settings(**settings)`; None begins
    from nothing."""
    primer = Primer(seed_score, seed_score.duration_s, Meter(seed_score.quarter_s)) if seed_score is not None else None
    if length_seconds is not None:
        settings["length"] = Length(seconds=length_seconds)
    return continue_primers([primer], model, tokenizer, Settings(**settings), variations)[0]


def continue_primers(
    primers: Sequence[Primer | Gap | None],
    model: LanguageModel,
    tokenizer: Tokenizer,
    settings: Settings,
    variations: int = 1,
) -> list[list[Continuation]]:
    """Continues every primer, or fills every gap, `variations` times, `settings.rows_at_once` in one batch; None is a
    beginning from nothing. All gaps of a call are as long as `settings.length` says.

    Variation k of a primer is a function of the primer, `settings.random_seed` and k, whatever else is asked for. Music
    longer than `settings.window` tokens (None: the model's own) is drawn looking back that far. With
    `settings.forced_ending` it ends where the model thinks an end likeliest between 90 and 110 % of the length.

    Raises UserError for a silent primer, TokenError for one the vocabulary cannot hold, NanError for a model that gives
    NaN or infinity, ConfigError for impossible settings.
    """
    drawing = Drawing(primers, model, tokenizer, settings, variations)
    for _ in drawing:
        pass
    return drawing.continuations()


class Drawing:
    """Draws what `continue_primers` returns, a step at a time. An iterator: each step gives a token a row of one batch.

    The caller may stop after any step, at a deadline or when a person asks for it, and says why with `stop`.
    `continuations` gives what exists by then; lists may be short. Errors as in `continue_primers`.
    """

    def __init__(
        self,
        primers: Sequence[Primer | Gap | None],
        model: LanguageModel,
        tokenizer: Tokenizer,
        settings: Settings,
        variations: int = 1,
    ) -> None:
        check(settings, variations)
        self.model, self.tokenizer = model, tokenizer
        seeded = all(isinstance(primer, Primer) for primer in primers)  # guidance is about a seed
        sampling = settings.sampling.suited({**settings.own, **({} if seeded else {"seed_guidance": None})})
        asked = settings.sampling.strength is not None
        self.settings = settings = settings._replace(sampling=sampling, window=settings.window or model.window)
        if settings.sampling.beams is not None and isinstance(model, StaticSteps):
            raise ConfigError("⟨graph⟩=true: ⟨beams⟩ change places after every token; leave one of them out")
        self.primers, gaps = primers, [primer for primer in primers if isinstance(primer, Gap)]
        self.prompts = [_prompt(primer, model, tokenizer, settings) for primer in primers]
        if gaps:  # all that the model hears must stay in the window
            check_gaps(settings)
            most = max(most_tokens(gap, tokenizer) for gap in gaps)
            self.settings = settings = settings._replace(window=None, max_tokens=settings.max_tokens or most)
        self.bare = list[torch.Tensor]()
        if sampling.strength is not None:
            if None in primers:
                raise ConfigError("⟨seed_guidance⟩: there is no seed to hold on to; give one, or leave it out")
            period = max(model.cycle, tokenizer.group)
            self.bare = [bare_prompt(p.heard, sampling, period, asked) for p in self.prompts]
        self.asked = [(i, k) for i in range(len(self.prompts)) for k in range(variations)]
        # the size of a batch must not shorten its rows
        self.limit = _limit(settings, min(len(self.asked), Settings().rows_at_once), tokenizer.group)
        self.takes: list[tuple[int, int, Take]] = []  # prompt, variation, row as drawn
        self.rows: list[tuple[int, int]] = []  # of the batch under way
        self.batch: Batch | None = None

    def __iter__(self) -> Iterator[Drawn]:
        if self.settings.sampling.beams is not None:
            yield from self._search(self.settings.sampling.beams)
            return
        at_once = self.settings.rows_at_once
        for first in range(0, len(self.asked), at_once):
            self.rows = self.asked[first : first + at_once]
            try:
                self.batch = self._begin(self.rows)
                yield from self.batch
            except NoNumbers as error:
                heard = self.prompts[self.rows[error.row][0]].heard
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
        for i, k, take in self.takes:
            if len(take.ids):
                out[i].append(self._finish(take, i, k))
        return out

    def _begin(self, rows: Sequence[tuple[int, int]]) -> Batch:
        """A batch of rows (prompt, variation), ready to draw; reads each of their prompts once."""
        settings, tokenizer, used = self.settings, self.tokenizer, sorted({i for i, _ in rows})
        each = [self.prompts[i] for i, _ in rows]
        ids, quarter_s = [p.ids for p in each], [p.quarter_s for p in each]
        grammar = build_grammar(tokenizer, settings.rules, ids, quarter_s, settings.device)
        keys = [Row(used.index(i), (settings.random_seed, k)) for i, k in rows]
        heard, bare = [self.prompts[i].heard for i in used], [self.bare[i] for i in used if self.bare]
        room, rolling = _room([self.prompts[i] for i in used], self.limit, settings.window)
        sampling, eos = settings.sampling, tokenizer.vocab.eos
        stream = begin_stream(self.model, heard, keys, sampling, grammar, eos, room, rolling, bare)
        progress = [Progress(settings.length, p.bar_s, tokenizer, p.ids, p.quarter_s) for p in each]
        return Batch(stream, progress, sampling, ENDING[1] if settings.forced_ending else 1.0, self.limit)

    def _keep(self) -> None:
        assert self.batch is not None
        self.takes += [(*row, take) for row, take in zip(self.rows, self.batch.takes(), strict=True)]
        self.batch = None

    def _finish(self, take: Take, i: int, k: int) -> Continuation:
        gap, prompt = self.primers[i], self.prompts[i]
        if not isinstance(gap, Gap):
            return _finish(take, prompt, k, self.tokenizer, self.settings)
        ids = split_drawn(gap, take.ids, self.tokenizer)
        score, is_new = fill(gap, music_of(take.ids, self.tokenizer), self.tokenizer, prompt.program)
        mean_log_p = float(take.log_p[: len(ids)].mean())
        return Continuation(score, gap.from_s, take.stopped, k, mean_log_p, prompt.unheard, is_new, gap.to_s)

    def _search(self, beams: int) -> Iterator[Drawn]:
        """The likeliest continuations of each primer, once all have the length asked for: only equal lengths can be
        compared."""
        for i, prompt in enumerate(self.prompts):
            found = _beams(prompt, self.model, self.tokenizer, self.settings, beams, self.limit)
            yield from found
            variations = sum(asked == i for asked, _ in self.asked)
            takes = zip(found.ids.cpu().numpy().astype(np.uint16), found.log_p.cpu().double().numpy(), strict=True)
            for k, (ids, log_p) in enumerate(islice(takes, variations)):
                progress = Progress(self.settings.length, prompt.bar_s, self.tokenizer, prompt.ids, prompt.quarter_s)
                progress.look(ids)
                self.takes.append((i, k, Take(ids, log_p, log_p, np.zeros(len(ids), dtype=bool), progress, "")))


def _prompt(primer: Primer | Gap | None, model: LanguageModel, tokenizer: Tokenizer, settings: Settings) -> Prompt:
    if isinstance(primer, Gap):
        return gap_prompt(primer, tokenizer, settings.window, settings.device, model.cycle)
    return make_prompt(primer, tokenizer, settings.window, settings.device, model.cycle)


def _limit(settings: Settings, rows: int, group: int) -> int:
    """The most tokens of a row: a whole number of groups, if the length is given in tokens."""
    limit = min(settings.max_tokens or MOST_TOKENS, MOST_TOKENS // rows)
    if settings.length.tokens is not None:
        most = int(np.ceil(settings.length.tokens * (ENDING[1] if settings.forced_ending else 1)))
        limit = min(limit, most + -most % group)
    return limit


def _room(prompts: Sequence[Prompt], limit: int, window: int | None) -> tuple[int, bool]:
    """How many tokens the model's state must hold, and whether it must roll."""
    most = max(len(prompt.heard) for prompt in prompts) + limit
    return (window, True) if window is not None and most > window else (most, False)


def _beams(
    prompt: Prompt, model: LanguageModel, tokenizer: Tokenizer, settings: Settings, beams: int, n_tokens: int
) -> Beams:
    grammar = build_grammar(tokenizer, settings.rules, [prompt.ids], [prompt.quarter_s], settings.device)
    room, rolling = _room([prompt], n_tokens, settings.window)
    return Beams(model, prompt.heard, n_tokens, beams, grammar, tokenizer.vocab.eos, room, rolling)


def _finish(take: Take, prompt: Prompt, k: int, tokenizer: Tokenizer, settings: Settings) -> Continuation:
    """Makes music of ids: cut at the length asked for, with or without the primer."""
    ids, start_s, end_s = take.ids, prompt.start_s, np.inf
    if settings.forced_ending and not take.stopped:
        ids = ids[: _likeliest_end(take)]
    elif (seconds := settings.length.in_seconds(prompt.bar_s)) is not None:
        end_s = start_s + seconds
    score = tokenizer.decode(np.concatenate([prompt.ids, ids]), prompt.quarter_s)
    if settings.length.notes is not None and not settings.forced_ending:
        new = np.flatnonzero(score.onset_s >= start_s - 1e-6)[: settings.length.notes]
        score = score.select(np.arange(len(score)) <= new.max(initial=-1))
    if prompt.program is not None:
        score = replace(score, program=np.array(prompt.program))
    begin_s = 0.0
    if not settings.include_seed:  # a note held across the border is cut there, not lost
        begin_s = start_s
        held = score.offset_s > start_s + 1e-6
        score = replace(score, onset_s=np.where(held, np.maximum(score.onset_s, start_s), score.onset_s))
    score = score.select(score.onset_s < end_s - 1e-6)  # or rounding could leave a note without length
    score = score.clip(begin_s, end_s if np.isfinite(end_s) else score.duration_s + 1)
    mean_log_p = float(take.log_p[: len(ids)].mean()) if len(ids) else 0.0
    return Continuation(score, start_s - begin_s, take.stopped, k, mean_log_p, prompt.unheard)


def _likeliest_end(take: Take) -> int:
    """How many tokens come before the likeliest end near the asked length."""
    share = take.progress.at(np.arange(len(take.ids)))
    possible = take.may_end & (share >= ENDING[0]) & (share <= ENDING[1])
    return int(np.where(possible, take.end_log_p, -np.inf).argmax()) if possible.any() else len(take.ids)
