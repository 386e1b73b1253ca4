"""The performance encoding's tokens, note by note: a VELOCITY belongs to the note it colours, a NOTE_OFF to the one it
ends."""

import numpy as np

from musictx.tokenizers.performance.table import STEPS_PER_S, EventTable
from musictx.tokenizers.tokenizer import Tokenizer
from musictx.tokenizers.trace import Trace, waiting_notes
from musictx.tokenizers.vocab import Ids


def trace_events(tokenizer: Tokenizer, ids: Ids, quarter_s: float) -> Trace:
    """Of ids (T,) that its `encode` made."""
    table, score = EventTable(tokenizer.vocab), tokenizer.decode(ids, quarter_s)
    waiting, step = waiting_notes(score, 1 / STEPS_PER_S), np.cumsum(table.steps[ids])
    note, first = np.full(len(ids), -1), np.zeros(len(score), np.int64)
    sounding: dict[int, int] = {}
    colours: list[int] = []
    for t, i in enumerate(ids.tolist()):
        pitch = int(table.pitch[i])
        if table.on[i]:
            n = waiting[0, pitch, int(step[t])].pop(0)
            note[[t, *colours]] = sounding[pitch] = n
            first[n], colours = t, []
        elif table.off[i]:
            note[t] = sounding.pop(pitch, -1)
        elif table.velocity[i]:
            colours.append(t)
    return Trace(score, step / STEPS_PER_S, note, first)
