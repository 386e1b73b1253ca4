"""The grid of quantised music: places of its beat at which its notes begin."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.music.score import UNITS, Bars, Meter, Score

TRIPLETS, SIXTEENTHS = (0, 8, 16), (0, 6, 12, 18)
GRIDS: dict[str, tuple[float, ...]] = {  # places in a quarter, in `UNITS` of it; the coarsest first
    "1/8": (0, 12),
    "1/8t": TRIPLETS,
    "1/16": SIXTEENTHS,
    "1/16t": tuple(range(0, UNITS, 4)),
    "1/16+1/8t": tuple(sorted({*TRIPLETS, *SIXTEENTHS})),
    "1/32": tuple(range(0, UNITS, 3)),
}
SWING = "swing"  # eighths whose second is late
LATE = 13.0, 18.0  # where it lies, in `UNITS`
NEAR_S = 0.012  # of a place is on it
NARROW = 6  # times as far apart are places at least, or all music would be near one
LEAST_S = 0.02  # between places: two steps of a clock, or neighbours would be one
MOST_QUARTERS = 10**6  # whose places are listed
SHARE = 0.95  # of the moments at which notes begin are on the grid
EXACT_S, MOSTLY = 0.002, 0.75  # or so many exactly, as after a partial quantise, and nearly all others around it:
AROUND, AROUND_S = 4, 0.04  # times as far apart are places at least
FEWEST = 4  # moments: fewer are on a grid by chance


class BeatGrid(NamedTuple):
    """Places in every quarter at which notes begin, and end too unless the music has shorter notes."""

    name: str
    places: tuple[float, ...]  # of a quarter, in `UNITS`
    ends: bool = True

    def lines_s(self, meter: Meter, to_s: float) -> NDArray[np.float64]:
        """The places up to one after `to_s`, or of `MOST_QUARTERS`, in seconds."""
        quarters = np.arange(min(int(meter.quarters(to_s)) + 2, MOST_QUARTERS))
        # rounded, so that sums of floats do not choose between two steps of a clock
        return meter.seconds((quarters[:, None] + np.array(self.places) / UNITS).ravel()).round(9)

    def put_on(self, score: Score, meter: Meter, from_s: float, off_s: float) -> Score:
        """The notes from a moment on, moved to places at most `off_s` away."""
        lines = self.lines_s(meter, score.duration_s)

        def nearest(at_s: NDArray[np.float64]) -> NDArray[np.int64]:
            later = np.clip(np.searchsorted(lines, at_s), 1, len(lines) - 1)
            return later - (at_s - lines[later - 1] < lines[later] - at_s)

        on = nearest(score.onset_s)
        moves = (score.onset_s > from_s - off_s) & (np.abs(lines[on] - score.onset_s) <= off_s)
        onset_s = np.where(moves, lines[on], score.onset_s)
        off = np.minimum(np.maximum(nearest(score.offset_s), on + 1), len(lines) - 1)
        ends = moves & (score.offset_s > score.onset_s) & (self.ends | (np.abs(lines[off] - score.offset_s) <= off_s))
        return replace(score, onset_s=onset_s, offset_s=np.where(ends, lines[off], score.offset_s))

    def has(self, at_s: NDArray[np.float64], meter: Meter, loosely: bool = False) -> bool:
        """Whether nearly all moments are on the grid; `loosely` is enough for most, and the others around it."""
        quarters = np.floor(meter.quarters(at_s))
        # not the first tempo: that of a count-in may be another
        quarter_s = float(np.median(meter.seconds(quarters + 1) - meter.seconds(quarters)))
        spacing_s = quarter_s * float(np.diff([*self.places, UNITS]).min()) / UNITS
        away_s = self.away_s(meter, at_s)
        near_s = min(AROUND_S, spacing_s / AROUND) if loosely else min(NEAR_S, spacing_s / NARROW)
        is_exact = not loosely or (away_s <= EXACT_S).mean() >= MOSTLY
        return spacing_s >= LEAST_S and bool(is_exact and (away_s <= near_s).mean() >= SHARE)

    def away_s(self, meter: Meter, at_s: NDArray[np.float64]) -> NDArray[np.float64]:
        """The distance of moments from the nearest place."""
        quarters = meter.quarters(at_s)
        whole = np.floor(quarters)
        places = np.array([*self.places, UNITS]) / UNITS
        nearest = places[np.abs((quarters - whole)[:, None] - places).argmin(1)]
        away: NDArray[np.float64] = np.abs(meter.seconds(whole + nearest) - at_s)
        return away


def grid_by_name(name: str) -> BeatGrid:
    return BeatGrid(name, GRIDS.get(name, (0, 16)))


def find_grid(score: Score, meter: Meter) -> BeatGrid | None:
    """The coarsest grid of a score; None for a free performance."""
    moments = np.unique(score.onset_s)
    if len(moments) < FEWEST:
        return None
    first, *others = map(grid_by_name, GRIDS)
    grids = (first, *swing_grids(moments, meter), *others)
    for loosely, grid in product((False, True), grids):
        if grid.has(moments, meter, loosely):
            return grid._replace(ends=grid.has(score.offset_s, meter))
    return None


def keeps_beat(score: Score, meter: Meter) -> bool:
    """Whether notes keep to the beat, as in quantised music or with a click."""
    return meter.whole_s is not None or find_grid(score, meter) is not None


def bars_of(score: Score, meter: Meter, until_s: float) -> Bars | None:
    """A file's bar lines up to one at or after a moment; None for a free performance."""
    return meter.numbered(until_s) if meter.lines_s is not None and keeps_beat(score, meter) else None


def swing_grids(moments_s: NDArray[np.float64], meter: Meter) -> Sequence[BeatGrid]:
    """Eighths whose second is as late as in this music, if some are."""
    within = meter.quarters(moments_s) % 1 * UNITS
    late = within[(within > LATE[0] - 1) & (within < LATE[1] + 1)]
    place = float(np.median(late)) if len(late) else 0.0
    return [BeatGrid(SWING, (0, place))] if LATE[0] <= place <= LATE[1] else []
