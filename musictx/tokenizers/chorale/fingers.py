"""Any playing as at most four voices on a grid: what ten fingers do, made singable while it is played."""

from dataclasses import replace

import numpy as np

from musictx.notes.grid import N_VOICES, STEPS_PER_QUARTER
from musictx.notes.score import Score


def four_voices(score: Score) -> Score:
    """The notes on sixteenths, never more than four at once. A fifth one ends the note that has sounded longest, as in
    playing legato; of more than four struck together, the highest, the lowest and the next highest are kept.

    No note changes what the grid held before its own step.
    """
    step_s = score.quarter_s / STEPS_PER_QUARTER
    onset = np.rint(score.onset_s / step_s).astype(np.int64)
    offset = np.maximum(np.rint(score.offset_s / step_s).astype(np.int64), onset + 1)
    keep, sounding = np.zeros(len(score), dtype=bool), list[int]()
    for step in np.unique(onset):
        sounding = [i for i in sounding if offset[i] > step]
        struck: dict[int, int] = {}  # pitch -> the last note of it in this step
        for i in np.flatnonzero(onset == step).tolist():
            struck[int(score.pitch[i])] = i
        high_first = [struck[pitch] for pitch in sorted(struck, reverse=True)]
        chosen = high_first if len(high_first) <= N_VOICES else [*high_first[: N_VOICES - 1], high_first[-1]]
        for placed, i in enumerate(chosen):
            stops = [j for j in sounding if score.pitch[j] == score.pitch[i]]
            if not stops and len(sounding) + placed == N_VOICES:
                stops = sounding[:1]
            for j in stops:
                offset[j] = step
                sounding.remove(j)
        sounding += chosen
        keep[chosen] = True
    return replace(score.select(keep), onset_s=onset[keep] * step_s, offset_s=offset[keep] * step_s)
