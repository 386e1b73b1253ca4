"""Music of any make as one model hears it: four notes at once, as the chorale grid holds them, or one piano."""

from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

import numpy as np

from musictx.notes.grid import N_VOICES, STEPS_PER_QUARTER, VELOCITY, held_notes
from musictx.notes.score import Score

PIANO = 0  # the program


class Thinned(NamedTuple):
    """A score on the grid, and how many of its notes were left out or cut short."""

    score: Score
    lost: int


def four_voices(score: Score) -> Thinned:
    """Where more than four notes sound, the highest, the lowest and those struck last remain. The score's commonest
    program is that of all its notes."""
    kept: list[list[int]] = []  # onset step, end step, pitch
    sounding: list[list[int]] = []
    cut = 0
    for step, group in groupby(held_notes(score), key=lambda note: note[0]):
        new = [list(note) for note in group]
        kept += new
        sounding = sorted((note for note in sounding + new if note[1] > step), key=lambda note: note[2])
        inner = sorted(sounding[1:-1], key=lambda note: (note[0], note[1]))
        for note in inner[: max(len(sounding) - N_VOICES, 0)]:
            note[1] = step
            cut += 1
    notes = np.array([note for note in kept if note[1] > note[0]], dtype=np.int64).reshape(-1, 3)
    step_s = score.quarter_s / STEPS_PER_QUARTER
    program = np.bincount(score.program).argmax() if len(score) else 0
    velocity = np.full(len(notes), VELOCITY)
    thin = Score(notes[:, 0] * step_s, notes[:, 1] * step_s, notes[:, 2], velocity, score.quarter_s, np.array(program))
    return Thinned(thin, cut)


def one_piano(score: Score) -> Score:
    """Notes of several programs as a piano's; those of a single one keep it."""
    return replace(score, program=np.array(PIANO)) if len(set(score.program.tolist())) > 1 else score
