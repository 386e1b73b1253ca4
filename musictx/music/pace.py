"""The tempo that a piece had before it slowed down to its end: new music goes on in it."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from musictx.music.ticks import RawMidi, TempoMap

ENDING, BEFORE = 4, 16  # bars: the longest ritardando, and those that say how fast the piece was
# Whole bars that a single slower tempo may last: 24 songs of OpenScore Lieder end in one. 12 hold it for so few, and 8
# of these say ritardando or the like; of the others 2 do: theirs is an Adagio, or a first tempo
HELD = 2
SHORTEST = 4  # bars of a piece, which an excerpt may lack
SLOWER = 0.97  # of the tempo before; players and programs vary it by less


def pace_before(tempi: Sequence[tuple[int, float]], lines: Sequence[int]) -> float | None:
    """The tempo from which a piece slows down within its last bars; None where it does not. One drop to a tempo that
    holds begins a section.

    `tempi` have places and quarters a minute, `lines` are where bars begin, and the end."""
    bars = len(lines) - 1
    if bars < SHORTEST:
        return None
    border = lines[-1 - min(ENDING, bars // 2)]
    first = lines[max(bars - ENDING - BEFORE, 0)]
    at = [place for place, _ in tempi]
    lasts = [max(min(b, border) - max(a, first), 0) for a, b in pairwise([*at, lines[-1]])]
    usual = _median([speed for _, speed in tempi], lasts)
    late = max(bisect_left(at, border) - 1, 0)
    changes = [(after[0], after[1] - before[1]) for before, after in pairwise(tempi[late:]) if after[1] != before[1]]
    if not tempi[-1][1] < SLOWER * usual <= tempi[late][1]:
        return None
    holds = bars - bisect_left(lines, changes[-1][0])
    return usual if holds <= HELD or sum(change < 0 for _, change in changes) > 1 else None


def pace_at(tick: int, clock: TempoMap, midi: RawMidi) -> float | None:
    """The tempo before a ritardando that ends at a tick, where music is heard at one tempo and counts beats."""
    at = midi.tempo.tolist()
    if len(clock.tempo) > 1 or len(at) < 2 or max(at) >= tick or not clock.ticks_per_quarter:
        return None
    end_s = float(clock.seconds(np.array(tick)))
    lines = clock.ticks(clock.meter(midi.signatures, end_s).bars_s(end_s))
    tempi = sorted(zip(at, (6e7 / midi.mspq).tolist(), strict=True), key=lambda tempo: tempo[0])
    return pace_before(tempi, lines[lines <= tick].tolist())


def _median(values: Sequence[float], weights: Sequence[int]) -> float:
    """The value with half of the weight below it; the last of all without a weight."""
    below, half = 0, sum(weights) / 2
    for value, weight in sorted(zip(values, weights, strict=True)):
        below += weight
        if below > half:
            return value
    return values[-1]
