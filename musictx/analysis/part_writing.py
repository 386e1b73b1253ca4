"""The rules of four-part writing: where a chorale grid breaks each of them.

`RULES` has one row for each rule. The rules see pitches on a grid of sixteenths, not how notes are spelled: an
augmented second is a minor third to them. A repeated note is one long note, and a rest of up to `DETACHED` sixteenths
belongs to the note before. Steps are neighbouring sixteenths, and intervals are counted in semitones, so that a fifth
means a perfect one. Beats count from the first bar line; ends of phrases are not seen. Bach breaks most of these rules
now and then.

The voices are S, A, T, B. "Two voices" means each of their six pairs. A rest ends a voice's line: what comes before is
not compared with what comes after.
"""

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.analysis.key import tonics
from musictx.music.grid import N_VOICES, REST, STEPS_PER_QUARTER, Grid
from musictx.tokenizers.rules import FIFTH, OCTAVE, VOICE_RANGES, parallel

Mask = NDArray[np.bool_]
Pitches = NDArray[np.int64]

UPPER, LOWER = np.triu_indices(N_VOICES, 1)  # (6,) each: the pairs of voices
NEIGHBOURS = LOWER - UPPER == 1
OUTER = LOWER - UPPER == N_VOICES - 1
CHOIR = NEIGHBOURS & (LOWER < N_VOICES - 1)  # soprano and alto, alto and tenor
DETACHED = 2  # sixteenths of rest after a note that is played short
STEP, WIDE = 2, 7  # the largest step and the largest leap that need not be recovered

PAIRS = tuple(f"{'SATB'[u]}-{'SATB'[v]}" for u, v in zip(UPPER, LOWER, strict=True))
COLUMNS: dict[int, tuple[str, ...]] = {1: ("SATB",), N_VOICES: tuple("SATB"), len(PAIRS): PAIRS}


class Rule(NamedTuple):
    """`broken` makes of a grid (T, 4) where it is broken: (T, 6) by pairs, (T, 4) by voices, or (T, 1)."""

    name: str
    meaning: str
    broken: Callable[[Pitches], Mask]


class Finding(NamedTuple):
    step: int  # the sixteenth in which the rule is broken
    voices: str  # "S-B" for two voices, "S" for one, "SATB" for all


def findings(grid: Grid) -> dict[str, list[Finding]]:
    """All findings of each rule, in time, for a grid (T, 4) of pitches."""
    pitch = held(grid).astype(np.int64)  # (T, 4)
    return {rule.name: [*_listed(rule.broken(pitch))] for rule in RULES}


def held(grid: Grid) -> Grid:
    """The grid with each note held over a short rest, up to the next note of its voice: detached notes make a line."""
    joined = grid.copy()
    for voice in joined.T:
        sung = np.flatnonzero(voice != REST)
        for last, following in pairwise(sung):
            if following - last <= DETACHED + 1:
                voice[last:following] = voice[last]
    return joined


def beats_of(grid: Grid) -> float:
    """The quarters in which any voice sounds."""
    return int((held(grid) != REST).any(1).sum()) / STEPS_PER_QUARTER


def _listed(broken: Mask) -> Iterable[Finding]:
    names = COLUMNS[broken.shape[1]]
    return (Finding(step, names[column]) for step, column in np.argwhere(broken).tolist())


def _before(values: Pitches, first: int = REST) -> Pitches:
    """The values (T, …) of the step before each."""
    return np.concatenate([np.full_like(values[:1], first), values[:-1]])


def _earlier(true: Mask) -> Mask:
    """What was True (T, …) in the step before each."""
    return np.concatenate([np.zeros_like(true[:1]), true[:-1]])


def _begins(broken: Mask) -> Mask:
    """Only the first step of each run of True, column by column."""
    return broken & ~_earlier(broken)


def _moves(grid: Pitches) -> Pitches:
    """(T, 4) semitones from the step before, up above 0; 0 after and before a rest."""
    before = _before(grid)
    return np.where((grid != REST) & (before != REST), grid - before, 0)


def _together(grid: Pitches) -> Mask:
    """(T, 6) both voices sound."""
    sung: Mask = grid != REST
    return sung[:, UPPER] & sung[:, LOWER]


def _apart(grid: Pitches) -> Pitches:
    """(T, 6) semitones from the lower voice up to the upper; below 0 where they cross."""
    return grid[:, UPPER] - grid[:, LOWER]


