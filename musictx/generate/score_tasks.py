"""Requests for scores: continuations, fills and accompaniments by a model of bars and parts."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from musictx.errors import ConfigError, PerformanceError
from musictx.files import stem_of
from musictx.generate.control import SEED
from musictx.generate.outcome import outcome
from musictx.generate.primer import Part
from musictx.generate.requests import UNSAID, Accompany, Continue, Fill, NewMusic, Own, Request
from musictx.generate.score_chords import chords_between, chords_found, has_symbols
from musictx.generate.score_control import bar_lines, in_key
from musictx.generate.score_music import ScoreMusic, both, fitted, loudness_of, without_seed
from musictx.generate.score_seeds import ScoreSeed, read_score, seconds_at
from musictx.generate.score_templates import Template, accompanied, continued, with_gap, without_closing
from musictx.generate.scores import check_settings, draw_parts
from musictx.generate.seed_files import find_seeds, named_apart
from musictx.model.steps import Player
from musictx.music.notation.chord_symbols import unknown
from musictx.music.notation.notation import Notation
from musictx.tokenizers.gap import knows_gaps
from musictx.tokenizers.rules import AUTO
from musictx.tokenizers.score import ScoreTokenizer
from musictx.tokenizers.score.slots import RIGHT, TUNE
from musictx.waiting import reporting

R = TypeVar("R", bound=Request)
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
        lines_s, music = seconds_at(bar_lines(template), seed), list[ScoreMusic]()
        bars_s = seconds_at([*(bar.onset for bar in template.notation.bars), template.notation.end], seed)
        meter, numbers = seed.meter, template.notation.numbered[:, 1]
        meter = meter if meter.lines_s is None else replace(meter, lines_s=bars_s, numbers=numbers)
        heard = without_closing(template)
        drawn = draw_parts(heard, player, tokenizer, self.request, own=own, window=window, report=report)
        later = template.span[0] - heard.span[0]
        for k, each in enumerate(drawn, 1):
            notes = {slot: [n._replace(onset=n.onset + later) for n in new] for slot, new in each.notes.items()}
            added = fitted(seed, template, notes)
            loud = loudness_of(template, added, seed, self.request.humanize, self.request.random_seed)
            score, is_new = both(template, added, seed, loud)
            goes_on = isinstance(self.request, Continue)
            chords, became = outcome(self.request.control, score.select(is_new), from_s, to_s, lines_s)
            piece = ScoreMusic(
                score=score,
                new_from_s=from_s,
                stopped=each.stopped,
                mean_log_p=each.mean_log_p,
                is_new=None if goes_on else is_new,
                new_to_s=np.inf if goes_on else to_s,
                chords=chords,
                became=became,
                name=f"{self.name}-{k}",
                signature=template.notation.bars[0][1:],
                seed=seed.file,
                meter=meter,
                remarks=self.remarks,
                source=seed,
                template=template,
                added=added,
                loud=loud,
            )
            keeps_seed = not isinstance(self.request, Continue) or self.request.include_seed
            music.append(piece if keeps_seed else without_seed(piece))
        return music


def draw_tasks(
    tasks: Sequence[Task], player: Player, tokenizer: ScoreTokenizer, own: Own = UNSAID
) -> list[list[ScoreMusic]]:
    """The music of every task; `own` are the bundle's settings where the sampling says auto."""
    return [task.draw(player, tokenizer, own=own) for task in tasks]


def tasks_of(field: str, score: object, tokenizer: ScoreTokenizer, request: Request) -> list[Task]:
    """The tasks of a file, a folder or a pattern. Raises ConfigError for anything else, and as `task_of`."""
    if not isinstance(score, str | Path):
        kind = None if score is None else type(score).__name__
        raise ConfigError(field, got=kind, why="a score model needs bars and parts", allowed="a score's file")
    return [task_of(file, tokenizer, request) for file in named_apart(find_seeds(str(score)))]


def task_of(file: Path, tokenizer: ScoreTokenizer, request: Request, given: bytes | Notation | None = None) -> Task:
    """The task of a request for one file, or for what is `given` in its place. Raises ConfigError for settings that a
    score cannot keep, UserError, which names the file."""
    request = check_kept(request)
    remarks = list[str]()
    try:
        named = {"tune" if isinstance(request, Accompany) else "part": getattr(request, "only", None)}
        seed = read_score(file, tokenizer, given=given, **named)
    except PerformanceError as error:
        if isinstance(request, Accompany):
            raise
        raise PerformanceError(file, error.reason, f"{error.hint}, or give bundle=piano") from None
    if isinstance(request, Continue):
        whole = seed
        seed, template = continued(seed, request.part, request.length)
        beats, unit = template.notation.bars[-1][1:]
        if seed.is_midi:  # a last signature that completes the upbeat is of no other meter
            has_later = seed.later_meters > whole.completes_upbeat
        else:
            has_later = any(bar[1:] != (beats, unit) for bar in whole.notation.bars[len(seed.notation.bars) :])
        if has_later:
            remarks.append(f"{file}: new bars are in {beats}/{unit}, also where the file says a later meter")
        if n := template.closing:
            bars = "its last bar is" if n == 1 else f"its last {n} bars are"
            remarks.append(f"{file}: a finished piece: {bars} not heard, so that new music does not end too")
            speeds = [(tempo.onset, tempo.quarters_a_minute) for tempo in seed.notation.tempi]
            before = [speed for at, speed in speeds if at < seed.notation.bars[-n].onset]
            if before[-1:] not in ([], [speeds[-1][1]]) and speeds[-1][0] < template.span[0]:
                remarks.append(f"{file}: new bars keep the tempo of the ending")
    elif isinstance(request, Fill):
        template = with_gap(seed, request.from_bar or 0, request.to_bar or 0)
        last = max(bar for _, bar in template.free)
        if last + 1 < len(template.notation.bars) and not knows_gaps(tokenizer.vocab):
            remarks.append(f"{file}: the bars after the gap are not heard: the model was not trained to fill gaps")
    else:
        template = accompanied(seed)
        if template.ahead not in (TUNE, RIGHT):
            remarks.append(f"{file}: it has no tune and no right hand, and models learn what goes with these")
    request, said = led(request, seed, template)
    if request.control.key is not None and isinstance(request, Continue):
        template = in_key(template, request.control.key)
    return Task(stem_of(file), seed, template, request, (*seed.remarks, *remarks, *said))


