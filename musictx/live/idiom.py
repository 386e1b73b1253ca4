"""How an encoding is spoken live: ids of a phrase that goes on, and events of ids as they are drawn."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from musictx.errors import ConfigError
from musictx.live.playback import Event
from musictx.live.voices import four_voices
from musictx.notes.grid import VELOCITY
from musictx.notes.score import Score
from musictx.tokenizers import Ids, Tokenizer
from musictx.tokenizers.grammar import EventGrammar, GridGrammar
from musictx.tokenizers.performance import VELOCITY_BIN


class Reader(Protocol):
    """A reply, read id by id; its times are seconds from where it begins, `clock_s` how far it has come."""

    @property
    def clock_s(self) -> float: ...

    def read(self, id_: int) -> list[Event]:
        """What is known to sound after one more id."""
        ...


class Idiom(Protocol):
    """`waits` (V,): True for ids that let time pass without a note."""

    waits: NDArray[np.bool_]

    def ids(self, score: Score, now_s: float) -> Ids:
        """The ids of a phrase that no note from `now_s` on can change; all of them at infinity."""
        ...

    def heard(self, ids: Ids, seconds: float) -> Ids:
        """What has been heard of a reply's ids so many seconds after its beginning, all notes let go."""
        ...

    def reader(self) -> Reader: ...


def build_idiom(tokenizer: Tokenizer, quarter_s: float) -> Idiom:
    """Raises ConfigError for an encoding whose notes are known only when more of the music is."""
    table = tokenizer.grammar
    if isinstance(table, EventGrammar):
        return EventIdiom(tokenizer, table)
    if isinstance(table, GridGrammar):
        return GridIdiom(tokenizer, table, quarter_s)
    raise ConfigError(f"a bundle of {tokenizer.name} tokens cannot play live: give one of performance or chorale")


class EventIdiom:
    """NOTE_ON, NOTE_OFF, TIME_SHIFT, VELOCITY: every id is an event, or time."""

    def __init__(self, tokenizer: Tokenizer, table: EventGrammar) -> None:
        self.tokenizer, self.table = tokenizer, table
        self.waits = table.steps > 0

    def ids(self, score: Score, now_s: float) -> Ids:
        ids = self.tokenizer.encode(score)
        if np.isinf(now_s):
            return ids
        steps = self.table.steps[ids]
        settled = (np.cumsum(steps) < np.rint(now_s * self.table.steps_per_s)) & (steps == 0)
        # time that passes belongs to the event after it: how long it is, is known when that comes
        return ids[: int(np.flatnonzero(settled).max(initial=-1)) + 1]

    def heard(self, ids: Ids, seconds: float) -> Ids:
        return self.tokenizer.encode(self.tokenizer.decode(ids).clip(0, seconds))

    def reader(self) -> Reader:
        return EventReader(self.table)


class EventReader:
    def __init__(self, table: EventGrammar) -> None:
        self.table, self.steps, self.velocity = table, 0, 0

    @property
    def clock_s(self) -> float:
        return self.steps / self.table.steps_per_s

    def read(self, id_: int) -> list[Event]:
        table = self.table
        if table.velocity[id_]:
            bin_ = id_ - table.vocab.offsets["VELOCITY"]
            self.velocity = bin_ * VELOCITY_BIN + VELOCITY_BIN // 2
        self.steps += int(table.steps[id_])
        if not (table.on[id_] or table.off[id_]):
            return []
        return [Event(self.clock_s, int(table.pitch[id_]), self.velocity if table.on[id_] else 0)]


class GridIdiom:
    """A grid of sixteenths at a tempo: a step sounds when the last of its voices is known."""

    def __init__(self, tokenizer: Tokenizer, table: GridGrammar, quarter_s: float) -> None:
        self.tokenizer, self.table, self.step_s = tokenizer, table, quarter_s / table.steps_per_quarter
        self.waits = table.pitch == table.rest

    def ids(self, score: Score, now_s: float) -> Ids:
        ids = self.tokenizer.encode(four_voices(score))
        return ids if np.isinf(now_s) else ids[: max(round(now_s / self.step_s), 0) * self.table.voices]

    def heard(self, ids: Ids, seconds: float) -> Ids:
        begun = int(np.ceil(seconds / self.step_s - 1e-6))
        return ids[: min(begun, len(ids) // self.table.voices) * self.table.voices]

    def reader(self) -> Reader:
        return GridReader(self.table, self.step_s)


class GridReader:
    def __init__(self, table: GridGrammar, step_s: float) -> None:
        self.table, self.step_s, self.steps = table, step_s, 0
        self.chord: list[int] = []
        self.sounding: set[int] = set()

    @property
    def clock_s(self) -> float:
        return self.steps * self.step_s

    def read(self, id_: int) -> list[Event]:
        self.chord.append(int(self.table.pitch[id_]))
        if len(self.chord) < self.table.voices:
            return []
        at_s, now = self.clock_s, set(self.chord) - {self.table.rest}
        ends = [Event(at_s, pitch, 0) for pitch in sorted(self.sounding - now)]
        begins = [Event(at_s, pitch, VELOCITY) for pitch in sorted(now - self.sounding)]
        self.sounding, self.chord, self.steps = now, [], self.steps + 1
        return ends + begins
