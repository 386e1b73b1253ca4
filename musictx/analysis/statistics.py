"""Figures of a piece: pitch, time, polyphony, and signs of a model gone wrong."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from musictx.music.score import DRUMS, Score

STEPS_PER_BAR = 16
MAJOR = np.array([1, 0, 1, 0, 1, 1, 0, 1, 0, 1, 0, 1])
SCALES = np.array([np.roll(MAJOR, k) for k in range(12)])  # the natural minor scales have the same notes
NAN = float("nan")


def statistics(score: Score, metrical: bool = False) -> dict[str, float]:
    """The figure of each of MEASURES, without drums; NaN where there is nothing to measure."""
    music = score.select(score.program != DRUMS)
    usable = {name for name in MEASURES if len(music) and (metrical or name != "groove_consistency")}
    return {name: float(measure(music)) if name in usable else NAN for name, measure in MEASURES.items()}


def features(scores: Sequence[Score], metrical: bool) -> dict[str, NDArray[np.float64]]:
    """The figures of N pieces by name, (N,) each."""
    rows = [statistics(score, metrical) for score in scores]
    return {name: np.array([row[name] for row in rows], np.float64) for name in MEASURES}


def _pitch_classes(score: Score) -> NDArray[np.int64]:
    """(12,) notes of each pitch class, C first."""
    return np.bincount(score.pitch % 12, minlength=12)


def _entropy(score: Score) -> float:
    p = _pitch_classes(score) / len(score)
    return float(-(p * np.log2(p, where=p > 0, out=np.zeros(12))).sum()) + 0.0  # no minus zero


def _scale_consistency(score: Score) -> float:
    """The largest share of notes in one of the scales (Mogren 2016; MusPy, Dong et al. 2020)."""
    return float((SCALES @ _pitch_classes(score)).max() / len(score))


def _sounding_s(score: Score) -> float:
    """Seconds during which at least one note sounds."""
    sounding_until = np.maximum.accumulate(np.append(0.0, score.offset_s))[:-1]
    return float(np.maximum(score.offset_s - np.maximum(score.onset_s, sounding_until), 0).sum())


def _span_s(score: Score) -> float:
    """Seconds from the first onset until the last note ends."""
    return float(score.duration_s - score.onset_s[0])


def _ratio(a: float, b: float) -> float:
    return a / b if b > 0 else NAN


def _polyphony(score: Score) -> float:
    return _ratio(float((score.offset_s - score.onset_s).sum()), _sounding_s(score))


def _interonset_s(score: Score) -> float:
    onset = np.unique(score.onset_s)
    return _ratio(float(onset[-1] - onset[0]), len(onset) - 1)


def _groove_consistency(score: Score) -> float:
    """1 - the mean share of steps at which neighbouring bars differ (Wu and Yang 2020, section 4.2; bars as MusPy)."""
    steps = np.unique(np.rint(score.onset_s / (score.quarter_s / 4)).astype(np.int64))
    bar = steps // STEPS_PER_BAR
    repeats = np.isin(steps + STEPS_PER_BAR, steps).sum()  # onsets that the next bar repeats
    ends = (bar == bar[0]).sum() + (bar == bar[-1]).sum()  # the first and the last bar have one neighbour
    return 1 - _ratio(float(2 * len(steps) - ends - 2 * repeats), STEPS_PER_BAR * int(bar[-1] - bar[0]))


def _longest_repeat(score: Score) -> float:
    """The most onsets in a row that repeat one pitch."""
    index = np.unique(score.onset_s, return_inverse=True)[1]
    key = np.unique(score.pitch.astype(np.int64) * (len(score) + 1) + index)  # consecutive only within a run
    starts = np.flatnonzero(np.diff(key, prepend=-2) != 1)
    return float(np.diff(starts, append=len(key)).max())


# of a score with notes; NaN for no answer
MEASURES: dict[str, Callable[[Score], float]] = {
    "pitch_class_entropy": _entropy,  # bits
    "pitch_range": lambda s: float(np.ptp(s.pitch)),  # semitones
    "pitches_used": lambda s: float(len(np.unique(s.pitch))),  # of 128
    "scale_consistency": _scale_consistency,  # of the notes
    "polyphony": _polyphony,  # notes at a time
    "note_density": lambda s: _ratio(len(s), _span_s(s)),  # notes/s
    "mean_interonset_s": _interonset_s,
    "mean_duration_s": lambda s: float((s.offset_s - s.onset_s).mean()),
    "groove_consistency": _groove_consistency,  # of the steps
    "silence": lambda s: 1 - _ratio(_sounding_s(s), _span_s(s)),  # of the time
    "longest_note_s": lambda s: float((s.offset_s - s.onset_s).max()),
    "longest_repeat": _longest_repeat,  # onsets
}
