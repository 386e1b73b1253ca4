"""The chorale grid, sixteenths of soprano, alto, tenor and bass."""

from collections import defaultdict
from dataclasses import replace
from itertools import combinations, groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.errors import TokenError
from musictx.music.score import Score

Grid = NDArray[np.int16]  # (steps, 4) MIDI pitches, S A T B
Note = tuple[int, int, int]  # onset step, end step, pitch

REST = -1
OPEN = -2  # a place of a grid that is yet to be written
N_VOICES = 4
VOICES = "SATB"
VOICE_NAMES = ("soprano", "alto", "tenor", "bass")
VOICE_SETS = ["".join(some) for n in range(1, N_VOICES) for some in combinations(VOICES, n)]  # S, A, …, ATB
STEPS_PER_QUARTER = 4
VELOCITY = 80
STEP_S = 0.15  # a sixteenth at 100 quarters a minute, to count hours of music without a tempo
MAX_STEPS = 2**20  # a file that claims more is damaged: a day of music
FULL = 0.5  # of music in four voices: the least share of it in which all four sound
CENTRES = (71, 65, 59, 50)  # where each voice is expected before its first note


def grid_to_score(grid: NDArray[np.integer], quarter_s: float = 0.6) -> Score:
    """A grid (steps, 4) as notes; equal pitches in a row are one note."""
    if not len(grid):
        return Score.empty()
    changes = np.diff(grid, axis=0, prepend=np.int16(REST - 1), append=np.int16(REST - 1)) != 0  # (steps + 1, 4)
    voice, edge = np.nonzero(changes.T)  # voice by voice, in time
    starts = np.append(voice[1:] == voice[:-1], False)  # the last edge of a voice only ends
    onset, end = edge[starts], edge[np.flatnonzero(starts) + 1]
    pitch = grid[onset, voice[starts]]
    is_note = pitch != REST
    return _score(onset[is_note], end[is_note], pitch[is_note], quarter_s)


def lines_of_grid(grid: NDArray[np.integer], quarter_s: float = 0.6) -> list[Score]:
    """The notes of each voice."""
    voices = np.arange(N_VOICES)
    return [grid_to_score(np.where(voices == v, grid, REST), quarter_s) for v in voices]


def score_to_grid(score: Score) -> Grid:
    """Notes as a grid, each in the nearest free voice. Raises TokenError for more than four at once."""
    notes = notes_in_steps(score)
    steps = max((end for _, end, _ in notes), default=0)
    if steps > MAX_STEPS:
        raise TokenError(f"{steps:,} sixteenths long, at most {MAX_STEPS:,} can be written")
    grid = np.full((steps, N_VOICES), REST, dtype=np.int16)
    last, busy_until = list(CENTRES), [0] * N_VOICES
    for step, group in groupby(notes, key=lambda note: note[0]):
        new = sorted(group, key=lambda note: -note[2])
        free = [v for v in range(N_VOICES) if busy_until[v] <= step]
        if len(new) > len(free):
            sounding = len(new) + N_VOICES - len(free)
            what = f"step {step} (quarter {step / STEPS_PER_QUARTER:g}) has {sounding} notes sounding; the chorale grid"
            hint = "reduce the piece to four voices or use a performance model"
            raise TokenError(f"{what} has {N_VOICES} voices", hint)
        voices = min(
            combinations(free, len(new)),
            key=lambda choice: sum(abs(note[2] - last[v]) for note, v in zip(new, choice, strict=True)),
        )
        for (_, end, pitch), v in zip(new, voices, strict=True):
            grid[step:end, v] = pitch
            last[v], busy_until[v] = pitch, end
    return grid


def by_height(grid: Grid) -> Grid:
    """The same pitches in voices by height; fewer than four go to those that last sang nearest."""
    result = np.full_like(grid, REST)
    last = np.array(CENTRES)
    for step, row in enumerate(grid):
        pitch = np.sort(row[row != REST])[::-1]
        voices = min(map(list, combinations(range(N_VOICES), len(pitch))), key=lambda v: abs(pitch - last[v]).sum())
        result[step, voices] = last[voices] = pitch
    return result


def fullness(grid: Grid) -> float:
    """The share of the sounding steps in which all voices sound."""
    voices = (grid != REST).sum(axis=1)
    return float(np.count_nonzero(voices == grid.shape[1]) / np.count_nonzero(voices))


