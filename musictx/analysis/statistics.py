"""Figures of a piece: pitch, time, polyphony, and signs of a model gone wrong."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.music.score import DRUMS, Score

STEPS_PER_BAR = 16
MAJOR = np.array([1, 0, 1, 0, 1, 1, 0, 1, 0, 1, 0, 1])
SCALES = np.array([np.roll(MAJOR, k) for k in range(12)])  # the natural minor scales have the same notes
NAN = float("nan")


class Statistics(NamedTuple):
    """The figure of each of MEASURES; None if a piece has nothing to measure."""

    pitch_class_entropy: float | None  # bits
    pitch_range: float | None  # semitones
    pitches_used: float | None  # of 128
    scale_consistency: float | None  # of the notes
    polyphony: float | None  # notes at a time
    note_density: float | None  # notes/s
    mean_interonset_s: float | None
    mean_duration_s: float | None
    groove_consistency: float | None  # of the steps
    silence: float | None  # of the time
    longest_note_s: float | None
    longest_repeat: float | None  # onsets


def statistics(score: Score, grid_s: float | None = None) -> Statistics:
    """The figures of a piece, without drums. Only groove consistency needs `grid_s`, seconds per step of a grid with 16
    steps a bar. A score without notes has no figures."""
    music = score.select(score.program != DRUMS)
    values = {name: measure(music, grid_s) if len(music) else NAN for name, measure in MEASURES.items()}
    return Statistics(**{name: None if np.isnan(value) else float(value) for name, value in values.items()})


def features(pieces: Sequence[Statistics]) -> dict[str, NDArray[np.float64]]:
    """The figures of N pieces by name, (N,) each, NaN for None."""
    columns = np.array(pieces, dtype=np.float64).reshape(len(pieces), len(MEASURES)).T
    return dict(zip(Statistics._fields, columns, strict=True))


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


# of a score with notes, and the seconds per step of its grid; NaN for no answer
MEASURES: dict[str, Callable[[Score, float | None], float]] = {
    "pitch_class_entropy": _entropy,
    "pitch_range": lambda s, _: float(np.ptp(s.pitch)),
    "pitches_used": lambda s, _: float(len(np.unique(s.pitch))),
    "scale_consistency": _scale_consistency,
    "polyphony": _polyphony,
    "note_density": lambda s, _: _ratio(len(s), _span_s(s)),
    "mean_interonset_s": _interonset_s,
    "mean_duration_s": lambda s, _: float((s.offset_s - s.onset_s).mean()),
    "groove_consistency": _groove_consistency,
    "silence": lambda s, _: 1 - _ratio(_sounding_s(s), _span_s(s)),
    "longest_note_s": lambda s, _: float((s.offset_s - s.onset_s).max()),
    "longest_repeat": _longest_repeat,
}
