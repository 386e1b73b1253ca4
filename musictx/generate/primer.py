"""The primer: the part of a seed that the model continues, and the moment at which it ends."""

from typing import NamedTuple

import numpy as np

from musictx.errors import ConfigError, UserError
from musictx.music.ending import ending_s
from musictx.music.score import Meter, Score

ENDS = ("start", "end")


class Primer(NamedTuple):
    """Music that begins at time 0, and the second at which it ends and new music begins. `left_out_s` is where the
    ending of a finished seed begins, on the seed's own clock; None: nothing is left out."""

    score: Score
    end_s: float
    meter: Meter
    left_out_s: float | None = None


class Part(NamedTuple):
    """How much of a seed: at most one of the three (none: all of it), taken from its `start` or its `end`.

    The seed ends at `until_s`, and the part is the last of it. None: it ends with its last note, but a finished piece,
    taken whole or from its end, ends before its ending. With `on_beat` the primer begins on a beat, and a shorter seed
    ends on one, if need be a little earlier."""

    seconds: float | None = None
    bars: int | None = None
    notes: int | None = None
    side: str = "start"
    on_beat: bool = False  # for models of a grid, which read every primer from a beat on
    until_s: float | None = None


def check_part(part: Part) -> None:
    """Raises ConfigError for more than one amount, and for impossible amounts and sides."""
    given = {name: value for name in ("seconds", "bars", "notes") if (value := getattr(part, name)) is not None}
    if len(given) > 1:
        names = ", ".join(f"⟨seed_{name}⟩={value}" for name, value in given.items())
        raise ConfigError(f"{names}: give one of them")
    for name, value in given.items():
        if not 0 < value < float("inf"):
            raise ConfigError(f"⟨seed_{name}⟩={value}: give more than 0, or leave it out for all")
    if part.until_s is not None and not part.until_s > 0:  # refuses NaN too
        raise ConfigError(
            f"⟨from_s⟩={part.until_s}: give more than 0, or leave it out to continue from the music's end"
        )
    if part.side not in ENDS:
        raise ConfigError(f"⟨seed_from⟩={part.side}: choose one of {', '.join(ENDS)}")


def choose_primer(score: Score, meter: Meter, part: Part = Part()) -> Primer:  # noqa: B008 - it is immutable
    """The part of a seed that is asked for. It ends at `until_s` or where an ending begins; otherwise bars end at their
    bar line, all else with the last note at the latest.
    Raises ConfigError for an impossible part, UserError for one without notes."""
    check_part(part)
    from_end, end_s, until_s = part.side == "end" or part.until_s is not None, score.duration_s, part.until_s
    if until_s is None and (from_end or (part.seconds, part.bars, part.notes) == (None, None, None)):
        until_s = ending_s(score)
    is_cut = until_s is not None and until_s < end_s
    if until_s is not None and is_cut:
        end_s = _beat(until_s, score) if part.on_beat else until_s
        score = score.clip(0.0, end_s)
    left_out_s = end_s if is_cut and part.until_s is None else None
    start_s, stop_s = 0.0, end_s
    if part.notes is not None:
        chosen = np.zeros(len(score), dtype=bool)
        chosen[-part.notes :] = from_end
        chosen[: part.notes] |= not from_end
        score = score.select(chosen)
        start_s = float(score.onset_s.min(initial=end_s)) if from_end else 0.0
        stop_s = end_s if from_end else score.duration_s
    elif part.bars is not None:
        lines = meter.bars_s(end_s)
        start_s, stop_s = float(lines[0]), float(lines[min(part.bars, len(lines) - 1)])
        if from_end:
            start_s, stop_s = float(lines[max(len(lines) - 1 - part.bars, 0)]), float(lines[-1])
            stop_s = end_s if is_cut else stop_s
    elif part.seconds is not None:
        start_s, stop_s = (max(end_s - part.seconds, 0.0), end_s) if from_end else (0.0, min(part.seconds, end_s))
    if part.on_beat:
        start_s = _beat(start_s, score)
    primer = score.clip(start_s, stop_s)
    if not len(primer):
        given = [f"seed_{name}" for name in ("seconds", "bars", "notes") if getattr(part, name) is not None]
        more = "from_s" if part.until_s is not None else (given or ["seed_seconds"])[0]
        raise UserError(f"the seed has no notes: give one with music in it, or raise {more}")
    return Primer(primer, stop_s - start_s, meter, left_out_s)


def _beat(at_s: float, score: Score) -> float:
    """The beat at a moment, or the one before it."""
    return float(max(np.floor(at_s / score.quarter_s + 1e-6), 0) * score.quarter_s)
