"""What is measured of new music beside the seed that it continues: notes that keep to the grid and the bars, neither
copy the seed nor go in circles, and stay as dense, as high and as full as the seed.

All music is on one clock, that of the file. Notes within 50 ms are one onset. Steps from onset to onset are compared in
twelfths of a quarter, so that a figure is the same at every tempo, and music a little off the grid can be a copy.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from musictx.analysis.key import key_of
from musictx.analysis.motif import chord_index, lines
from musictx.analysis.statistics import MEASURES as STATISTICS
from musictx.music.beat_grid import BeatGrid
from musictx.music.score import Meter, Score
from musictx.tokenizers.rules import SCALES

CLOSE_S = 0.001  # a moment on a line; ticks are rounded
COPIED, LOOPED = 4, 8  # onsets of a run that may be the seed's, notes of one that may come again
STEP = 12  # parts of a quarter
LONG_S = 8.0
MODES = {"major": SCALES["major"], "minor": (*SCALES["minor"], SCALES["harmonic"][-1])}

Row = dict[str, float | None]  # None: there is nothing to measure


class Setting(NamedTuple):
    """Where the music is: its bars, the places that its notes keep to, and from when to when it is new."""

    meter: Meter
    grid: BeatGrid | None
    from_s: float
    to_s: float


def measure(seed: Score, new: Score, setting: Setting) -> Row:
    """All figures of new music after a seed, both without drums."""
    copied = copied_runs(seed, new, setting.meter)
    return {
        "on grid": on_grid(new, setting),
        "starts at a bar": starts_at_bar(setting),
        "begins a bar": begins_bar(new, setting),
        "copied": copied.share,
        "longest copy": copied.longest,
        "looped": looped(new),
        "one key": one_key(new),
        "density": density(seed, new, setting),
        "beyond range": beyond(seed, new),
        "in key": in_key(seed, new),
        "wait": longest_wait_s(new, setting),
        "hanging": int((new.offset_s - new.onset_s > LONG_S).sum()),
        "polyphony": ratio(polyphony(new), polyphony(seed)),
    }


def ratio(a: float | None, b: float | None) -> float | None:
    return None if a is None or not b else a / b


def on_grid(new: Score, setting: Setting) -> float | None:
    """The share of notes that begin on a place of the grid."""
    if setting.grid is None or not len(new):
        return None
    return float((setting.grid.away_s(setting.meter, new.onset_s) <= CLOSE_S).mean())


def starts_at_bar(setting: Setting) -> float:
    """1 if the time of new music begins at a bar line, 0 if not."""
    return at_bar(setting.from_s, setting.meter)


def begins_bar(new: Score, setting: Setting) -> float | None:
    """1 if the first new note begins at a bar line, 0 if not."""
    return at_bar(float(new.onset_s[0]), setting.meter) if len(new) else None


def at_bar(at_s: float, meter: Meter) -> float:
    return float(np.abs(meter.bars_s(at_s, more=1) - at_s).min() <= CLOSE_S)


def onsets(score: Score, meter: Meter) -> list[tuple[int, frozenset[int]]]:
    """The pitches of each onset, and the step from the onset before it."""
    index = chord_index(score.onset_s)
    first = np.flatnonzero(np.diff(index, prepend=-1))
    step = np.rint(np.diff(meter.quarters(score.onset_s[first]), prepend=0.0) * STEP).astype(np.int64).tolist()
    found: list[set[int]] = [set() for _ in first]
    for k, pitch in zip(index.tolist(), score.pitch.tolist(), strict=True):
        found[k - int(index[0])].add(pitch)
    return [(s, frozenset(pitches)) for s, pitches in zip(step, found, strict=True)]


class Copied(NamedTuple):
    share: float | None  # of the runs of `COPIED` onsets
    longest: int  # onsets in a row


def copied_runs(seed: Score, new: Score, meter: Meter) -> Copied:
    """What of the new music is the seed's, pitches and steps; the step to a run's first onset does not count."""
    of_seed, of_new = onsets(seed, meter), onsets(new, meter)
    shared = np.zeros((len(of_new) + 1, len(of_seed) + 1), np.int64)  # onsets in a row that agree, up to each pair
    for i, (step, pitches) in enumerate(of_new):
        for j, (other_step, other_pitches) in enumerate(of_seed):
            if pitches == other_pitches:
                shared[i + 1, j + 1] = shared[i, j] + 1 if step == other_step and shared[i, j] else 1
    most = shared[1:].max(1, initial=0)
    whole = most[COPIED - 1 :]
    return Copied(float((whole >= COPIED).mean()) if len(whole) else None, int(most.max(initial=0)))


def runs(values: Sequence[Hashable], length: int) -> list[tuple[Hashable, ...]]:
    return [tuple(values[k : k + length]) for k in range(len(values) - length + 1)]


def looped(new: Score) -> float | None:
    """The share of runs of `LOOPED` notes, in any rhythm, that came before in the new music."""
    order = np.lexsort((new.pitch, chord_index(new.onset_s)))
    found = Counter(runs(new.pitch[order].tolist(), LOOPED))
    return 1 - len(found) / found.total() if found else None


def one_key(new: Score) -> float:
    """The most notes in a row of one pitch in the highest or the lowest line."""
    return max(longest_run(new.pitch[line].tolist()) for line in lines(new, np.inf)) if len(new) else 0


def longest_run(values: Sequence[int]) -> int:
    longest = now = min(len(values), 1)
    for before, value in pairwise(values):
        now = now + 1 if value == before else 1
        longest = max(longest, now)
    return longest


def density(seed: Score, new: Score, setting: Setting) -> float | None:
    """Notes a second, over the seed's from its first note on."""
    if not len(seed):
        return None
    seed_s = min(seed.duration_s, setting.from_s) - float(seed.onset_s[0])
    return ratio(len(new) / (setting.to_s - setting.from_s), len(seed) / max(seed_s, CLOSE_S))


def beyond(seed: Score, new: Score) -> float | None:
    """Semitones by which new notes leave the seed's range, below or above."""
    if not len(seed) or not len(new):
        return None
    low, high = (int(extreme(seed.pitch.astype(int))) for extreme in (np.min, np.max))
    return float(max(low - int(new.pitch.min()), int(new.pitch.max()) - high, 0))


def in_key(seed: Score, new: Score) -> float | None:
    """The share of notes in the scale of the seed's key, which in minor has both sevenths."""
    key = key_of(seed)
    if key is None or not len(new):
        return None
    return float(np.isin((new.pitch.astype(int) - key[0]) % 12, MODES[key[1]]).mean())


def longest_wait_s(new: Score, setting: Setting) -> float:
    """The longest time without a new note, from the beginning to the end."""
    moments = np.concatenate([[setting.from_s], np.unique(new.onset_s), [setting.to_s]])
    return float(np.diff(moments).max())


def polyphony(score: Score) -> float | None:
    """Notes at a time, while any sounds."""
    found = STATISTICS["polyphony"](score) if len(score) else float("nan")
    return None if np.isnan(found) else float(found)
