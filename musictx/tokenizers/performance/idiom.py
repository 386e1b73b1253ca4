"""The performance encoding, live: every id is an event or a shift of time."""

import numpy as np

from musictx.music.score import Score
from musictx.tokenizers.performance.events import STEPS_PER_S, VELOCITY_BIN, EventTable
from musictx.tokenizers.tokenizer import Event, Tokenizer
from musictx.tokenizers.vocab import Ids


class EventIdiom:
    """Obeys `musictx.tokenizers.tokenizer.Idiom`."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer, self.table = tokenizer, EventTable(tokenizer.vocab)
        self.waits = self.table.steps > 0

    def ids(self, score: Score, now_s: float) -> Ids:
        ids = self.tokenizer.encode(score)
        if np.isinf(now_s):
            return ids
        steps = self.table.steps[ids]
        settled = (np.cumsum(steps) < np.rint(now_s * STEPS_PER_S)) & (steps == 0)
        # time that passes belongs to the event after it, and its length is known only then
        return ids[: int(np.flatnonzero(settled).max(initial=-1)) + 1]

    def prefix(self, ids: Ids, seconds: float) -> Ids:
        return self.tokenizer.encode(self.tokenizer.decode(ids).clip(0, seconds))

    def reader(self) -> "EventReader":
        return EventReader(self.table)


class EventReader:
    """Obeys `musictx.tokenizers.tokenizer.Reader`."""

    def __init__(self, table: EventTable) -> None:
        self.table, self.steps, self.velocity, self.clock_s = table, 0, 0, 0.0

    def read(self, id_: int) -> list[Event]:
        table = self.table
        if table.velocity[id_]:
            self.velocity = int(table.bin[id_]) * VELOCITY_BIN + VELOCITY_BIN // 2
        self.steps += int(table.steps[id_])
        self.clock_s = self.steps / STEPS_PER_S
        if not (table.on[id_] or table.off[id_]):
            return []
        return [Event(self.clock_s, int(table.pitch[id_]), self.velocity if table.on[id_] else 0)]