def _ways(grid: Pitches) -> tuple[Pitches, Pitches]:
    """(T, 6) each: the direction of a pair's upper and lower voice, -1, 0 or 1."""
    way = np.sign(_moves(grid))
    return way[:, UPPER], way[:, LOWER]


def _is_perfect(apart: Pitches) -> Mask:
    return np.isin(abs(apart) % 12, (OCTAVE, FIFTH))


def _parallels(grid: Pitches) -> Mask:
    then = _before(grid)
    broken: Mask = parallel(grid[:, UPPER], grid[:, LOWER], then[:, UPPER], then[:, LOWER])
    return broken


def _parallel_fifths(grid: Pitches) -> Mask:
    broken: Mask = _parallels(grid) & (abs(_apart(grid)) % 12 == FIFTH)
    return broken


def _parallel_octaves(grid: Pitches) -> Mask:
    broken: Mask = _parallels(grid) & (_apart(grid) % 12 == OCTAVE)
    return broken


def _contrary(grid: Pitches) -> Mask:
    upper, lower = _ways(grid)
    apart, then = _apart(grid), _apart(_before(grid))
    broken: Mask = (upper * lower < 0) & _is_perfect(apart) & (abs(apart) % 12 == abs(then) % 12)
    return broken


def _hidden(grid: Pitches) -> Mask:
    upper, lower = _ways(grid)
    apart, then = _apart(grid), _apart(_before(grid))
    leaps = abs(_moves(grid))[:, UPPER] > STEP
    broken: Mask = OUTER & (upper * lower > 0) & leaps & _is_perfect(apart) & (abs(apart) % 12 != abs(then) % 12)
    return broken


def _crossed(grid: Pitches) -> Mask:
    return _together(grid) & (_apart(grid) < 0)


def _crossing(grid: Pitches) -> Mask:
    return _begins(_crossed(grid))


def _overlaps(grid: Pitches) -> Mask:
    then, kept = _before(grid), ~_crossed(grid) & ~_crossed(_before(grid))
    beyond = (grid[:, LOWER] > then[:, UPPER]) | (grid[:, UPPER] < then[:, LOWER])
    broken: Mask = NEIGHBOURS & beyond & _together(grid) & _together(then) & kept
    return broken


def _too_wide(grid: Pitches) -> Mask:
    return _begins(CHOIR & _together(grid) & (_apart(grid) > 12))


def _outside(grid: Pitches) -> Mask:
    low, high = np.array(VOICE_RANGES).T
    broken: Mask = (grid != REST) & (grid != _before(grid)) & ((grid < low) | (grid > high))
    return broken


def _wide_leaps(grid: Pitches) -> Mask:
    size = abs(_moves(grid))
    return np.isin(size, (10, 11)) | (size > 12)


def _tritone_leaps(grid: Pitches) -> Mask:
    broken: Mask = abs(_moves(grid)) == 6
    return broken


def _not_recovered(grid: Pitches) -> Mask:
    moves, at = _moves(grid), np.arange(len(grid))[:, None]
    began = np.maximum.accumulate(np.where(grid != _before(grid), at, 0), axis=0)  # (T, 4) each note's first step
    leap = _before(np.take_along_axis(moves, began, axis=0), 0)  # by which the voice came to the note it leaves
    recovered = (np.sign(moves) == -np.sign(leap)) & (abs(moves) <= STEP)
    broken: Mask = (np.arange(N_VOICES) < N_VOICES - 1) & (moves != 0) & (abs(leap) > WIDE) & ~recovered
    return broken


def _one_direction(grid: Pitches) -> Mask:
    broken: Mask = abs(np.sign(_moves(grid)).sum(1)) == N_VOICES
    return broken[:, None]


def _chord_table(degree: int, *chords: tuple[int, ...]) -> Pitches:
    """(4096,) for each set of pitch classes, as bits: the pitch class of a degree of the chord, -1 for other chords."""
    table = np.full(2**12, -1)
    for root in range(12):
        for chord in chords:
            table[sum(1 << (root + note) % 12 for note in chord)] = (root + degree) % 12
    return table


MAJOR_TRIADS = ((0, 4, 7), (0, 4))
TRIADS = (*MAJOR_TRIADS, (0, 3, 7), (0, 3))
DOMINANT_SEVENTHS = ((0, 4, 7, 10), (0, 4, 10))
SEVENTHS = (*DOMINANT_SEVENTHS, (0, 3, 7, 10), (0, 3, 6, 10))
ROOT_OF_TRIAD = _chord_table(0, *TRIADS)
ROOT_OF_DOMINANT = _chord_table(0, *MAJOR_TRIADS, *DOMINANT_SEVENTHS)
SEVENTH = _chord_table(10, *SEVENTHS)
MAJOR_SEVENTH = _chord_table(11, (0, 4, 7, 11))


