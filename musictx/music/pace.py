"""The tempo that a piece had before it slowed down to its end: new music goes on in it."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from musictx.music.ticks import RawMidi, TempoMap

ENDING, BEFORE = 4, 16  # bars: the longest ritardando, and those that say how fast the piece was
SHORTEST = 4  # bars of a piece, which an excerpt may lack
SLOWER = 0.97  # of the tempo before; players and programs vary it by less


def pace_before(tempi: Sequence[tuple[int, float]], lines: Sequence[int]) -> float | None:
    """The tempo from which a piece slows down within its last bars; None where it does not.

    `tempi` have places and quarters a minute, `lines` are where bars begin, and the end."""
    bars = len(lines) - 1
    if bars < SHORTEST:
        return None
    border = lines[-1 - min(ENDING, bars // 2)]
    first = lines[max(bars - ENDING - BEFORE, 0)]
    at = [place for place, _ in tempi]
    lasts = [max(min(b, border) - max(a, first), 0) for a, b in pairwise([*at, lines[-1]])]
    usual = _median([speed for _, speed in tempi], lasts)
    before = tempi[max(bisect_left(at, border) - 1, 0)][1]
    return usual if tempi[-1][1] < SLOWER * usual <= before else None


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
