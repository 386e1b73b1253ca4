"""What the loudness of a written note may follow from: its part, its place in the bar, its neighbours."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from musictx.music.notation.notation import Notation
from musictx.music.score import UNITS, beat_of
from musictx.tokenizers.score.slots import OTHER, RIGHT, TUNE

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Columns = dict[str, NDArray[np.generic]]  # of so many notes (N,), by their names

ROLES = ("tune", "right hand", "left hand", "other part")  # by slots
PLACES = ("bar line", "half bar", "beat", "half beat", "quarter beat", "other place")
NEARBY, AROUND, WIDE = 2 * UNITS, 4 * UNITS, 16 * UNITS  # units on both sides
REST = UNITS  # units of silence in a part that end a phrase
OCTAVE, MOST = 12, 4.0  # semitones; octaves and doublings, at most


def features_of(notation: Notation, slots: Sequence[int | None]) -> Columns:
    """The features (N,) of the notes of all parts, one part after the other. A slot says which part is the tune or a
    hand; without a tune, the highest notes of the right hand are it."""
    sizes = [len(part.notes) for part in notation.parts]
    rows = [note for part in notation.parts for note in part.notes]
    onset, length, pitch = np.array(rows, np.int64).reshape(-1, 3).T
    role = np.repeat([OTHER if slot is None else min(slot, OTHER) for slot in slots], sizes)
    borders = np.cumsum([0, *sizes])
    parts = [slice(a, b) for a, b in pairwise(borders) if b > a]
    own = [of_a_part(onset[mine], length[mine], pitch[mine]) for mine in parts]
    found: Columns = {name: np.concatenate([each[name] for each in own]) for name in own[0]} if own else {}
    if TUNE not in slots:
        role[(role == RIGHT) & found["top of its part"].astype(bool)] = TUNE
    found |= {name: role == n for n, name in enumerate(ROLES)}
    found |= places(notation, onset)
    top, bottom, count = extremes(onset, pitch)
    density = within(onset, onset, WIDE)
    way = onset / max(notation.end, 1)
    tempo = np.array(notation.tempi)[:, 1][np.searchsorted([each.onset for each in notation.tempi], onset, "right") - 1]
    found |= {
        "pitch": (pitch - 60) / OCTAVE,
        "below the moment's top": (top - pitch) / OCTAVE,
        "above the moment's bottom": (pitch - bottom) / OCTAVE,
        "notes at once": np.log2(count),
        "length": _log(length),
        "notes nearby": _log(within(onset, onset, NEARBY)),
        "fuller than the piece": np.log2(density / density.mean()) if len(density) else density,
        "the tune moves": within(onset[role == TUNE], onset, UNITS) > 0,
        "way through the piece": way,
        "its square": way**2,
        "tempo": np.log2(tempo / 120),
    }
    return found


def of_a_part(onset: Ints, length: Ints, pitch: Ints) -> Columns:
    """What a note (N,) is among those of its part, which has some; they come by onset."""
    top, bottom, count = extremes(onset, pitch)
    moments, first, moment = np.unique(onset, return_index=True, return_inverse=True)  # (M,), (M,), (N,)
    line = top[first]  # the highest of each moment, (M,)
    after, step = np.diff(moments, append=moments[-1] + WIDE), np.diff(line, append=line[-1]) / OCTAVE
    until = np.maximum.accumulate(np.maximum.reduceat(onset + length, first))
    begins = np.append(True, moments[1:] - until[:-1] >= REST)  # of a phrase, (M,)
    phrase = np.cumsum(begins) - 1
    start, end = moments[begins], np.append(until[:-1][begins[1:]], until[-1])
    near = within(onset, onset, AROUND)
    sums = np.append(0, np.cumsum(pitch))
    low, high = np.searchsorted(onset, onset - AROUND), np.searchsorted(onset, onset + AROUND, side="right")
    columns: Columns = {
        "above the part's mean": (pitch - pitch.mean()) / OCTAVE,
        "below its part's top": (top - pitch) / OCTAVE,
        "top of its part": pitch == top,
        "bottom of its part": pitch == bottom,
        "notes of its part": np.log2(count),
        "to the next": _log(after)[moment],
        "since the one before": _log(np.append(WIDE, after[:-1]))[moment],
        "step to the next": step.clip(-MOST, MOST)[moment],
        "step from the one before": np.append(0, step[:-1]).clip(-MOST, MOST)[moment],
        "above the neighbours": (pitch - (sums[high] - sums[low]) / near) / OCTAVE,
        "notes of the part nearby": _log(near),
        "since the phrase began": np.log2(1 + (moments - start[phrase]) / UNITS)[moment],
        "until the phrase ends": np.log2(1 + (end[phrase] - moments) / UNITS)[moment],
    }
    return columns


def places(notation: Notation, onset: Ints) -> Columns:
    """Where notes (N,) lie in their bars; an upbeat is the end of a bar."""
    bars = np.array([(bar.onset, bar.full, UNITS * beat_of(*bar[1:]), end) for bar, end in notation.spans])  # (K, 4)
    bars[0, 0] -= max(bars[0, 1] - bars[0, 3], 0)
    line, full, beat, _ = bars[(np.searchsorted(bars[1:, 0], onset, side="right"))].T
    at, parts = onset - line, np.where(beat % 36 == 0, 3, 2)  # of a beat; of a dotted quarter there are three
    grids = [full, full / 2, beat, beat / parts, beat / parts / 2]
    level = np.select([at % grid == 0 for grid in grids], np.arange(len(grids)), len(grids))
    found: Columns = {name: level == n for n, name in enumerate(PLACES)}
    return found | {"way through the bar": (at / full).clip(0, 1)}


def extremes(onset: Ints, pitch: Ints) -> tuple[Ints, Ints, Ints]:
    """For each note (N,) the highest and the lowest of those that begin with it, and how many these are."""
    moments, moment, count = np.unique(onset, return_inverse=True, return_counts=True)
    top, bottom = np.full(len(moments), -1), np.full(len(moments), 128)
    np.maximum.at(top, moment, pitch)
    np.minimum.at(bottom, moment, pitch)
    return top[moment], bottom[moment], count[moment]


def within(onset: Ints, around: Ints, reach: int) -> Ints:
    """How many onsets lie within so many units of each moment (N,) of `around`."""
    ordered = np.sort(onset)
    low = np.searchsorted(ordered, around - reach, side="left")
    return np.asarray(np.searchsorted(ordered, around + reach, side="right") - low)


def _log(units: Ints) -> Array:
    """Doublings of a quarter, or of its number of units."""
    return np.log2(np.maximum(units, 1) / UNITS).clip(-MOST, MOST)
