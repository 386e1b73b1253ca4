"""Requests for scores: continuations, fills and accompaniments by a model of bars and parts."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from musictx.errors import ConfigError, PerformanceError
from musictx.files import stem_of
from musictx.generate.primer import Part
from musictx.generate.requests import UNSAID, Accompany, Continue, Fill, NewMusic, Own, Request
from musictx.generate.score_music import ScoreMusic, both, fitted, loudness_of, seconds_at
from musictx.generate.score_seeds import ScoreSeed, accompanied, continued, read_score, with_gap
from musictx.generate.scores import Template, check_settings, draw_parts
from musictx.model.steps import Player
from musictx.tokenizers.gap import knows_gaps
from musictx.tokenizers.score import ScoreTokenizer
from musictx.tokenizers.score.slots import RIGHT, TUNE
from musictx.waiting import reporting

Report = Callable[[float, float], None]  # gets how much is done, and of how much


class Task(NamedTuple):
    """What is to be drawn in a score; `request` asks for it."""

    name: str
    seed: ScoreSeed
    template: Template
    request: Request
    remarks: tuple[str, ...] = ()

    def draw(
        self, player: Player, tokenizer: ScoreTokenizer, *, own: Own = UNSAID, report: Report | None = None
    ) -> list[ScoreMusic]:
        """The score once a variation. Raises as `draw_parts`, and as `report` does."""
        seed, template = self.seed, self.template
        window = self.request.window if isinstance(self.request, NewMusic) else None
        report = report or reporting("drawing a score")
        from_s, to_s = seconds_at(template.span, seed).tolist()
        music = list[ScoreMusic]()
        drawn = draw_parts(template, player, tokenizer, self.request, own=own, window=window, report=report)
        for k, each in enumerate(drawn, 1):
            added = fitted(seed, template, each.notes)
            loud = loudness_of(template, added, seed, self.request.humanize, self.request.random_seed)
            score, is_new = both(template, added, seed, loud)
            goes_on = isinstance(self.request, Continue)
            music.append(
                ScoreMusic(
                    score=score,
                    new_from_s=from_s,
                    stopped=each.stopped,
                    mean_log_p=each.mean_log_p,
                    is_new=None if goes_on else is_new,
                    new_to_s=np.inf if goes_on else to_s,
                    name=f"{self.name}-{k}",
                    signature=template.notation.bars[0][1:],
                    seed=seed.file,
                    meter=seed.meter,
                    remarks=self.remarks,
                    source=seed,
                    template=template,
                    added=added,
                    loud=loud,
                )
            )
        return music


def draw_tasks(
    tasks: Sequence[Task], player: Player, tokenizer: ScoreTokenizer, own: Own = UNSAID
) -> list[list[ScoreMusic]]:
    """The music of every task; `own` are the bundle's settings where the sampling says auto."""
    return [task.draw(player, tokenizer, own=own) for task in tasks]


def task_of(file: Path, tokenizer: ScoreTokenizer, request: Request, data: bytes | None = None) -> Task:
    """The task of a request for one file, or its `data`. Raises ConfigError for settings that a score cannot keep,
    UserError, which names the file."""
    if isinstance(request, Accompany):  # its rules begin as those of choirs
        request = replace(
            request, rules=replace(request.rules, voice_order=False, voice_ranges=False, no_parallels=False)
        )
    check_settings(request)
    for name, value, usual, why in _unkept(request):
        if value != usual:
            raise ConfigError(name, got=value, why=why, hint="leave it out")
    remarks = list[str]()
    try:
        seed = read_score(file, tokenizer, request.only if isinstance(request, Fill) else None, data)
    except PerformanceError as error:
        if isinstance(request, Accompany):
            raise
        raise PerformanceError(file, error.reason, f"{error.hint}, or give bundle=piano") from None
    if isinstance(request, Continue):
        template = continued(seed, request.length)
        if seed.later_meters:
            beats, unit = template.notation.bars[-1][1:]
            remarks.append(f"{file}: new bars are in {beats}/{unit}, also where the file says a later meter")
    elif isinstance(request, Fill):
        template = with_gap(seed, request.from_bar or 0, request.to_bar or 0)
        last = max(bar for _, bar in template.free)
        if last + 1 < len(template.notation.bars) and not knows_gaps(tokenizer.vocab):
            remarks.append(f"{file}: the bars after the gap are not heard: the model was not trained to fill gaps")
    else:
        template = accompanied(seed)
        if template.ahead not in (TUNE, RIGHT):
            remarks.append(f"{file}: it has no tune and no right hand, and models learn what goes with these")
    return Task(stem_of(file), seed, template, request, (*seed.remarks, *remarks))


def _unkept(request: Request) -> Iterator[tuple[str, object, object, str]]:
    """Settings that a score cannot keep, with their values, the usual ones, and the reason."""
    if isinstance(request, NewMusic):
        yield "drums", request.drums, NewMusic.drums, "a score has no drums"
    if isinstance(request, Continue):
        part, usual, why = request.part, Part(), "a score goes on at its end, from a bar line on"
        yield "from_s", part.until_s, usual.until_s, why
        yield "seed_seconds", part.seconds, usual.seconds, why
        yield "seed_bars", part.bars, usual.bars, why
        yield "seed_from", part.side, usual.side, why
        yield "start", part.start, usual.start, why
        yield "include_seed", request.include_seed, Continue.include_seed, "new bars are written behind the score"
        yield "part", request.only, None, "a score goes on with all its parts"
    elif isinstance(request, Fill):
        yield "from_s", request.from_s, None, "a gap in a score has whole bars, from_bar= and to_bar="
    elif isinstance(request, Accompany):
        for name in ("voices", "rewrite", "from_bar", "to_bar", "transpose"):
            yield name, getattr(request, name), getattr(Accompany, name), "it is for models of chorales"


def check_seed(seed: object) -> None:
    """Raises ConfigError without a seed."""
    if seed is None:
        raise ConfigError("seed_midi", got=None, why="a score model goes on with a score", allowed="one")


def check_files(pedal: bool = False, between: str | None = None) -> None:
    """Raises ConfigError for files that a score model cannot write."""
    if pedal:
        raise ConfigError("pedal", got=True, why="the notes of a score have written lengths", allowed="false")
    if between is not None:
        why = "a score model joins no files"
        raise ConfigError("between", got=between, why=why, allowed="infill=, or a seed to go on")