def in_steps(score: Score, step_s: float | None = None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(N,) the steps, of `step_s` or sixteenths, where notes begin and end, one or more long."""
    step_s = score.quarter_s / STEPS_PER_QUARTER if step_s is None else step_s
    onset = np.rint(score.onset_s / step_s).astype(np.int64)
    return onset, np.maximum(np.rint(score.offset_s / step_s).astype(np.int64), onset + 1)


def notes_in_steps(score: Score) -> list[Note]:
    """The notes in steps; those of one pitch that touch are one."""
    onset, end = in_steps(score)
    notes: list[list[int]] = []
    ends: dict[tuple[int, int], list[list[int]]] = defaultdict(list)  # (pitch, step) -> notes that end there
    for start, stop, pitch in sorted(zip(onset.tolist(), end.tolist(), score.pitch.tolist(), strict=True)):
        if touching := ends[pitch, start]:
            note = touching.pop(0)
            note[1] = stop
        else:
            note = [start, stop, pitch]
            notes.append(note)
        ends[pitch, stop].append(note)
    return sorted((start, stop, pitch) for start, stop, pitch in notes)


def _score(onset: NDArray[np.int64], end: NDArray[np.int64], pitch: NDArray[np.integer], quarter_s: float) -> Score:
    step_s = quarter_s / STEPS_PER_QUARTER
    return Score(onset * step_s, end * step_s, pitch, np.full(len(pitch), VELOCITY), quarter_s)


PIANO = 0  # its program number


def thin_to_voices(score: Score) -> tuple[Score, int]:
    """The score on the grid, of more than four notes the outer and the newest, and the number of the others."""
    notes: list[list[int]] = []  # onset step, end step, pitch
    sounding: list[list[int]] = []
    cut = 0
    for step, group in groupby(notes_in_steps(score), key=lambda note: note[0]):
        new = [list(note) for note in group]
        notes += new
        sounding = sorted((note for note in sounding + new if note[1] > step), key=lambda note: note[2])
        inner = sorted(sounding[1:-1], key=lambda note: (note[0], note[1]))
        for note in inner[: max(len(sounding) - N_VOICES, 0)]:
            note[1] = step
            cut += 1
    onset, end, pitch = np.array([note for note in notes if note[1] > note[0]], dtype=np.int64).reshape(-1, 3).T
    program = np.bincount(score.program).argmax() if len(score) else 0
    return replace(_score(onset, end, pitch, score.quarter_s), program=np.array(program)), cut


def one_piano(score: Score) -> Score:
    """Gives notes of several programs the piano's."""
    return replace(score, program=np.array(PIANO)) if len(set(score.program.tolist())) > 1 else score


BESIDE = 0.1  # sixteenths that a note may begin beside the grid: enough for rounded ticks, too little for human timing


class Quantised(NamedTuple):
    """The notes of a grid in their own time, and the numbers that it leaves out, moves or ties."""

    score: Score
    lost: int
    moved: int
    tied: int

    def remark(self) -> str:
        """The changes of the grid in words; "" for none."""
        phrases = (
            (self.lost, f"leaves out {self.lost} as too short"),
            (self.moved, f"moves {self.moved} to its nearest step"),
            (self.tied, f"hears {self.tied} as held instead of struck again"),
        )
        words = ", ".join(phrase for count, phrase in phrases if count)
        return f"of its {len(self.score) + self.lost} notes the grid of sixteenths {words}" if words else ""


def quantise(score: Score) -> Quantised:
    """Leaves out the shortest notes where rounding makes more than four sound."""
    survivors = score.select(~_graces(score))
    moved = int(beside_grid(survivors).sum())
    tied = len(survivors) - len(notes_in_steps(survivors))
    return Quantised(survivors, len(score) - len(survivors), moved, tied)


def beside_grid(score: Score) -> NDArray[np.bool_]:
    """(N,) the notes that begin beside the sixteenths."""
    steps = score.onset_s * STEPS_PER_QUARTER / score.quarter_s
    beside: NDArray[np.bool_] = np.abs(steps - np.rint(steps)) > BESIDE
    return beside


def _graces(score: Score) -> NDArray[np.bool_]:
    """(N,) the notes that rounding makes too many: the shortest of a step, unless more than four sounded before."""
    step_s, middle_s = score.quarter_s / STEPS_PER_QUARTER, (score.onset_s + score.offset_s) / 2
    onset, offset = np.rint(score.onset_s / step_s), np.rint(score.offset_s / step_s)
    in_truth = _sounding(score.onset_s, score.offset_s, middle_s)
    short = np.flatnonzero((offset <= onset) & (in_truth <= N_VOICES))
    short = short[np.lexsort(((score.offset_s - score.onset_s)[short], onset[short]))]
    too_many = _sounding(onset, np.maximum(offset, onset + 1), onset[short]) - N_VOICES
    rank = np.arange(len(short)) - np.searchsorted(onset[short], onset[short])  # within its step
    graces = np.zeros(len(score), dtype=bool)
    graces[short[rank < too_many]] = True
    return graces


def _sounding(begin: NDArray[Any], end: NDArray[Any], at: NDArray[Any]) -> NDArray[np.int64]:
    """(K,) how many of N notes sound at each time."""
    n_begun: NDArray[np.int64] = np.searchsorted(np.sort(begin), at, side="right")
    return n_begun - np.searchsorted(np.sort(end), at, side="right")
