"""The chorale encoding's tokens, note by note: a held note's repeats belong to it."""

import numpy as np

from musictx.notes.grid import REST, STEPS_PER_QUARTER
from musictx.tokenizers.tokenizer import Tokenizer
from musictx.tokenizers.trace import Trace, waiting_notes
from musictx.tokenizers.vocab import Ids


def trace_grid(tokenizer: Tokenizer, ids: Ids, quarter_s: float) -> Trace:
    """Of ids (T,) that its `encode` made."""
    step_s, voices, score = quarter_s / STEPS_PER_QUARTER, tokenizer.voices, tokenizer.decode(ids, quarter_s)
    waiting, step = waiting_notes(score, step_s), np.arange(len(ids)) // voices
    note, first = np.full(len(ids), -1), np.zeros(len(score), np.int64)
    for t, pitch in enumerate(tokenizer.pitch[ids].tolist()):
        if pitch == REST:
            continue
        if t >= voices and ids[t - voices] == ids[t]:
            note[t] = note[t - voices]
        else:
            note[t] = waiting[0, pitch, int(step[t])].pop(0)
            first[note[t]] = t
    return Trace(score, step * step_s, note, first)
