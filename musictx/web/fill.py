"""A region of the music written anew for somebody who waits; the rest stays."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from musictx.errors import UserError
from musictx.sampling.gap import Gap, cut_gap, step_s
from musictx.sampling.length import Length
from musictx.sampling.music import Continuation, Drawing
from musictx.sampling.settings import Sampling, Settings
from musictx.tokenizers import Tokenizer
from musictx.tokenizers.gap import knows_gaps
from musictx.web.draw import Ready, Tell, Wish, check_wish, in_time
from musictx.web.limits import Limits
from musictx.web.session import Music

MOST_S = 1e9  # a browser's program may send any number


class Region(NamedTuple):
    """From when to when, in seconds, as a person has dragged or typed it; None: nothing is typed."""

    from_s: Any
    to_s: Any


def fill_takes(
    music: Music,
    region: Region,
    wish: Wish,
    ready: Ready,
    limits: Limits,
    chance: int,
    tell: Tell,
    ending: Callable[[], bool] = lambda: False,
) -> tuple[Continuation, ...]:
    """The music with the region written anew, as often as wished; silent after what was drawn where the time did not
    suffice, or where it is `ending`. Raises UserError for what cannot be."""
    gap = make_gap(music, region, ready.tokenizer, limits)
    check_wish(wish._replace(length_s=gap.seconds), limits)
    sampling = Sampling(wish.temperature, top_p=wish.top_p)
    settings = Settings(sampling, Length(gap.seconds), seed=chance, window=ready.window)
    end_s = time.monotonic() + limits.seconds
    drawing = Drawing([gap], ready.model, ready.tokenizer, settings, wish.variations)
    return in_time(drawing, music, limits, end_s, tell, ending)


def make_gap(music: Music, region: Region, tokenizer: Tokenizer, limits: Limits) -> Gap:
    """The music around the region, whose borders go to the model's nearest steps. Raises UserError for a region that
    is none."""
    from_s, to_s = region
    if not all(isinstance(at, int | float) and abs(at) < MOST_S for at in region):
        raise UserError("there is no region to fill: drag over the roll, or type where it begins and ends")
    here, whole_s = f"{from_s:g} to {to_s:g} s", music.score.duration_s
    step = step_s(tokenizer, music.score.quarter_s)
    first, last, end = (round(at / step) for at in (from_s, to_s, whole_s))
    if from_s < 0 or from_s >= whole_s:
        raise UserError(f"{here} is outside the music, which is from 0 to {whole_s:.2f} s: give a region inside it")
    if first >= last:
        raise UserError(f"{here} is no region: give one of at least {step:g} s, the beginning first")
    if last >= end:
        raise UserError(
            f"{here}: nothing comes after it, for the music ends at {whole_s:.2f} s: end the region earlier, or press "
            "Continue with a motif up to where it begins"
        )
    if to_s - from_s > limits.length_s:
        raise UserError(f"{here}: at most {limits.length_s:g} s are written anew at once: give less")
    return cut_gap(music.score, music.score, from_s, to_s, music.meter, tokenizer)


def can_fill(ready: Ready) -> bool:
    return knows_gaps(ready.tokenizer.vocab)
