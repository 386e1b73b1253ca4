"""MidiTok's words, note by note: Program before a Pitch, Velocity and Duration after it belong to its note."""

import numpy as np

from musictx.notes.score import DRUMS
from musictx.tokenizers.tokenizer import Tokenizer
from musictx.tokenizers.trace import Trace, waiting_notes
from musictx.tokenizers.vocab import Ids


def trace_words(tokenizer: Tokenizer, ids: Ids, quarter_s: float, steps_per_quarter: int) -> Trace:
    """Of ids (T,) that its `encode` made, without BPE."""
    words = [row.type.split("_") for row in tokenizer.vocab.table]
    score, step_s = tokenizer.decode(ids, quarter_s), quarter_s / steps_per_quarter
    waiting, time_s = waiting_notes(score, step_s), np.zeros(len(ids))
    note, first = np.full(len(ids), -1), np.zeros(len(score), np.int64)
    now_s, n, program = 0.0, -1, 0
    for t, i in enumerate(ids.tolist()):
        kind, value = words[i][0], words[i][-1]
        if kind in ("Bar", "Position", "TimeShift"):
            now_s, n = tokenizer.seconds(ids[: t + 1], quarter_s), -1
        elif kind == "Program":
            program, n = int(value) % (DRUMS + 1), -1  # -1 is drums
        elif kind in ("Pitch", "PitchDrum"):
            n = waiting[program, int(value), round(now_s / step_s)].pop(0)
            first[n] = t
            note[t - 1] = n  # its Program
        time_s[t], note[t] = now_s, n
    return Trace(score, time_s, note, first)
