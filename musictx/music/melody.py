"""One line of notes, also on a grid of sixteenths."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.errors import UserError
from musictx.music.grid import REST, STEPS_PER_QUARTER, in_steps
from musictx.music.score import Score

RARE = 0.25  # of the time that the busiest part sounds: a part that sounds less is no tune
MOST_STEPS = 2048  # 128 bars of four quarters; a model looks at all of them at once


class GridLine(NamedTuple):
    """Pitches (S,) or REST from step `first` on, which is on a beat; and the number of notes without a step."""

    pitch: NDArray[np.int16]
    first: int
    unheard: int


def overlaps(score: Score) -> NDArray[np.int64]:
    """The notes that overlap an earlier one for more than half of the shorter: chords, but not legato."""
    onset, offset, notes, sounding = score.onset_s, score.offset_s, list[int](), list[int]()
    length = offset - onset
    for i in range(len(score)):
        sounding = [j for j in sounding if offset[j] > onset[i]]
        if any(min(offset[j], offset[i]) - onset[i] > min(length[j], length[i]) / 2 for j in sounding):
            notes.append(i)
        sounding.append(i)
    return np.array(notes, dtype=np.int64)


def top_part(parts: Sequence[Score]) -> int:
    """The number of the highest part on the whole, also where it rests; of all but those that hardly sound."""
    sounds_s = [float((line.offset_s - line.onset_s).sum()) for line in map(top_line, parts)]
    often = (n for n, each_s in enumerate(sounds_s) if each_s >= RARE * max(sounds_s))
    return max(often, key=lambda n: float(parts[n].pitch.mean()))


def top_line(score: Score) -> Score:
    """The notes with no higher one above them at their onset, cut off at the next."""
    line_notes, sounding = list[int](), list[int]()
    for i in np.lexsort((-score.pitch.astype(int), score.onset_s)).tolist():  # of a chord the highest comes first
        sounding = [j for j in sounding if score.offset_s[j] > score.onset_s[i]]
        same_onset = bool(line_notes) and score.onset_s[line_notes[-1]] == score.onset_s[i]
        if not same_onset and all(score.pitch[j] <= score.pitch[i] for j in sounding):
            line_notes.append(i)
        sounding.append(i)
    line = score.select(np.isin(np.arange(len(score)), line_notes))
    return replace(line, offset_s=np.minimum(line.offset_s, np.append(line.onset_s[1:], np.inf)))


def on_grid(line: Score) -> GridLine:
    """One line of notes on the grid, in each step the longest. Raises UserError for a long line."""
    onset, end = in_steps(line)
    if end.max() > MOST_STEPS:
        what = f"{end.max():,} sixteenths long, at most {MOST_STEPS:,} can be accompanied"
        raise UserError(what, "give a part of it")
    first = int(onset.min()) // STEPS_PER_QUARTER * STEPS_PER_QUARTER
    pitch = np.full(int(end.max()) - first, REST, np.int16)
    by_length = np.lexsort((line.offset_s - line.onset_s, onset))  # within a step the longest comes last
    is_longest = np.append(np.diff(onset[by_length]) > 0, True)
    notes = by_length[is_longest]
    until = np.minimum(end[notes], np.append(onset[notes[1:]], end.max()))  # a later note ends the one before
    for i, stop in zip(notes.tolist(), until.tolist(), strict=True):
        pitch[onset[i] - first : stop - first] = line.pitch[i]
    return GridLine(pitch, first, int((~is_longest).sum()))
