"""Continues music, or writes a region of it again, for a person who waits: reports its progress, and stops at the time
limit.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from musictx.config.web import Limits
from musictx.errors import ConfigError, UserError
from musictx.generate.draw import Continuation, Drawing
from musictx.generate.gap import Gap, cut_gap, step_s
from musictx.generate.guidance import NothingToHold
from musictx.generate.primer import Part, Primer, choose_primer
from musictx.generate.requests import DEFAULT_S, TOP_P, UNSAID, Continue, Fill, Length, Own, Sampling
from musictx.model.protocol import LanguageModel
from musictx.music.grid import one_piano, quantise, thin_to_voices
from musictx.music.score import Score
from musictx.tokenizers import Tokenizer, knows_one_piano
from musictx.tokenizers.gap import knows_gaps
from musictx.tokenizers.rules import AUTO
from musictx.web.session import Heard, PageMusic

TELL_EVERY = 16  # tokens
SLIDER_S = 0.1  # the step of the slider that chooses a primer
HOW_CLOSE = "how close to the seed"  # the name of its slider
Report = Callable[[float], None]  # gets seconds of new music


class Ready(NamedTuple):
    """A model to draw with; `window` is how many tokens its fills had in training, both sides and the gap together."""

    model: LanguageModel
    tokenizer: Tokenizer
    window: int | None = None


class Wish(NamedTuple):
    """What a person sets before pressing Continue or Fill: a request in the numbers of sliders."""

    from_s: float  # where the new music begins: what is before it is the primer
    length_s: float = DEFAULT_S
    temperature: float = Sampling.temperature
    top_p: float | None = None  # None: that of the model
    variations: int = 2
    model: str = ""  # empty: the one that the music began with
    seed_guidance: float | None = None  # 0: none; None: that of the model

    def sampling(self, own: Own) -> Sampling:
        """As a command would ask: a slider at the model's own value means that the person leaves it to the bundle."""
        top_p = AUTO if self.top_p in (None, own_top_p(own)) else self.top_p
        guidance = AUTO if self.seed_guidance in (None, own.get("seed_guidance")) else self.seed_guidance or None
        return Sampling(self.temperature, top_p=top_p, seed_guidance=guidance)


def draw_takes(
    music: PageMusic,
    wish: Wish,
    ready: Ready,
    limits: Limits,
    chance: int,
    report: Report,
    ending: Callable[[], bool] = lambda: False,
    own: Own = UNSAID,
) -> tuple[Continuation, ...]:
    """The continuations, shorter than wished if time ran out, or the server is `ending`. Raises UserError for
    impossible wishes."""
    check_wish(wish, limits)
    primer = make_primer(music, wish, on_beat=ready.tokenizer.voices > 0)
    request = Continue(wish.sampling(own), Length(wish.length_s), random_seed=chance, variations=int(wish.variations))
    end_s = time.monotonic() + limits.seconds
    try:
        drawing = Drawing([primer], ready.model, ready.tokenizer, request, own=own)
    except NothingToHold:
        raise UserError(
            "the primer is too short to keep close to", f"take more of it, or move “{HOW_CLOSE}” to 0"
        ) from None
    return in_time(drawing, music, limits, end_s, report, ending)


def own_top_p(own: Own) -> float:
    """Where the slider of top-p is until a person moves it; at 1 all tokens may be drawn."""
    share = own.get("top_p", TOP_P)
    return 1.0 if share is None else share


def in_time(
    drawing: Drawing, music: PageMusic, limits: Limits, end_s: float, report: Report, ending: Callable[[], bool]
) -> tuple[Continuation, ...]:
    """What is drawn until the monotonic clock shows `end_s`, or the server is `ending`. Raises UserError if that is
    nothing."""
    seen = list[int]()
    for step in drawing:
        if time.monotonic() > end_s or ending():
            drawing.stop(went_by(limits))
            break
        seen.append(int(step.ids[0]))
        if len(seen) % TELL_EVERY == 0:
            report(drawing.tokenizer.seconds(np.array(seen), music.score.quarter_s))
    if not seen:
        raise UserError(f"{went_by(limits)} before any music was drawn", "give less of a primer")
    return tuple(drawing.continuations()[0])


def went_by(limits: Limits) -> str:
    return f"{limits.seconds:g} s went by"


def make_primer(music: PageMusic, wish: Wish, on_beat: bool = False) -> Primer:
    """The part of the music that the model continues, up to a beat on a grid. Raises UserError if no note begins in
    it."""
    if not isinstance(wish.from_s, int | float):
        raise ConfigError("from_s", got=wish.from_s, allowed="the second from which new music begins")
    whole_s = music.score.duration_s
    until_s = whole_s if wish.from_s > whole_s - SLIDER_S else max(wish.from_s, SLIDER_S)
    try:
        return choose_primer(music.score, music.meter, Part(on_beat=on_beat, until_s=until_s))
    except ConfigError:
        raise
    except UserError:
        raise UserError("no note begins in so short a primer", "take more of the music") from None


def check_wish(wish: Wish, limits: Limits) -> None:
    """Raises ConfigError for more than the page allows one person."""
    check_most("length_s", wish.length_s, limits.length_s)
    check_most("variations", wish.variations, limits.variations)
    if wish.variations != int(wish.variations):
        raise ConfigError("variations", got=wish.variations, allowed="a whole number")


def check_most(name: str, value: float, most: float) -> None:
    """Raises ConfigError outside (0, `most`]."""
    if not 0 < value <= most:
        raise ConfigError(name, got=value, allowed=f"more than 0 and at most {most:g}")