def led(request: R, seed: ScoreSeed, template: Template) -> tuple[R, list[str]]:
    """The request with the chords that lead new notes: the seed's, if it asks for them; those over new bars, and those
    of what sounds with a tune, or found for it alone, if it asks for no chords, key or scale. And remarks on them.
    Raises ConfigError."""
    control, file, old = request.control, seed.file, seed.notation
    bars = [bar for _, bar in template.free]
    if control.chords == SEED:
        try:
            if isinstance(request, NewMusic):
                lines = [0, old.spans[min(bars) - 1][1]]
                chords = chords_found(old, min(bars))
            else:
                chords = chords_between(old, lines := bar_lines(template))
            request = replace(request, control=replace(control, chords=chords))
        except ConfigError as error:
            raise error.of(file) from None
        return request, [f"{file}: its chords are {chords}", *not_known(seed, lines[0], lines[-1])]
    is_free = control.chords is None and control.key is None and request.rules.scale is None and control.strength > 0
    if isinstance(request, Continue) or not is_free:
        return request, []
    if has_symbols(template.notation, min(bars), max(bars)):
        why = "its chord symbols"
    elif isinstance(request, Accompany) and template.ahead == TUNE:
        why = "chords found for the tune" if len(seed.used) == 1 else "the chords of the parts that are there"
    else:
        return request, not_known(seed, *template.span, leads=False)
    try:
        request = replace(request, control=replace(control, chords=chords_between(old, bar_lines(template))))
    except ConfigError as error:  # rules leave a chord no note, or there are too many
        return request, [f"{file}: {why} lead nothing, since {error.why}"]
    said = f"{file}: new notes follow {why}; strength=0 leaves them free"
    return request, [said, *not_known(seed, *template.span)]


def not_known(seed: ScoreSeed, begin: int, end: int, leads: bool = True) -> list[str]:
    """A remark on chord symbols that nobody can follow, also the one that goes on from before; `leads`: whether the
    chords of the notes lead in their place."""
    symbols = seed.notation.symbols
    names = unknown(symbols[max(bisect_right(symbols, (begin + 1,)) - 1, 0) : bisect_left(symbols, (end,))])
    one = len(names) == 1
    then = "its bar has the chord of the notes" if one else "their bars have the chords of the notes"
    then = then if leads else "new notes do not follow " + ("it" if one else "them")
    how = f"{len(names)} chord {'symbol is' if one else 'symbols are'} not known ({', '.join(dict.fromkeys(names))})"
    return [f"{seed.file}: {how}; {then}"] * bool(names)


def check_kept(request: R) -> R:
    """The request with its rules. Raises ConfigError for settings that a score cannot keep."""
    check_settings(request)
    for name, value, usual, why in _unkept(request):
        if value != usual:
            raise ConfigError(name, got=value, why=why, hint="leave it out")
    if isinstance(request, Continue) and (bars := request.length.bars or 0) % 1:
        raise ConfigError("Length.bars", got=bars, why="a score goes on by whole bars", allowed="a whole number")
    return request


def _unkept(request: Request) -> Iterator[tuple[str, object, object, str]]:
    """Settings that a score cannot keep, with their values, the usual ones, and the reason."""
    if isinstance(request, NewMusic):
        yield "drums", request.drums, NewMusic.drums, "a score has no drums"
    if isinstance(request, Continue):
        part, usual = request.part, Part()
        yield "Length.tokens", request.length.tokens, None, "a score goes on by whole bars"
        cut = part.until_s if (part.seconds, part.bars) != (None, None) else None
        yield "from_s", cut, None, "a score is heard from its beginning, so seed_bars= and seed_seconds= end it too"
        yield "seed_from", part.side, usual.side, "a score is heard from its beginning"
        yield "start", part.start.replace("bar", AUTO), usual.start, "new bars begin at a bar line"
    elif isinstance(request, Fill):
        for name in ("from_s", "to_s"):
            yield name, getattr(request, name), None, "a gap in a score has whole bars, from_bar= and to_bar="
        for name in ("seconds", "bars"):
            yield f"Length.{name}", getattr(request.length, name), None, "a gap lasts as long as its bars"
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
        why = "two files may have other parts, so a score model joins none"
        allowed = "both as one file, with empty bars between them, to infill="
        raise ConfigError("between", got=between, why=why, allowed=allowed, hint="bundle=piano joins two")
