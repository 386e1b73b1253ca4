"""Chorale grid <-> Score: sixteenth steps of soprano, alto, tenor, bass."""

from itertools import combinations, groupby

import numpy as np
from numpy.typing import NDArray

from musictx.errors import TokenError
from musictx.notes.score import Score

Grid = NDArray[np.int16]  # (steps, 4) MIDI pitches, S A T B
Note = tuple[int, int, int]  # onset step, end step, pitch

REST = -1
N_VOICES = 4
STEPS_PER_QUARTER = 4
VELOCITY = 80
STEP_S = 0.15  # a sixteenth at 100 quarters a minute, for counting hours where no tempo is stated
MAX_STEPS = 2**20  # a file that claims more is damaged: a day of music
CENTRES = (71, 65, 59, 50)  # where each voice is looked for before it has sung


def grid_to_score(grid: Grid, quarter_s: float = 0.6) -> Score:
    """A grid as notes; equal pitches that follow each other in a voice are one held note."""
    if not len(grid):
        return Score.empty()
    changes = np.diff(grid, axis=0, prepend=np.int16(REST - 1), append=np.int16(REST - 1)) != 0  # (steps + 1, 4)
    voice, edge = np.nonzero(changes.T)  # voice by voice, in time
    starts = np.append(voice[1:] == voice[:-1], False)  # the last edge of a voice only ends
    onset, end = edge[starts], edge[np.flatnonzero(starts) + 1]
    pitch = grid[onset, voice[starts]]
    sung = pitch != REST
    return _score(onset[sung], end[sung], pitch[sung], quarter_s)


def score_to_grid(score: Score) -> Grid:
    """Notes as a grid; each keeps one voice for its whole length, the nearest that is free.

    Python steps through the onsets: which voice is free depends on every choice before. Raises TokenError when
    more than four notes sound at once.
    """
    notes = held_notes(score)
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
            raise TokenError(
                f"step {step} (quarter {step / STEPS_PER_QUARTER:g}) has {sounding} notes sounding; the chorale "
                f"grid holds {N_VOICES} voices: reduce the piece to four voices or use a performance model"
            )
        voices = min(
            combinations(free, len(new)),
            key=lambda choice: sum(abs(note[2] - last[v]) for note, v in zip(new, choice, strict=True)),
        )
        for (_, end, pitch), v in zip(new, voices, strict=True):
            grid[step:end, v] = pitch
            last[v], busy_until[v] = pitch, end
    return grid


def snap_to_grid(score: Score) -> Score:
    """The score as a grid hears it: on sixteenths, every note at least one long, at one velocity, and notes of
    one pitch that touch are one held note."""
    columns = np.array(held_notes(score), dtype=np.int64).reshape(-1, 3).T
    return _score(columns[0], columns[1], columns[2], score.quarter_s)


def held_notes(score: Score) -> list[Note]:
    step_s = score.quarter_s / STEPS_PER_QUARTER
    onset = np.rint(score.onset_s / step_s).astype(np.int64)
    end = np.maximum(np.rint(score.offset_s / step_s).astype(np.int64), onset + 1)
    held: list[list[int]] = []
    ends: dict[tuple[int, int], list[int]] = {}  # (pitch, step) -> the held notes of that pitch that end there
    for start, stop, pitch in sorted(zip(onset.tolist(), end.tolist(), score.pitch.tolist(), strict=True)):
        touching = ends.get((pitch, start))
        if touching:
            index = touching.pop(0)
            held[index][1] = stop
        else:
            index = len(held)
            held.append([start, stop, pitch])
        ends.setdefault((pitch, stop), []).append(index)
    return sorted((start, stop, pitch) for start, stop, pitch in held)


def _score(onset: NDArray[np.int64], end: NDArray[np.int64], pitch: NDArray[np.integer], quarter_s: float) -> Score:
    step_s = quarter_s / STEPS_PER_QUARTER
    return Score(
        onset * step_s,
        end * step_s,
        pitch.astype(np.uint8),
        np.full(len(pitch), VELOCITY, np.uint8),
        quarter_s,
    )
