"""The rules of four-part writing: where a chorale grid breaks each of them.

Steps are sixteenths, intervals are semitones: a fifth is perfect. "Two voices" means each of the six pairs.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

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
LOWEST, HIGHEST = np.array(VOICE_RANGES).T  # (4,) each
DETACHED = 2  # sixteenths of rest after a note that is played short
STEP, WIDE = 2, 7  # the largest step and the largest leap that need not be recovered

PAIRS = tuple(f"{'SATB'[u]}-{'SATB'[v]}" for u, v in zip(UPPER, LOWER, strict=True))
COLUMNS: dict[int, tuple[str, ...]] = {1: ("SATB",), N_VOICES: tuple("SATB"), len(PAIRS): PAIRS}


def _chord_table(degree: int, *chords: tuple[int, ...]) -> Pitches:
    """(4096,) the pitch class of a degree of the chord for each set of pitch classes, as bits; -1 for other chords."""
    table = np.full(2**12, -1)
    for root in range(12):
        for chord in chords:
            table[sum(1 << (root + note) % 12 for note in chord)] = (root + degree) % 12
    return table


MAJOR_TRIADS = ((0, 4, 7), (0, 4))
DOMINANT_SEVENTHS = ((0, 4, 7, 10), (0, 4, 10))
ROOT_OF_TRIAD = _chord_table(0, *MAJOR_TRIADS, (0, 3, 7), (0, 3))
ROOT_OF_DOMINANT = _chord_table(0, *MAJOR_TRIADS, *DOMINANT_SEVENTHS)
SEVENTH = _chord_table(10, *DOMINANT_SEVENTHS, (0, 3, 7, 10), (0, 3, 6, 10))
MAJOR_SEVENTH = _chord_table(11, (0, 4, 7, 11))


class Finding(NamedTuple):
    step: int  # the sixteenth in which the rule is broken
    voices: str  # "S-B" for two voices, "S" for one, "SATB" for all


def findings(grid: Grid) -> dict[str, list[Finding]]:
    """All findings of each rule, in time, for a grid (T, 4)."""
    voices, by_rule = VoiceLeading(sustain(grid).astype(np.int64)), {}
    for rule in RULES:
        breaks = rule.breaks(voices)
        names = COLUMNS[breaks.shape[1]]
        by_rule[rule.name] = [Finding(step, names[column]) for step, column in np.argwhere(breaks).tolist()]
    return by_rule


def sustain(grid: Grid) -> Grid:
    """Each note sustained over a short rest, up to the next note of its voice."""
    lines = grid.copy()
    for voice in lines.T:
        sung = np.flatnonzero(voice != REST)
        for last, following in pairwise(sung):
            if following - last <= DETACHED + 1:
                voice[last:following] = voice[last]
    return lines


def beats_of(grid: Grid) -> float:
    """The quarters in which any voice sounds."""
    return int((sustain(grid) != REST).any(1).sum()) / STEPS_PER_QUARTER


def _before(values: NDArray[Any], first: int = REST) -> NDArray[Any]:
    """The values (T, …) of the step before each."""
    return np.concatenate([np.full_like(values[:1], first), values[:-1]])


def _begins(breaks: Mask) -> Mask:
    """Only the first step of each run of True, column by column."""
    begins: Mask = breaks & ~_before(breaks, False)
    return begins


class VoiceLeading:
    """Motion and intervals of four voices (T, 4)."""

    def __init__(self, pitch: Pitches) -> None:
        self.pitch, self.previous, self.sounds = pitch, _before(pitch), pitch != REST
        moves = np.where(self.sounds & (self.previous != REST), pitch - self.previous, 0)
        self.moves = moves  # (T, 4) semitones from the step before, up above 0; 0 after and before a rest
        self.tonic = tonics(pitch)  # (T,)
        self.chord = np.bitwise_or.reduce(np.where(self.sounds, 1 << pitch % 12, 0), axis=1)  # (T,) classes as bits
        upper, lower, upper_before, lower_before = (x[:, v] for x in (pitch, self.previous) for v in (UPPER, LOWER))
        self.distance = upper - lower  # (T, 6) from here on: semitones from the lower voice up to the upper
        self.interval, self.interval_before = abs(self.distance) % 12, abs(upper_before - lower_before) % 12
        self.perfect = np.isin(self.interval, (OCTAVE, FIFTH))
        self.parallel = parallel(upper, lower, upper_before, lower_before)
        self.way = np.sign(moves[:, UPPER] * moves[:, LOWER])  # 1 in one direction, -1 in opposite ones
        self.beyond = (lower > upper_before) | (upper < lower_before)
        self.both_sound = self.sounds[:, UPPER] & self.sounds[:, LOWER]
        self.crossing = self.both_sound & (self.distance < 0)


def _overlaps(v: VoiceLeading) -> Mask:
    both_sound = v.both_sound & _before(v.both_sound, False)
    breaks: Mask = NEIGHBOURS & v.beyond & both_sound & ~v.crossing & ~_before(v.crossing, False)
    return breaks


def _not_recovered(v: VoiceLeading) -> Mask:
    at = np.arange(len(v.pitch))[:, None]
    onset = np.maximum.accumulate(np.where(v.pitch != v.previous, at, 0), axis=0)  # (T, 4) each note's first step
    leap = _before(np.take_along_axis(v.moves, onset, axis=0), 0)  # by which the voice came to the note it leaves
    steps_back = (np.sign(v.moves) == -np.sign(leap)) & (abs(v.moves) <= STEP)
    breaks: Mask = (np.arange(N_VOICES) < N_VOICES - 1) & (v.moves != 0) & (abs(leap) > WIDE) & ~steps_back
    return breaks


def _leading(v: VoiceLeading) -> Mask:
    """(T, 4) the voices that have the leading note of the key, in its dominant chord."""
    dominant = (v.tonic >= 0) & (ROOT_OF_DOMINANT[v.chord] == (v.tonic + 7) % 12)
    leading: Mask = dominant[:, None] & v.sounds & (v.pitch % 12 == (v.tonic[:, None] + 11) % 12)
    return leading


def _doubled_leading(v: VoiceLeading) -> Mask:
    leading = _leading(v)
    return _begins(leading[:, UPPER] & leading[:, LOWER])


def _leading_does_not_rise(v: VoiceLeading) -> Mask:
    outer = np.isin(np.arange(N_VOICES), (0, N_VOICES - 1))
    arrives = (v.tonic == _before(v.tonic)) & (ROOT_OF_TRIAD[v.chord] == v.tonic)
    breaks: Mask = outer & arrives[:, None] & _before(_leading(v), False) & ~np.isin(v.moves, (0, 1))
    return breaks


def _seventh_does_not_fall(v: VoiceLeading) -> Mask:
    previous = np.maximum(np.arange(len(v.pitch)) - 1, 0)  # the step before each
    beat = previous // STEPS_PER_QUARTER * STEPS_PER_QUARTER
    seventh = np.maximum(SEVENTH, MAJOR_SEVENTH)[v.chord[beat], None]
    has_seventh = (seventh >= 0) & (v.pitch[beat] == v.pitch[previous]) & (v.pitch[beat] % 12 == seventh)
    breaks: Mask = has_seventh & ~np.isin(v.moves, (0, -1, -STEP))
    return breaks


def _no_third_at_the_end(v: VoiceLeading) -> Mask:
    breaks = np.zeros((len(v.pitch), 1), dtype=bool)
    for last in np.flatnonzero(v.sounds.all(1))[-1:]:  # one voice may be held longer than the chord
        breaks[last] = not np.isin((v.pitch[last] - v.pitch[last].min()) % 12, (3, 4)).any()
    return breaks


class Rule(NamedTuple):
    """`breaks` is a mask of voices: (T, 6) by pairs, (T, 4) by voices, or (T, 1)."""

    name: str
    meaning: str
    breaks: Callable[[VoiceLeading], Mask]


RULES = (
    Rule(
        "parallel fifths",
        "two voices a fifth apart move in one direction to a fifth",
        lambda v: v.parallel & (v.interval == FIFTH),
    ),
    Rule(
        "parallel octaves",
        "two voices an octave or a unison apart move in one direction to another",
        lambda v: v.parallel & (v.interval == OCTAVE),
    ),
    Rule(
        "contrary fifths and octaves",
        "two voices move in opposite directions from a fifth to a fifth, or from an octave to an octave",
        lambda v: (v.way < 0) & v.perfect & (v.interval == v.interval_before),
    ),
    Rule(
        "hidden fifths and octaves",
        "soprano and bass move in one direction from another interval to a fifth or octave, the soprano by a leap",
        lambda v: OUTER & (v.way > 0) & (abs(v.moves[:, UPPER]) > STEP) & v.perfect & (v.interval != v.interval_before),
    ),
    Rule("crossing", "a voice begins to sound above a higher one", lambda v: _begins(v.crossing)),
    Rule("overlap", "a voice moves beyond the pitch that its neighbour has just left", _overlaps),
    Rule(
        "spacing",
        "soprano and alto, or alto and tenor, begin to be more than an octave apart",
        lambda v: _begins(CHOIR & v.both_sound & (v.distance > 12)),
    ),
    Rule(
        "range",
        "a note is outside the range of its singers",
        lambda v: v.sounds & (v.pitch != v.previous) & ((v.pitch < LOWEST) | (v.pitch > HIGHEST)),
    ),
    Rule(
        "wide leap",
        "a voice leaps by a seventh, or by more than an octave",
        lambda v: (abs(v.moves) >= 10) & (abs(v.moves) != 12),
    ),
    Rule("tritone leap", "a voice leaps by six semitones", lambda v: abs(v.moves) == 6),
    Rule(
        "leap not recovered",
        "soprano, alto or tenor leaps by more than a fifth, and does not step back",
        _not_recovered,
    ),
    Rule(
        "one direction",
        "all four voices move up, or all move down",
        lambda v: abs(np.sign(v.moves).sum(1, keepdims=True)) == N_VOICES,
    ),
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
