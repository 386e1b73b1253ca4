"""Chords for a tune that has none: a hidden Markov model of chords, half bar by half bar, in any key.

Its table was counted in lead sheets of OpenEWLD, which are in the public domain (`studies/tune_chords.py`): how long a
tune is on each step above the roots of its chords, and which chord follows which, from the tonic.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from musictx.music.harmony import Chord
from musictx.music.notation.parts import Note
from musictx.music.score import UNITS

TABLE = Path(__file__).with_name("tune_chords.safetensors")
QUALITIES = ("", "m", "7", "dim")
KINDS = len(QUALITIES)
CHORDS = 12 * KINDS  # chord k: root k // KINDS above the tonic, quality k % KINDS
LONG = 4 * UNITS  # a bar of this length may have two chords, if its middle is on a quarter
SPREAD = 50.0  # pairs that are added to those of each chord, shared out as chords are

Floats = NDArray[np.float64]


class Table(NamedTuple):
    """Counts, by mode (major, minor) where chords are meant from the tonic: quarters of a tune on each step above a
    root (Q, 12), chords (2, C), pairs of different ones (2, C, C), and, within a bar and at its line, how often a chord
    changes and stays (2, 2)."""

    notes: Floats
    chords: Floats
    pairs: Floats
    stays: Floats

    @classmethod
    def empty(cls) -> "Table":
        """A little of everything, so that nothing is impossible."""
        pairs = np.zeros((2, CHORDS, CHORDS))
        return cls(np.full((KINDS, 12), 0.5), np.full((2, CHORDS), 0.1), pairs, np.ones((2, 2)))


@cache
def packaged() -> Table:
    arrays = load_file(TABLE)
    return Table(*(arrays[name].astype(np.float64) for name in Table._fields))


class Place(NamedTuple):
    """Where a chord may change, in units, and whether a bar begins there."""

    begin: int
    end: int
    is_line: bool


def places_of(lines: Sequence[int]) -> list[Place]:
    """The bars between lines; of a long one its halves."""
    places = list[Place]()
    for begin, end in pairwise(lines):
        middle = (begin + end) // 2 if end - begin >= LONG and (end - begin) % (2 * UNITS) == 0 else end
        places += [Place(begin, middle, True), *([Place(middle, end, False)] if middle < end else [])]
    return places


def quarters_of(notes: Iterable[Note], places: Sequence[Place]) -> Floats:
    """(P, 12) how long each pitch class sounds in each place."""
    out, begins = np.zeros((len(places), 12)), [place.begin for place in places]
    for note in notes:
        for n in range(max(bisect_right(begins, note.onset) - 1, 0), bisect_left(begins, note.offset)):
            sounds = min(note.offset, places[n].end) - max(note.onset, places[n].begin)
            out[n, note.pitch % 12] += max(sounds, 0) / UNITS
    return out


def chords_of_tune(notes: Iterable[Note], lines: Sequence[int], table: Table | None = None) -> list[tuple[int, Chord]]:
    """The likeliest chords of a tune between bar lines, each with the place where it begins; rests keep the chord."""
    places, table = places_of(lines), table or packaged()
    quarters = quarters_of(notes, places)
    sounds = np.flatnonzero(quarters.sum(1))
    heard, at = quarters[sounds], [places[n] for n in sounds.tolist()]
    found = max((_path(heard, at, table, tonic, mode) for mode in (0, 1) for tonic in range(12)), key=itemgetter(0))[1]
    last = np.maximum(np.searchsorted(sounds, np.arange(len(places)), side="right") - 1, 0)
    return [(place.begin, found[n]) for place, n in zip(places, last.tolist(), strict=True)]


def _path(quarters: Floats, places: Sequence[Place], table: Table, tonic: int, mode: int) -> tuple[float, list[Chord]]:
    """The log-likelihood of the best chords in a key (Viterbi), and these chords."""
    first = np.log(table.chords[mode] / table.chords[mode].sum())  # (C,)
    following = table.pairs[mode] + SPREAD * np.exp(first)
    np.fill_diagonal(following, 0.0)
    following = np.log(following / following.sum(1, keepdims=True) + 1e-12)  # (C, C)
    changes, stays = np.log(table.stays / table.stays.sum(1, keepdims=True)).T
    steps = []
    for is_line in (False, True):
        steps.append(following + changes[int(is_line)])
        np.fill_diagonal(steps[-1], stays[int(is_line)])
    notes = np.log(table.notes / table.notes.sum(1, keepdims=True))
    roots = [np.roll(quarters, -(root + tonic), axis=1) @ notes.T for root in range(12)]  # (P, Q) each
    heard = np.stack(roots, 1).reshape(len(places), CHORDS)  # (P, C)
    best, came = first + heard[0], list[NDArray[np.int64]]()
    for place, here in zip(places[1:], heard[1:], strict=True):
        ways = best[:, None] + steps[int(place.is_line)]
        came.append(ways.argmax(0))
        best = ways.max(0) + here
    path = [int(best.argmax())]
    for before in reversed(came):
        path.append(int(before[path[-1]]))
    return float(best.max()), [Chord((k // KINDS + tonic) % 12, QUALITIES[k % KINDS]) for k in reversed(path)]
