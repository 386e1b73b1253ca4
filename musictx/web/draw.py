"""New music for a person who waits: continuations, fills and accompaniments with progress, up to a time limit."""

import random
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from musictx.config.web import Limits
from musictx.errors import ConfigError, UserError
from musictx.generate.accompanying import Accompanied, accompany_melody, check_request
from musictx.generate.continuation import Continuation
from musictx.generate.control import Control
from musictx.generate.draw import Drawing
from musictx.generate.filling import fill_window
from musictx.generate.gap import Gap, cut_gap, step_s
from musictx.generate.melodies import take_melody
from musictx.generate.open_player import Accompanying, Playing
from musictx.generate.primer import ROUNDED_S, Part, Primer, choose_primer, grid_of
from musictx.generate.requests import DEFAULT_S, MAX_SEED, TOP_P, Accompany, Continue, Fill, Length, Request, Sampling
from musictx.generate.result import Music, Place
from musictx.model.header import BundleHeader
from musictx.music.beat_grid import keeps_beat
from musictx.music.harmony import pitch_name
from musictx.music.score import DRUMS, Meter, Score
from musictx.tokenizers.rules import AUTO, Rules
from musictx.web.advice import page_clauses
from musictx.web.session import PageMusic, Step, is_number

REPORT_EVERY = 8  # tokens
FIRST_S = 0.5  # after this time music that is under way is shown, and again after twice as long, and so on
SLIDER_S = 0.01  # the step of the slider that chooses a primer: a beat must not be rounded to another moment
LEAST_S = 0.1  # of a primer
HOW_CLOSE, HOW_CLOSE_MELODY = "how close to the seed", "how close to the melody"  # names of sliders
MOST_BEATS = 2000  # more of them are no beats
R = TypeVar("R", bound=Request)
Report = Callable[[float, float], None]  # gets the seconds that are written, and how many there will be


def usual_top_p(header: BundleHeader) -> float:
    """The slider of top-p before a person moves it; 1 draws from all tokens."""
    share = header.sampling.get("top_p", TOP_P)
    return 1.0 if share is None else share


def sampling_of(sampling: Sampling, header: BundleHeader) -> Sampling:
    """The sampling of a command: a slider at the model's own value leaves it to the bundle."""
    top_p = AUTO if sampling.top_p == usual_top_p(header) else sampling.top_p
    guidance = AUTO if sampling.seed_guidance == header.seed_guidance else sampling.seed_guidance or None
    return replace(sampling, top_p=top_p, seed_guidance=guidance)


def control_of(chords: str | None, key: str, density: float = 0) -> Control:
    """The targets of new music."""
    return Control(key=key or None, chords=(chords or "").strip() or None, density=density or None)


def request_settings(
    seed_guidance: float | str,
    temperature: float,
    top_p: float,
    guard: bool,
    variations: int,
    chords: str,
    key: str,
    density: float,
    lowest: int,
    highest: int,
) -> dict[str, Any]:
    """The settings of continuations and fills. Raises ConfigError for impossible ones."""
    if lowest > highest:
        raise ConfigError("lowest", got=pitch_name(lowest), allowed=f"a note below highest={pitch_name(highest)}")
    sampling = Sampling(temperature, top_p=top_p, guard=guard, seed_guidance=seed_guidance)
    rules, control = Rules(lowest=lowest, highest=highest), control_of(chords, key, density)
    return {"sampling": sampling, "variations": variations, "rules": rules, "control": control}


@dataclass(frozen=True)
class Turn:
    """The time for a person's request; `ending`: whether the server ends."""

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

    def with_settings(self, request: R, header: BundleHeader) -> R:
        """The request with the settings of turn and bundle. Raises ConfigError for too many variations."""
        check_most("variations", request.variations, self.limits.variations)
        return replace(request, sampling=sampling_of(request.sampling, header), random_seed=self.random_seed)


Takes = Generator[Step, None, tuple[Continuation, ...]]  # yields what is under way


def draw_takes(music: PageMusic, request: Continue, opened: Playing, turn: Turn) -> Takes:
    """The continuations, shorter at the end of the turn. Raises UserError for an impossible request."""
    from_s, whole_s = request.part.until_s, music.score.duration_s
    if not is_number(from_s):
        raise ConfigError("from_s", got=from_s, allowed="the second from which new music begins")
    until_s = whole_s if from_s > whole_s - LEAST_S else at_beat(max(from_s, LEAST_S), music)
    # a mark beside the beats is meant: only the end of the music may lie before a bar line
    start = AUTO if until_s == whole_s else "end"
    part = Part(on_beat=opened.tokenizer.voices > 0, until_s=until_s, start=start)
    grid = grid_of(request.rules, music.score, music.meter, opened.tokenizer)
    try:
        primer = choose_primer(music.score, music.meter, part, grid)
    except ConfigError:
        raise
    except UserError:  # its advice names a setting that the page lacks
        raise UserError("no note begins in so short a primer", "take more of the music") from None
    length_s = request.length.in_seconds(primer.meter, primer.end_s) or DEFAULT_S
    check_length(request.length, length_s, turn.limits)
    drawing = begin(opened, primer, turn.with_settings(request, opened.header))
    return in_time(drawing, music, length_s, turn, Place(music.project, primer.start_s) if music.project else None)


