"""Motif retention (ours): how many of the seed's motifs return in a continuation, span after span.

A motif is `NOTES` notes in a row in the highest or lowest line. It is their intervals, and whether each step is longer
than, as long as, or shorter than the step before.

The raw figure is the share of the seed's motifs that return. Its excess over shuffled seeds is divided by the excess of
the true continuations: 0 is chance, 1 the composers, repetition far above.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.analysis.bootstrap import interval, interval_of
from musictx.errors import UserError, counted
from musictx.music.score import DRUMS, Score

Indices = NDArray[np.int64]

# chosen by the excess of own seeds over shuffled ones, in standard errors, on 130 MAESTRO v3 validation pieces (seeds
# of 15 s, 6 spans of 15 s, lines of onsets alone). Motifs of 3, 4, 5, 6 notes: 17.1, 13.8, 11.3, 9.4; in 228 chorales
# 3, 4, 5 notes: 12.6, 12.2, 11.8. Chords within 20, 50, 80 ms: 16.7, 17.1, 15.3; only the highest line: 16.9. Rhythm in
# 7 classes: 17.0; without: 17.5, but then 9 % return by chance, not 5.3 %. With sounding notes 3 and 4 notes give 10.0
# and 9.7.
NOTES = 3  # of a motif
CHORD_S = 0.05  # notes at most this far apart are one chord
# a pedal lets notes sound long after the hand has left them
PEDALLED_S = 0.25
# borders at a factor √2, wide enough for a pianist's freedom
RHYTHM = (-0.5, 0.5)  # log2 of the ratio of two steps: shorter | equal | longer


class RetentionCurve(NamedTuple):
    """Retention (W,) in each span; NaN without an excess to scale by, or with fewer than 2 pieces."""

    time_s: NDArray[Any]  # middle of the span; 0 is the end of the seed
    mean: NDArray[Any]  # 0 = shuffled seeds, 1 = true continuations
    low: NDArray[Any]
    high: NDArray[Any]
    generated: NDArray[Any]  # raw shares, 0 … 1: continuation and its own seed
    shuffled: NDArray[Any]  # … and the seeds of other pieces
    true: NDArray[Any]
    true_shuffled: NDArray[Any]
    pieces: NDArray[Any]  # number of pieces that count


def chord_index(onset_s: NDArray[Any]) -> NDArray[np.int64]:
    """(N,) the number of each note's chord, for sorted onsets."""
    return np.cumsum(np.diff(onset_s, prepend=onset_s[:1]) > CHORD_S)


def held_in(metrical: bool) -> float:
    """The most that a note counts as sounding, in seconds."""
    return np.inf if metrical else PEDALLED_S


def chord_ends(score: Score) -> tuple[Indices, Indices]:
    """The lowest and the highest note of each chord, (chords,) each."""
    chord = chord_index(score.onset_s)
    order = np.lexsort((score.pitch, chord)).astype(np.int64)
    first = np.flatnonzero(np.diff(chord[order], prepend=-1))
    return order[first], order[np.append(first[1:], len(order))[: len(first)] - 1]


def lines(score: Score, held_s: float) -> tuple[Indices, Indices]:
    """The notes of the highest and of the lowest line, (M,) each. A note sounds for `held_s` at most."""
    end_s = np.minimum(score.offset_s, score.onset_s + held_s).tolist()
    borders = np.flatnonzero(np.diff(chord_index(score.onset_s), prepend=-1, append=-1)).tolist()
    onset_s, pitch = score.onset_s.tolist(), score.pitch.tolist()
    high, low, sounding = list[int](), list[int](), list[int]()
    for (first, end), bottom, top in zip(pairwise(borders), *chord_ends(score), strict=True):
        sounding = [i for i in sounding if end_s[i] > onset_s[first] + CHORD_S]
        pitches = [pitch[i] for i in sounding]
        if pitch[top] >= max(pitches, default=0):
            high.append(top)
        if pitch[bottom] <= min(pitches, default=127):
            low.append(bottom)
        sounding += range(first, end)
    return np.array(high, np.int64), np.array(low, np.int64)


