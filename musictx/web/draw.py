"""Continues music, or writes a region of it again, for a person who waits: reports its progress, and stops at the time
limit.
"""

import random
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from musictx.config.web import Limits
from musictx.errors import ConfigError, UserError
from musictx.generate.control import Control
from musictx.generate.draw import Continuation, Drawing
from musictx.generate.gap import cut_gap
from musictx.generate.guidance import NothingToHold
from musictx.generate.primer import Part, choose_primer
from musictx.generate.requests import DEFAULT_S, MAX_SEED, TOP_P, UNSAID, Continue, Fill, Length, Own, Sampling
from musictx.model.protocol import LanguageModel
from musictx.music.harmony import pitch_name
from musictx.tokenizers import Tokenizer
from musictx.tokenizers.gap import knows_gaps
from musictx.tokenizers.rules import AUTO, Rules
from musictx.web.session import PageMusic, Step, is_number

REPORT_EVERY = 16  # tokens
FIRST_S = 2.0  # after this time music that is under way is shown, and again after twice as long, and so on
SLIDER_S = 0.1  # the step of the slider that chooses a primer
HOW_CLOSE = "how close to the seed"  # the name of its slider
Report = Callable[[float, float], None]  # gets the seconds that are written, and how many there will be


class Ready(NamedTuple):
    """A model to draw with."""

    model: LanguageModel
    tokenizer: Tokenizer
    window: int | None = None  # tokens that its fills had in training, both sides and the gap together
    own: Own = UNSAID  # what its bundle says of the sampler

    @property
    def fills(self) -> bool:
        """Whether it was trained to fill."""
        return knows_gaps(self.tokenizer.vocab)

    @property
    def top_p(self) -> float:
        """Where the slider of top-p is until a person moves it; at 1 all tokens may be drawn."""
        share = self.own.get("top_p", TOP_P)
        return 1.0 if share is None else share

    @property
    def seed_guidance(self) -> float:
        """Where the slider of seed guidance is until a person moves it."""
        return self.own.get("seed_guidance") or 0.0


class Wish(NamedTuple):
    """What a person sets before pressing Continue or Fill: a request in the numbers of sliders."""

    from_s: float  # where the new music begins: what is before it is the primer
    length_s: float = DEFAULT_S
    temperature: float = Sampling.temperature
    top_p: float | None = None  # None: that of the model
    variations: int = 2
    model: str = ""  # empty: the one that the music began with
    seed_guidance: float | None = None  # 0: none; None: that of the model
    chords: str | None = None  # these two: empty or None: any
    key: str | None = None
    density: float = 0  # notes a second; 0: any
    lowest: int = Rules.lowest
    highest: int = Rules.highest

    def how(self, random_seed: int) -> dict[str, Any]:
        """What every request takes, without its sampling. Raises ConfigError for what excludes each other."""
        chords = (self.chords or "").strip()
        control = Control(key=self.key or None, chords=chords or None, density=self.density or None)
        if self.lowest > self.highest:
            allowed = f"a note below highest={pitch_name(self.highest)}"
            raise ConfigError("lowest", got=pitch_name(self.lowest), allowed=allowed)
        rules = Rules(lowest=self.lowest, highest=self.highest)
        return {"control": control, "rules": rules, "random_seed": random_seed, "variations": int(self.variations)}

    def sampling(self, ready: Ready) -> Sampling:
        """As a command would ask: a slider at the model's own value means that the person leaves it to the bundle."""
        top_p = AUTO if self.top_p in (None, ready.top_p) else self.top_p
        guidance = AUTO if self.seed_guidance in (None, ready.own.get("seed_guidance")) else self.seed_guidance or None
        return Sampling(self.temperature, top_p=top_p, seed_guidance=guidance)


@dataclass(frozen=True)
class Turn:
    """The time in which a person's request is answered; `ending`: whether the server ends."""

    limits: Limits
    report: Report
    ending: Callable[[], bool]
    began_s: float = field(default_factory=time.monotonic)
    random_seed: int = field(default_factory=lambda: random.randint(0, MAX_SEED))

    @property
    def over(self) -> bool:
        return self.took_s > self.limits.seconds or self.ending()

    @property
    def took_s(self) -> float:
        return time.monotonic() - self.began_s


Region = tuple[Any, Any]  # where it begins and ends, in seconds, as a person has dragged or typed it
Taking = Generator[Step, None, tuple[Continuation, ...]]  # yields what is under way


def draw_takes(music: PageMusic, wish: Wish, ready: Ready, turn: Turn) -> Taking:
    """The continuations, shorter than wished if the turn was over. Raises UserError for impossible wishes."""
    check_wish(wish, turn.limits)
    if not is_number(wish.from_s):
        raise ConfigError("from_s", got=wish.from_s, allowed="the second from which new music begins")
    whole_s = music.score.duration_s
    until_s = whole_s if wish.from_s > whole_s - SLIDER_S else max(wish.from_s, SLIDER_S)
    try:
        primer = choose_primer(music.score, music.meter, Part(on_beat=ready.tokenizer.voices > 0, until_s=until_s))
    except ConfigError:
        raise
    except UserError:  # its advice names a setting that the page lacks
        raise UserError("no note begins in so short a primer", "take more of the music") from None
    request = Continue(wish.sampling(ready), Length(wish.length_s), **wish.how(turn.random_seed))
    try:
        drawing = Drawing([primer], ready.model, ready.tokenizer, request, own=ready.own)
    except NothingToHold:
        advice = f"take more of it, or move “{HOW_CLOSE}” to 0"
        raise UserError("the primer is too short to keep close to", advice) from None
    return in_time(drawing, music, wish.length_s, turn)


def fill_takes(music: PageMusic, region: Region, wish: Wish, ready: Ready, turn: Turn) -> Taking:
    """The music with new music in the region, as often as wished; the rest of the region is silent if the turn was
    over. Raises UserError for impossible wishes."""
    if not all(map(is_number, region)):
        raise UserError("there is no region to fill", "drag over the roll, or type where it begins and ends")
    gap = cut_gap(music.score, music.score, *region, music.meter, ready.tokenizer)
    check_wish(wish._replace(length_s=gap.seconds), turn.limits)
    unguided = wish._replace(seed_guidance=None)  # a fill has no seed
    request = Fill(unguided.sampling(ready), **wish.how(turn.random_seed))
    asked = request.drawing(Length(gap.seconds), ready.window)
    return in_time(Drawing([gap], ready.model, ready.tokenizer, asked, own=ready.own), music, gap.seconds, turn)


def in_time(drawing: Drawing, music: PageMusic, length_s: float, turn: Turn) -> Taking:
    """What is drawn until the turn is over. Raises UserError if that is nothing."""
    seen, show_s = list[int](), FIRST_S
    for step in drawing:
        if turn.over:
            drawing.stop(went_by(turn.limits))
            break
        seen.append(int(step.ids[0]))
        if len(seen) % REPORT_EVERY == 0:
            turn.report(drawing.tokenizer.seconds(np.array(seen), music.score.quarter_s), length_s)
            if turn.took_s > show_s:
                show_s = 2 * turn.took_s
                yield Step(music, tuple(drawing.continuations()[0]))
    if not seen:
        raise UserError(f"{went_by(turn.limits)} before any music was drawn", "give less of a primer")
    return tuple(drawing.continuations()[0])


def went_by(limits: Limits) -> str:
    return f"{limits.seconds:g} s went by"


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
