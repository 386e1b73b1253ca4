"""Swing: the second eighth or sixteenth of each pair comes late. Scores are written straight, and players know."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from musictx.music.channels import Places
from musictx.music.midi_file import META, Event, EventFile, EventTrack, notes_of
from musictx.music.score import UNITS

NEAR = 0.1  # of a unit: how far an onset may lie from the grid, for programs that round their ticks
PAIRS = (UNITS, UNITS // 2)  # of eighths, of sixteenths
LATEST = 2 / 3  # of a pair: triplets are no swing, since the grid has them
ENOUGH = 8  # late notes, at places of their own


class Swing(NamedTuple):
    """Where the second note of each pair begins, in units; in the middle without swing."""

    pair: int
    late: float

    @property
    def is_straight(self) -> bool:
        return 2 * self.late == self.pair

    @property
    def remark(self) -> str:
        """What new music does."""
        kind = "eighths" if self.pair == PAIRS[0] else "sixteenths"
        return f"its {kind} swing by {self.late / self.pair:.0%}, and so will new ones"

    def straight(self, units: ArrayLike) -> NDArray[np.float64]:
        """Places as they are written."""
        return self._moved(units, self.late, self.pair / 2)

    def played(self, units: ArrayLike) -> NDArray[np.float64]:
        """Written places as they sound."""
        return self._moved(units, self.pair / 2, self.late)

    def _moved(self, units: ArrayLike, old: float, new: float) -> NDArray[np.float64]:
        whole, within = np.divmod(np.asarray(units, float), self.pair)
        return whole * self.pair + np.interp(within, (0, old, self.pair), (0, new, self.pair))


STRAIGHT = Swing(UNITS, UNITS / 2)


def swing_of(onsets: Sequence[float], near: float) -> Swing:
    """The swing of music whose every note is on the first or the late place of a pair, to `near` units; else none."""
    places = np.unique(np.asarray(onsets))
    for pair in PAIRS:
        within = places % pair
        within = within[np.minimum(within, pair - within) > near]
        if len(within) >= ENOUGH and np.ptp(within) <= 2 * near:
            late = float(np.median(within))
            if pair / 2 + near < late < LATEST * pair - near:
                return Swing(pair, late)
    return STRAIGHT


def straight(file: EventFile, drums: Places) -> tuple[EventFile, Swing]:
    """A MIDI file with its swing written straight, and that swing, which its `drums` do not tell."""
    per_unit = int.from_bytes(file.division) / UNITS
    notes = [n for t, track in enumerate(file.tracks) for n in notes_of(track) if (t, n.channel) not in drums]
    swing = swing_of([note.on / per_unit for note in notes], nearness(per_unit))
    events = (each for track in file.tracks for each in track.events)
    if swing.is_straight or not all(_fits(each, per_unit, swing.pair) for each in events):
        return file, STRAIGHT
    tracks = list[EventTrack]()
    for mine, end in file.tracks:
        units = np.array([*(each.tick for each in mine), end]) / per_unit
        *ticks, last = np.rint(swing.straight(units) * per_unit).astype(int).tolist()
        tracks.append(EventTrack([e._replace(tick=at) for e, at in zip(mine, ticks, strict=True)], last))
    return file._replace(tracks=tracks), swing


def _fits(event: Event, per_unit: float, pair: int) -> bool:
    """Whether bars from a time signature on are whole pairs, which begin with them."""
    if event.kind != META or event.data[1] != 0x58 or len(event.data) < 5:
        return True
    bar = 4 * UNITS * event.data[3] / 2 ** event.data[4]
    return not (bar % pair or round(event.tick / per_unit, 6) % pair)


def nearness(per_unit: float) -> float:
    """How far from the grid a note of it may begin: between two ticks it is written at one of them."""
    return max(NEAR, 0.5 / per_unit + 1e-9) if per_unit >= 1 else NEAR
