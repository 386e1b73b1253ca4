"""New bars in a score for a person who waits: music of the page for a model of scores."""

from bisect import bisect_left, bisect_right
from dataclasses import replace
from pathlib import Path

import numpy as np

from musictx.errors import ConfigError, UserError
from musictx.generate.open_player import Playing
from musictx.generate.primer import ROUNDED_S, Part
from musictx.generate.requests import Accompany, Continue, Fill
from musictx.generate.score_music import ScoreMusic
from musictx.generate.score_seeds import read_score
from musictx.generate.score_tasks import task_of
from musictx.music.notation.notation import Notation
from musictx.music.project import Project
from musictx.music.score import UNITS
from musictx.tokenizers import Tokenizer
from musictx.tokenizers.score import ScoreTokenizer
from musictx.web.draw import LEAST_S, Turn, check_length, check_most, time_limit
from musictx.web.session import PageMusic, Step, is_number

Asked = Continue | Fill | Accompany


def plays_scores(tokenizer: Tokenizer) -> bool:
    """Whether a model continues by bars and parts, not by seconds."""
    return isinstance(tokenizer, ScoreTokenizer)


def as_score(music: PageMusic, tokenizer: Tokenizer) -> PageMusic:
    """The music with its notation. Raises UserError for a performance, and for a score that the model lacks."""
    assert isinstance(tokenizer, ScoreTokenizer)
    reading = music.reading(in_beats=False)
    heard = music._replace(score=reading.score, meter=reading.meter, project=reading.project)
    seed = read_score(Path(music.name), tokenizer, given=music.written or Step(heard).midi)
    meter = replace(heard.meter, numbers=seed.meter.numbers)
    note = " ".join(filter(None, [reading.remarks, *(f"{each}." for each in seed.remarks)]))
    return heard._replace(notation=seed.notation, meter=meter, project=seed.project, note=note, seconds_reading=reading)


def draw_bars(music: PageMusic, request: Asked, opened: Playing, turn: Turn) -> tuple[ScoreMusic, ...]:
    """The score once a variation. Raises UserError for an impossible request, and at the end of the turn."""
    assert isinstance(opened.tokenizer, ScoreTokenizer)
    request = turn.with_settings(in_bars(music, request, turn), opened.header)
    task = task_of(Path(music.name), opened.tokenizer, request, music.written or Step(music).midi)
    whole_s = length_of(request, music)

    def watch(done: float, of: float) -> None:
        if turn.over:
            raise UserError(f"{time_limit(turn.limits)} before the bars were whole", "give fewer of them")
        turn.report(done / of * whole_s, whole_s)

    return tuple(task.draw(opened.player, opened.tokenizer, own=opened.header.sampling, report=watch))


def in_bars(music: PageMusic, request: Asked, turn: Turn) -> Asked:
    """The request for a score: the place of new music in bars. Raises ConfigError, UserError."""
    if isinstance(request, Accompany):
        return request
    if isinstance(request, Continue):
        from_s = request.part.until_s
        if not is_number(from_s):
            raise ConfigError("from_s", got=from_s, allowed="the second from which new music begins")
        check_length(request.length, length_of(request, music), turn.limits)
        at_end = from_s > music.score.duration_s - LEAST_S
        return replace(request, part=Part() if at_end else Part(until_s=from_s))
    if not (is_number(request.from_s) and is_number(request.to_s)):
        raise UserError("there is no region to fill", "drag over the roll, or type where it begins and ends")
    from_bar, to_bar = bars_between(music, request.from_s, request.to_s)
    request = replace(request, from_s=None, to_s=None, from_bar=from_bar, to_bar=to_bar)
    check_most("length_s", length_of(request, music), turn.limits.length_s)
    return request


def length_of(request: Asked, music: PageMusic) -> float:
    """The seconds of new music."""
    if isinstance(request, Accompany):
        return music.score.duration_s
    if isinstance(request, Continue):
        return request.length.in_seconds(music.meter, music.score.duration_s) or 0.0
    lines_s, numbers = bar_lines(music)
    assert request.from_bar is not None
    assert request.to_bar is not None
    return lines_s[bisect_right(numbers, request.to_bar)] - lines_s[bisect_left(numbers, request.from_bar)]


def bars_between(music: PageMusic, from_s: float, to_s: float) -> tuple[int, int]:
    """The numbers of the first and the last bar that a region touches. Raises ConfigError."""
    lines_s, numbers = bar_lines(music)
    first, last = (np.searchsorted(lines_s, [from_s + ROUNDED_S, to_s - ROUNDED_S]) - 1).tolist()
    most_s, last = lines_s[-1], min(last, len(numbers) - 1)
    bar_1 = music.notation.first if music.notation else 1
    if not (0 <= from_s < most_s and 0 <= first <= last and numbers[first] >= bar_1):
        begins_s = lines_s[bisect_left(numbers, bar_1)]
        raise ConfigError(
            "from_s", got=from_s, why=f"to_s={to_s:g}", allowed=f"a region within {begins_s:.2f} s to {most_s:.2f} s"
        )
    return numbers[first], numbers[last]


def bar_lines(music: PageMusic) -> tuple[list[float], list[int]]:
    """The seconds where bars begin, then the end of the last, and the bars' numbers."""
    assert music.notation is not None
    assert music.project is not None
    return lines_of(music.notation, music.project), music.notation.numbers


def lines_of(notation: Notation, project: Project) -> list[float]:
    """The seconds where its bars begin in that file, then the end of the last."""
    clock = project.clock
    lines = np.array([*(bar.onset for bar in notation.bars), notation.end])
    lines_s: list[float] = clock.seconds(np.rint(lines * (clock.ticks_per_quarter / UNITS))).tolist()
    return lines_s