def shorten(music: PageMusic, limits: Limits) -> PageMusic:
    """As much of the music as the page takes, and a line if it was longer. Raises UserError if nothing remains."""
    score, written, left = beginning(music.score, limits), music.written, ""
    if not len(score):
        most = f"{limits.music_s:g} s, or more begin at once than the page takes"
        raise UserError(f"{music.name}: no note begins in its first {most}")
    if len(score) < len(music.score) or score.duration_s < music.score.duration_s:
        left = f"The page takes no longer music: these are the first {score.duration_s:.0f} s."
    if written is not None:
        written = written._replace(score=beginning(written.score, limits))
    return music._replace(score=score, written=written if written and len(written.score) else None, note=left)


def fit(music: PageMusic, tokenizer: Tokenizer) -> PageMusic:
    """The music as a model hears it, and lines on what is left out or changed. Raises UserError if nothing remains,
    TokenError for anything else beyond the vocabulary."""
    played = music.played or Heard(music.score, music.meter)
    (score, meter), left = played, ""
    if tokenizer.metrical and music.written:
        (score, meter), left = music.written, "Its first tempo is used throughout, since the model counts beats."
    inside = (score.pitch >= tokenizer.lo) & (score.pitch <= tokenizer.hi)
    if not inside.any():
        raise UserError(f"{music.name}: no note lies within the model's range, {tokenizer.lo} to {tokenizer.hi}")
    if not inside.all():
        left += f" {int((~inside).sum())} notes outside the model's range are left out."
    score = score.select(inside)
    if tokenizer.voices:
        on_grid = quantise(score)
        if said := on_grid.remark():
            left += f" {said[0].upper()}{said[1:]}."
        thin, lost = thin_to_voices(on_grid.score)
        score = thin if lost else on_grid.score
        if lost:
            left += f" It is heard as four voices: {lost} notes are left out or cut short."
    if knows_one_piano(tokenizer):
        score = one_piano(score)
        if music.tracks > 1:
            left += f" Its {music.tracks} tracks are heard as one piano."
        if program := int(score.program[0]):
            left += f" Its instrument, program {program}, is heard as a piano, and kept in what is written."
    if music.drums:
        left += " Its drums are left out."
    if pedal := music.pedal_remark[bool(tokenizer.metrical and music.written)]:
        left += f" {pedal[0].upper()}{pedal[1:]}."
    tokenizer.encode(score)
    return music._replace(score=score, meter=meter, note=left.strip(), played=played)


def beginning(score: Score, limits: Limits) -> Score:
    """The music up to where it becomes more than the page takes."""
    sounding_s = np.cumsum(np.minimum(score.offset_s, limits.music_s) - score.onset_s)
    few = np.arange(len(score)) < limits.notes
    taken = few & (score.onset_s < limits.music_s) & (sounding_s <= limits.sounding_s)
    end_s = limits.music_s if taken.all() else float(score.onset_s[np.argmin(taken)])
    return score.clip(0.0, min(end_s, limits.music_s))


MOST_S = 1e9  # a browser's program may send any number


class Region(NamedTuple):
    """Where it begins and ends, in seconds, as a person has dragged or typed it; None: nothing is typed."""

    from_s: Any
    to_s: Any


def fill_takes(
    music: PageMusic,
    region: Region,
    wish: Wish,
    ready: Ready,
    limits: Limits,
    chance: int,
    report: Report,
    ending: Callable[[], bool] = lambda: False,
    own: Own = UNSAID,
) -> tuple[Continuation, ...]:
    """The music with new music in the region, as often as wished; the rest of the region is silent if time ran out, or
    the server is `ending`. Raises UserError for impossible wishes."""
    gap = make_gap(music, region, ready.tokenizer, limits)
    check_wish(wish._replace(length_s=gap.seconds), limits)
    unguided = wish._replace(seed_guidance=None)  # a fill has no seed
    request = Fill(unguided.sampling(own), random_seed=chance, variations=int(wish.variations))
    asked = request.drawing(Length(gap.seconds), ready.window)
    end_s = time.monotonic() + limits.seconds
    drawing = Drawing([gap], ready.model, ready.tokenizer, asked, own=own)
    return in_time(drawing, music, limits, end_s, report, ending)


def make_gap(music: PageMusic, region: Region, tokenizer: Tokenizer, limits: Limits) -> Gap:
    """The music around the region, whose borders move to the model's nearest steps. Raises UserError for an impossible
    region."""
    from_s, to_s = region
    if not all(isinstance(at, int | float) and abs(at) < MOST_S for at in region):
        raise UserError("there is no region to fill", "drag over the roll, or type where it begins and ends")
    here, whole_s = f"{from_s:g} to {to_s:g} s", music.score.duration_s
    step = step_s(tokenizer, music.score.quarter_s)
    first, last, end = (round(at / step) for at in (from_s, to_s, whole_s))
    if from_s < 0 or from_s >= whole_s:
        raise UserError(f"{here} is outside the music, which is from 0 to {whole_s:.2f} s", "give a region inside it")
    if first >= last:
        raise UserError(f"{here} is not a region", f"give one of at least {step:g} s, the beginning first")
    if last >= end:
        hint = "end the region earlier, or press Continue with a primer up to where it begins"
        raise UserError(f"{here}: nothing comes after it, since the music ends at {whole_s:.2f} s", hint)
    if to_s - from_s > limits.length_s:
        raise UserError(f"{here}: the page writes at most {limits.length_s:g} s of new music at once", "give less")
    return cut_gap(music.score, music.score, from_s, to_s, music.meter, tokenizer)


def can_fill(ready: Ready) -> bool:
    return knows_gaps(ready.tokenizer.vocab)