def ngrams(score: Score, held_s: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The motifs of the highest line, then the lowest, as numbers, and their onsets in seconds."""
    music = score.select(score.program != DRUMS)
    chord = chord_index(music.onset_s)
    start_s = music.onset_s[np.searchsorted(chord, chord)]  # (N,) when each note's chord begins
    columns = [_ngrams(start_s[line], music.pitch[line].astype(np.int64)) for line in lines(music, held_s)]
    keys, onset_s = (np.concatenate(column) for column in zip(*columns, strict=True))
    return keys, onset_s


def _ngrams(onset_s: NDArray[np.float64], pitch: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    m = len(pitch) - NOTES + 1
    if m < 1:
        return np.zeros(0, np.int64), np.zeros(0)
    step = np.digitize(np.diff(np.log2(np.diff(onset_s))), RHYTHM)
    rhythm = sum(step[k : k + m] << 2 * k for k in range(NOTES - 2))
    interval = np.diff(pitch) + 128
    packed = sum(interval[k : k + m] << 8 * k for k in range(NOTES - 1))
    return np.asarray(packed << 2 * (NOTES - 2) | rhythm, np.int64), onset_s[:m]


def retention(
    seeds: Sequence[Score],
    generated: Sequence[Score],
    true: Sequence[Score],
    held_s: float,
    span_s: float,
    horizon_s: float,
) -> RetentionCurve:
    """The curve of one model; `generated` and `true` continue `seeds` from time 0. Raises UserError if pieces are too
    few, or retain too little for a scale."""
    edges_s: NDArray[Any] = np.arange(int(horizon_s / span_s + 1e-9) + 1) * span_s
    keys = [np.unique(ngrams(s, held_s)[0]) for s in seeds]
    valid = [i for i, k in enumerate(keys) if len(k)]
    if len(valid) < 2:
        what = f"{counted(len(valid), 'seed has', 'seeds have')} motifs of {NOTES} notes"
        raise UserError(what, "give at least 2 such pieces, better 30")
    shares, true_shares = (
        _shares([keys[i] for i in valid], [c[i] for i in valid], edges_s, held_s) for c in (generated, true)
    )
    durations_s = np.array([true[i].duration_s for i in valid])
    rows = []
    for w, end_s in enumerate(edges_s[1:]):
        rows_there = np.flatnonzero(durations_s >= end_s - 1e-6)
        if len(rows_there) < 2:
            rows.append([np.nan] * 7 + [len(rows_there)])
            continue
        pairs = np.ix_(rows_there, rows_there)
        own, shuffled, excess = _excess(shares[w][pairs])
        true_own, true_shuffled, true_excess = _excess(true_shares[w][pairs])
        figures: Sequence[float] = (np.nan,) * 3
        if interval(true_excess).low > 1e-9:
            figures = interval_of(_ratio, excess, true_excess)
        rows.append([*figures, own, shuffled, true_own, true_shuffled, len(rows_there)])
    curve = RetentionCurve((edges_s[1:] + edges_s[:-1]) / 2, *np.array(rows).T)
    if np.isnan(curve.mean).all():
        what = f"the true continuations of {len(valid)} pieces return to their seeds no more than chance in any span of"
        raise UserError(f"{what} {span_s:g} s that they fill", "give more pieces, longer ones, or another span_s=")
    return curve


def _shares(
    seeds: list[NDArray[np.int64]], continuations: Sequence[Score], edges_s: NDArray[Any], held_s: float
) -> NDArray[np.float64]:
    """(W, seeds, continuations) the share of each seed's distinct motifs that begin in each span."""
    sizes = np.array([len(s) for s in seeds])
    motifs, at = np.unique(np.concatenate(seeds), return_inverse=True)
    shares = np.zeros((len(edges_s) - 1, len(seeds), len(continuations)))
    for i, continuation in enumerate(continuations):
        keys, onset_s = ngrams(continuation, held_s)
        span = np.searchsorted(edges_s, onset_s, side="right") - 1
        place = np.minimum(np.searchsorted(motifs, keys), len(motifs) - 1)
        is_match = (motifs[place] == keys) & (span >= 0) & (span < len(shares))
        returns = np.zeros((len(shares), len(motifs)), np.int64)
        returns[span[is_match], place[is_match]] = 1
        shares[:, :, i] = np.add.reduceat(returns[:, at], np.cumsum(sizes) - sizes, axis=1) / sizes
    return shares


def _excess(share: NDArray[np.float64]) -> tuple[float, float, NDArray[np.float64]]:
    """Mean share with the own seed, with another's, and each piece's part (N,) in their difference (Hoeffding 1948, the
    projection)."""
    own, others = np.diag(share), len(share) - 1
    row, column = ((share.sum(axis) - own) / others for axis in (0, 1))
    return float(own.mean()), float(row.mean()), own - row - column + row.mean()


def _ratio(excess: NDArray[Any], true_excess: NDArray[Any]) -> NDArray[Any]:
    top, bottom = excess.sum(1), true_excess.sum(1)
    ratio: NDArray[Any] = np.divide(top, bottom, out=np.full_like(top, np.nan), where=bottom > 0)
    return ratio