def fill_takes(music: PageMusic, request: Fill, opened: Playing, turn: Turn) -> Takes:
    """The takes of a region, partly silent at the end of the turn. Raises UserError for an impossible request."""
    if not (is_number(request.from_s) and is_number(request.to_s)):
        raise UserError("there is no region to fill", "drag over the roll, or type where it begins and ends")
    from_s, to_s = (at_beat(border_s, music) for border_s in (request.from_s, request.to_s))
    gap = cut_gap(music.score, music.score, from_s, to_s, music.meter, opened.tokenizer)
    grid = grid_of(request.rules, music.score, music.meter, opened.tokenizer)
    if grid is not None:
        gap = gap._replace(from_s=from_s, to_s=to_s, grid=grid)  # a beat may lie between two steps of the clock
    check_most("length_s", gap.seconds, turn.limits.length_s)
    window = fill_window(opened.header, opened.player)
    drawing = turn.with_settings(request, opened.header).drawing(Length(gap.seconds), window)
    step = step_s(opened.tokenizer, music.score.quarter_s)
    place = Place(music.project, step_s=step) if music.project else None
    return in_time(begin(opened, gap, drawing), music, gap.seconds, turn, place)


def at_beat(at_s: float, music: PageMusic) -> float:
    """The beat that a rounded number stands for, else the number."""
    beats = np.array(beats_of(music.score, music.meter))
    near = beats[np.abs(beats - at_s) <= ROUNDED_S]
    return float(near[0]) if len(near) else at_s


def beats_of(score: Score, meter: Meter) -> list[float]:
    """The beats of music in seconds; none of a free performance."""
    if not keeps_beat(score, meter):
        return []
    beats: list[float] = meter.beats_s(score.duration_s).round(9).tolist()
    return beats if len(beats) <= MOST_BEATS else []


def check_length(length: Length, length_s: float, limits: Limits) -> None:
    """Raises ConfigError for more than the page draws."""
    if length.bars is None:
        check_most("length_s", length_s, limits.length_s)
    elif length_s > limits.length_s:
        why = f"they last {length_s:.0f} s"
        raise ConfigError("Length.bars", got=length.bars, why=why, allowed=f"at most {limits.length_s:g} s of bars")


def begin(opened: Playing, prompt: Primer | Gap, request: Continue) -> Drawing:
    return Drawing([prompt], opened.player, opened.tokenizer, request, own=opened.header.sampling)


def in_time(drawing: Drawing, music: PageMusic, length_s: float, turn: Turn, place: Place | None) -> Takes:
    """The music that is drawn in the turn. Raises UserError for none."""
    ids, show_s = list[int](), FIRST_S
    for step in drawing:
        if turn.over:
            drawing.stop(time_limit(turn.limits))
            break
        ids.append(int(step.ids[0]))
        if len(ids) % REPORT_EVERY == 0:
            turn.report(drawing.tokenizer.seconds(np.array(ids), music.score.quarter_s), length_s)
            if turn.took_s > show_s:
                show_s = 2 * turn.took_s
                yield Step(music, tuple(drawing.continuations()[0]))
    if not ids:
        raise UserError(f"{time_limit(turn.limits)} before any music was drawn", "give less of a primer")
    fields: dict[str, Any] = {
        "name": music.name,
        "signature": music.meter.signature,
        "meter": music.meter,
        "seed": None,
        "place": place,
    }
    return tuple(Music(**vars(each), **fields) for each in drawing.continuations()[0])


def time_limit(limits: Limits) -> str:
    return f"{limits.seconds:g} s went by"


def check_most(name: str, value: float, most: float) -> None:
    """Raises ConfigError outside (0, `most`]."""
    if not 0 < value <= most:
        raise ConfigError(name, got=value, allowed=f"more than 0 and at most {most:g}")


def voices_request(
    chords: str, temperature: float, seed_guidance: float, variations: int, key: str, voices: str
) -> Accompany:
    """The request of the tab Accompany. Raises ConfigError."""
    sampling = replace(Accompany().sampling, temperature=temperature, seed_guidance=seed_guidance)
    return Accompany(sampling, voices=voices, control=control_of(chords, key), variations=variations)


def for_hands(request: Accompany) -> Accompany:
    """The request without the choice of a voice and guidance, which the tab hides where a piano plays."""
    return replace(request, voices=Accompany.voices, sampling=replace(request.sampling, seed_guidance=None))


def harmonise(
    music: PageMusic, request: Accompany, harmoniser: Accompanying, turn: Turn
) -> tuple[tuple[Accompanied, ...], str]:
    """The accompaniments, and remarks on the melody. Raises UserError for an impossible request, and at the end of the
    turn."""
    check_most("variations", request.variations, turn.limits.variations)
    score, meter, _, project, parts = music.reading(in_beats=True)
    heard = [part for part in parts if len(part) and part.program[0] != DRUMS]
    request = replace(request, random_seed=turn.random_seed)
    request = check_request(request, harmoniser.tokenizer, harmoniser.header, "the model here")
    line = take_melody(heard or [score], "The melody", request, harmoniser.tokenizer, meter, music.name)
    line = line._replace(project=project)
    whole_s = line.score.duration_s

    def watch(done: int, of: int) -> None:
        if turn.over:
            raise UserError(f"{time_limit(turn.limits)} before the voices were whole", "give a shorter melody")
        turn.report(done / of * whole_s, whole_s)

    takes = accompany_melody(line, harmoniser.player, harmoniser.tokenizer, request, watch)
    return tuple(takes), " ".join(f"{page_clauses(each)}." for each in line.remarks)
