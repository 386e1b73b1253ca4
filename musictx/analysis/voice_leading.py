"""How four voices move on the chorale grid: parallels, crossings, notes out of range, dissonance on strong beats.

All figures are per hundred sounding beats: quarters of four steps in which any voice sounds. Step 0 is on a beat.

- A parallel fifth (or octave): two voices sound in two neighbouring steps, and both change pitch in one direction.
  Before and after they are a perfect fifth (an octave or a unison) apart, whatever octaves lie between (Kostka and
  Payne, Tonal Harmony, chapter 5; VoiceLeadingQuartet.parallelMotion of music21, Cuthbert and Ariza 2010, which
  separates a unison before an octave from two octaves). So a repeated chord, a rest between or a voice that moves
  later makes none, and contrary motion never counts. Each of the six pairs of voices counts.
- A crossed beat: time, in quarters, in which any voice sounds above one that is written over it.
- A note outside: its pitch is outside the range, lowest to highest, that Bach gave its voice in the training split of
  the JSB chorales, `RANGES`.
- A dissonant beat: on the first, strong step of a quarter, any two voices are a second, a seventh or a
  tritone apart (Kostka and Payne, chapter 1). A fourth, dissonant there above the bass, does not count: every
  six-four chord has one. Suspensions and sevenths are dissonant and right, so compare this with Bach's own.

On a grid a repeated note is one long note. Take the grid from a model's ids (`decode_grid`), not from a Score:
`score_to_grid` has to guess the voices, and its wrong guesses count here as parallels and crossings.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.analysis.bootstrap import Interval, interval
from musictx.music.grid import N_VOICES, REST, STEPS_PER_QUARTER, Grid

RANGES = np.array([(60, 81), (52, 74), (46, 69), (36, 66)])  # (4, 2) lowest and highest of S A T B
DISSONANT = (1, 2, 6, 10, 11)  # semitones, octaves left out
FIFTH, OCTAVE = 7, 0
UPPER, LOWER = np.triu_indices(N_VOICES, 1)  # (6,) each: the pairs of voices


class VoiceLeading(NamedTuple):
    """The counts of one piece, and its number of beats."""

    beats: float
    parallel_fifths: int
    parallel_octaves: int
    crossed_beats: float
    notes_outside: int
    dissonant_beats: int


def voice_leading(grid: Grid) -> VoiceLeading:
    """The counts of a grid (steps, 4) as the head of this file defines them."""
    pitch = grid.astype(np.int64)  # (steps, 4)
    sung = pitch != REST
    together = sung[:, UPPER] & sung[:, LOWER]  # (steps, 6)
    above = pitch[:, UPPER] - pitch[:, LOWER]  # (steps, 6), below 0 where they cross
    apart = np.abs(above) % 12
    dissonant = (together & np.isin(apart, DISSONANT)).any(1)
    return VoiceLeading(
        beats=int(sung.any(1).sum()) / STEPS_PER_QUARTER,
        parallel_fifths=_parallels(pitch, together & (apart == FIFTH)),
        parallel_octaves=_parallels(pitch, together & (apart == OCTAVE)),
        crossed_beats=int((together & (above < 0)).any(1).sum()) / STEPS_PER_QUARTER,
        notes_outside=_outside(pitch),
        dissonant_beats=int(dissonant[::STEPS_PER_QUARTER].sum()),
    )


def per_hundred_beats(pieces: Sequence[VoiceLeading]) -> dict[str, Interval]:
    """Each count of N pieces per hundred of their beats, with an interval over pieces. Raises ConfigError for no pieces
    and for silent ones."""
    beats, *counts = np.array(pieces, dtype=np.float64).reshape(-1, len(VoiceLeading._fields)).T
    return {name: interval(100 * x, beats) for name, x in zip(VoiceLeading._fields[1:], counts, strict=True)}


def _parallels(pitch: NDArray[np.int64], perfect: NDArray[np.bool_]) -> int:
    """How often a pair of voices (steps, 6) has a perfect interval, moves one way and has the interval again."""
    way = np.sign(np.diff(pitch, axis=0))  # (steps - 1, 4); no pair includes a rest, so its way does not count
    similar = (way[:, UPPER] == way[:, LOWER]) & (way[:, UPPER] != 0)
    return int((perfect[:-1] & similar & perfect[1:]).sum())


def _outside(pitch: NDArray[np.int64]) -> int:
    """How many notes are outside, counted where they begin."""
    begins = np.diff(pitch, axis=0, prepend=REST) != 0
    outside = (pitch < RANGES[:, 0]) | (pitch > RANGES[:, 1])
    return int((begins & outside & (pitch != REST)).sum())