def _chords(grid: Pitches) -> Pitches:
    """(T,) the pitch classes of each step, as bits."""
    bits: Pitches = np.bitwise_or.reduce(np.where(grid == REST, 0, 1 << grid % 12), axis=1)
    return bits


def _leading(grid: Pitches) -> Mask:
    """(T, 4) the voices that have the leading note of the key, in its dominant chord."""
    tonic = tonics(grid)
    dominant = (tonic >= 0) & (ROOT_OF_DOMINANT[_chords(grid)] == (tonic + 7) % 12)
    broken: Mask = dominant[:, None] & (grid != REST) & (grid % 12 == (tonic[:, None] + 11) % 12)
    return broken


def _doubled_leading(grid: Pitches) -> Mask:
    leading = _leading(grid)
    return _begins(leading[:, UPPER] & leading[:, LOWER])


def _leading_does_not_rise(grid: Pitches) -> Mask:
    outer = np.isin(np.arange(N_VOICES), (0, N_VOICES - 1))
    tonic = tonics(grid)
    arrives = (tonic == _before(tonic)) & (ROOT_OF_TRIAD[_chords(grid)] == tonic)
    moves = _moves(grid)
    broken: Mask = outer & arrives[:, None] & _earlier(_leading(grid)) & (moves != 0) & (moves != 1)
    return broken


def _seventh_does_not_fall(grid: Pitches) -> Mask:
    moves = _moves(grid)
    left = np.maximum(np.arange(len(grid)) - 1, 0)  # the step before each
    beat = left // STEPS_PER_QUARTER * STEPS_PER_QUARTER
    chords = _chords(grid)[beat]
    seventh = np.maximum(SEVENTH[chords], MAJOR_SEVENTH[chords])[:, None]
    was = (seventh >= 0) & (grid[beat] == grid[left]) & (grid[beat] % 12 == seventh)
    broken: Mask = was & (moves != 0) & ~np.isin(moves, (-1, -STEP))
    return broken


def _no_third_at_the_end(grid: Pitches) -> Mask:
    broken = np.zeros((len(grid), 1), dtype=bool)
    full = np.flatnonzero((grid != REST).all(1))  # one voice may be held longer than the chord
    if len(full):
        last = grid[full[-1]]
        broken[full[-1]] = not np.isin((last - last.min()) % 12, (3, 4)).any()
    return broken


RULES = (
    Rule("parallel fifths", "two voices a fifth apart move in one direction to a fifth", _parallel_fifths),
    Rule(
        "parallel octaves", "two voices an octave or a unison apart move in one direction to another", _parallel_octaves
    ),
    Rule(
        "contrary fifths and octaves",
        "two voices move in opposite directions from a fifth to a fifth, or from an octave to an octave",
        _contrary,
    ),
    Rule(
        "hidden fifths and octaves",
        "soprano and bass move in one direction from another interval to a fifth or octave, the soprano by a leap",
        _hidden,
    ),
    Rule("crossing", "a voice begins to sound above a higher one", _crossing),
    Rule("overlap", "a voice moves beyond the pitch that its neighbour has just left", _overlaps),
    Rule("spacing", "soprano and alto, or alto and tenor, begin to be more than an octave apart", _too_wide),
    Rule("range", "a note is outside the range of its singers", _outside),
    Rule("wide leap", "a voice leaps by a seventh, or by more than an octave", _wide_leaps),
    Rule("tritone leap", "a voice leaps by six semitones", _tritone_leaps),
    Rule(
        "leap not recovered",
        "soprano, alto or tenor leaps by more than a fifth, and does not step back",
        _not_recovered,
    ),
    Rule("one direction", "all four voices move up, or all move down", _one_direction),
    Rule(
        "doubled leading note",
        "two voices have the leading note in a major triad or seventh chord on the dominant",
        _doubled_leading,
    ),
    Rule(
        "leading note does not rise",
        "from dominant straight to tonic, soprano or bass does not take the leading note up to the tonic",
        _leading_does_not_rise,
    ),
    Rule(
        "seventh does not fall",
        "a voice leaves the minor or major seventh of a chord on the beat, and not by a step down",
        _seventh_does_not_fall,
    ),
    Rule("no third at the end", "the last chord of four voices has no third above its bass", _no_third_at_the_end),
)
