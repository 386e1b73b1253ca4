"""Figures of a piece: pitch, time, polyphony, and signs of a model gone wrong."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.errors import ConfigError
from musictx.music.score import DRUMS, Score

STEPS_PER_BAR = 16
MAJOR = np.array([1, 0, 1, 0, 1, 1, 0, 1, 0, 1, 0, 1])
SCALES = np.array([np.roll(MAJOR, k) for k in range(12)])  # the natural minor scales have the same notes
NAN = float("nan")


class Statistics(NamedTuple):
    """One figure for each row of TABLE, in its order; None if a piece has nothing to measure."""

    pitch_class_entropy: float | None
    pitch_range: float | None
    pitches_used: float | None
    scale_consistency: float | None
    polyphony: float | None
    note_density: float | None
    mean_interonset_s: float | None
    mean_duration_s: float | None
    groove_consistency: float | None
    silence: float | None
    longest_note_s: float | None
    longest_repeat: float | None


class Statistic(NamedTuple):
    name: str
    unit: str
    measure: Callable[[Score, float | None], float]  # of a score with notes and seconds per step; NaN for no answer


def statistics(score: Score, grid_s: float | None = None) -> Statistics:
    """The figures of a piece, without drums. Only groove consistency needs `grid_s`, seconds per step of a grid with 16
    steps a bar. A score without notes has no figures. Raises ConfigError for a grid_s of 0 or less."""
    if grid_s is not None and not grid_s > 0:
        allowed = "the seconds of a sixteenth, more than 0, or null for music off a grid"
        raise ConfigError("grid_s", got=grid_s, allowed=allowed)
    music = score.select(score.program != DRUMS)
    values = [row.measure(music, grid_s) if len(music) else NAN for row in TABLE]
    return Statistics(*(None if np.isnan(value) else float(value) for value in values))


def describe(figures: Statistics) -> str:
    """A line for each figure: name, value, unit."""
    shown = ["—" if value is None else f"{value:.4g}" for value in figures]
    return "\n".join(f"{r.name.replace('_', ' '):<20} {v:>8} {r.unit}" for r, v in zip(TABLE, shown, strict=True))


def features(pieces: Sequence[Statistics]) -> dict[str, NDArray[np.float64]]:
    """The figures of N pieces by name, (N,) each, NaN for None."""
    columns = np.array(pieces, dtype=np.float64).reshape(len(pieces), len(TABLE)).T
    return {row.name: column for row, column in zip(TABLE, columns, strict=True)}


def distributions(scores: Sequence[Score], grid_s: float | None = None) -> dict[str, NDArray[Any]]:
    """Measures of all events of N scores, (E,) each, and the figures of each score, (N,) each, without drums.

    Pitch intervals are those from the highest note of an onset to that of the next (the skyline).
    """
    music = [score.select(score.program != DRUMS) for score in scores]
    events: dict[str, Callable[[Score], NDArray[Any]]] = {
        "interonset_s": lambda s: np.diff(np.unique(s.onset_s)),
        "duration_s": lambda s: s.offset_s - s.onset_s,
        "pitch": lambda s: s.pitch.astype(np.float64),
        "pitch_interval": _skyline_intervals,
    }
    pooled = {name: np.concatenate([np.zeros(0), *(of(s) for s in music)]) for name, of in events.items()}
    return pooled | features([statistics(score, grid_s) for score in music])


def _skyline_intervals(score: Score) -> NDArray[np.float64]:
    highest = np.diff(score.onset_s, append=np.inf) > 0  # notes of one onset are sorted by pitch
    return np.diff(score.pitch[highest].astype(np.float64))


def _pitch_classes(score: Score) -> NDArray[np.int64]:
    """(12,) notes of each pitch class, C first."""
    return np.bincount(score.pitch % 12, minlength=12)


def _entropy(score: Score, _: float | None) -> float:
    p = _pitch_classes(score) / len(score)
    return float(-(p * np.log2(p, where=p > 0, out=np.zeros(12))).sum()) + 0.0  # no minus zero


def _scale_consistency(score: Score, _: float | None) -> float:
    """The largest share of notes that lie in one of the scales (Mogren 2016; MusPy, Dong et al. 2020)."""
    return float((SCALES @ _pitch_classes(score)).max() / len(score))


def _sounding_s(score: Score) -> float:
    """Seconds during which at least one note sounds."""
    heard_until = np.maximum.accumulate(np.append(0.0, score.offset_s))[:-1]
    return float(np.maximum(score.offset_s - np.maximum(score.onset_s, heard_until), 0).sum())


def _span_s(score: Score) -> float:
    """Seconds from the first onset until the last note ends."""
    return float(score.duration_s - score.onset_s[0])


def _ratio(a: float, b: float) -> float:
    return a / b if b > 0 else NAN


def _polyphony(score: Score, _: float | None) -> float:
    return _ratio(float((score.offset_s - score.onset_s).sum()), _sounding_s(score))


def _interonset_s(score: Score, _: float | None) -> float:
    onset = np.unique(score.onset_s)
    return _ratio(float(onset[-1] - onset[0]), len(onset) - 1)


def _groove_consistency(score: Score, grid_s: float | None) -> float:
    """1 - the mean share of steps at which a bar's onsets differ from the next bar's (Wu and Yang 2020, section 4.2;
    neighbouring bars as in MusPy, from the first bar with an onset to the last)."""
    if grid_s is None:
        return NAN
    steps = np.unique(np.rint(score.onset_s / grid_s).astype(np.int64))
    bar = steps // STEPS_PER_BAR
    kept = np.isin(steps + STEPS_PER_BAR, steps).sum()  # onsets that the next bar repeats
    ends = (bar == bar[0]).sum() + (bar == bar[-1]).sum()  # the first and the last bar have one neighbour
    return 1 - _ratio(float(2 * len(steps) - ends - 2 * kept), STEPS_PER_BAR * int(bar[-1] - bar[0]))


def _longest_repeat(score: Score, _: float | None) -> float:
    """The most onsets in a row that repeat one pitch."""
    index = np.unique(score.onset_s, return_inverse=True)[1]
    key = np.unique(score.pitch.astype(np.int64) * (len(score) + 1) + index)  # consecutive only within a run
    starts = np.flatnonzero(np.diff(key, prepend=-2) != 1)
    return float(np.diff(starts, append=len(key)).max())


TABLE = (
    Statistic("pitch_class_entropy", "bits", _entropy),
    Statistic("pitch_range", "semitones", lambda s, _: float(np.ptp(s.pitch))),
    Statistic("pitches_used", "of 128", lambda s, _: float(len(np.unique(s.pitch)))),
    Statistic("scale_consistency", "of the notes", _scale_consistency),
    Statistic("polyphony", "notes at a time", _polyphony),
    Statistic("note_density", "notes/s", lambda s, _: _ratio(len(s), _span_s(s))),
    Statistic("mean_interonset_s", "s", _interonset_s),
    Statistic("mean_duration_s", "s", lambda s, _: float((s.offset_s - s.onset_s).mean())),
    Statistic("groove_consistency", "of the steps", _groove_consistency),
    Statistic("silence", "of the time", lambda s, _: 1 - _ratio(_sounding_s(s), _span_s(s))),
    Statistic("longest_note_s", "s", lambda s, _: float((s.offset_s - s.onset_s).max())),
    Statistic("longest_repeat", "onsets", _longest_repeat),
)
