"""Performance encoding: 128 NOTE_ON, 128 NOTE_OFF, 100 TIME_SHIFT of 10 ms, 32 VELOCITY.

Oore et al. 2018, "This Time with Feeling" (arXiv 1808.03715), section 3; Huang et al. 2018, section 2. All is numpy on
whole pieces.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from musictx.errors import ConfigError, TokenError, UserError
from musictx.music.score import Score
from musictx.tokenizers.performance.events import STEPS_PER_S, VELOCITY_BIN, EventTable
from musictx.tokenizers.tokenizer import Event, Idiom, Tokenizer, Trace, notes_by_step
from musictx.tokenizers.vocab import EventRange, Ids, Vocab

if TYPE_CHECKING:
    from musictx.tokenizers.grammar import Grammar
    from musictx.tokenizers.rules import Rules

MAX_S = 24 * 3600  # a longer file would become millions of shifts
DEFAULT_BIN = 16  # for notes that come before any VELOCITY token

Steps = NDArray[np.int64]


class PerformanceTokenizer(Tokenizer):
    """Expressive piano music on a 10 ms clock; a subclass may have more events after these four.

    A note has at least one step. A re-struck pitch ends the earlier note.
    """

    name = "performance"
    pitched: tuple[str, ...] = ("NOTE_ON", "NOTE_OFF")
    ruled = True
    vocab = Vocab(
        "performance/1",
        (
            EventRange("NOTE_ON", 0, 127),
            EventRange("NOTE_OFF", 0, 127),
            EventRange("TIME_SHIFT", 1, 100),
            EventRange("VELOCITY", 0, 31),
        ),
    )

    def __init__(self, state: str = "") -> None:
        super().__init__(state)
        if (self.lo, self.hi) != (0, 127):  # ids count down from key 0
            raise UserError(f"{self.name}: its vocabulary has the keys {self.lo} to {self.hi}, and needs all 128")
        self.on0, self.off0, self.shift0, self.velocity0, self.others0 = list(self.vocab.offsets.values())[:5]
        self.max_shift_steps = self.vocab.row("TIME_SHIFT").hi
        self.pace: NDArray[Any] = np.maximum(self.vocab.values("TIME_SHIFT"), 0) / STEPS_PER_S  # (V,) seconds

    def encode(self, score: Score) -> Ids:
        """(T,) ids. Raises TokenError beyond `MAX_S`: a damaged file."""
        if score.duration_s > MAX_S:
            raise TokenError(f"{score.duration_s / 3600:,.0f} hours long, at most {MAX_S // 3600} can be written")
        by_pitch = np.argsort(score.pitch, kind="stable")
        onset, offset = (np.rint(at[by_pitch] * STEPS_PER_S).astype(np.int64) for at in (score.onset_s, score.offset_s))
        pitch, velocity = (values[by_pitch].astype(np.int64) for values in (score.pitch, score.velocity))
        onset, offset, pitch, bins = self._settle(onset, offset, pitch, (velocity - 1) // VELOCITY_BIN)
        time, is_on, pitch = np.append(offset, onset), np.repeat([False, True], len(onset)), np.tile(pitch, 2)
        # within one step every NOTE_OFF goes first, so that a pitch can be struck again
        order = np.argsort(time * 256 + is_on * 128 + pitch)
        time, is_on, pitch, bins = time[order], is_on[order], pitch[order], np.tile(bins, 2)[order]
        key = pitch + np.where(is_on, self.on0, self.off0)

        on_at = np.flatnonzero(is_on)
        bin_changes = on_at[np.diff(bins[on_at], prepend=-1) != 0]
        # a VELOCITY token comes before its NOTE_ON
        key = np.insert(key, bin_changes, self.velocity0 + bins[bin_changes])
        time = np.insert(time, bin_changes, time[bin_changes])
        return self._emit(np.diff(time, prepend=0), key)

    def decode(self, ids: NDArray[np.integer], quarter_s: float = 0.5) -> Score:
        """The score; a hanging note ends with the stream. Raises TokenError."""
        time, key, end = self.in_steps(ids)
        is_velocity = key >= self.velocity0
        last = np.maximum.accumulate(np.where(is_velocity, np.arange(len(key)), -1))
        bins = np.where(last >= 0, key[last] - self.velocity0, DEFAULT_BIN) if len(key) else key

        time, key, bins = time[~is_velocity], key[~is_velocity], bins[~is_velocity]
        order = np.argsort(self.pitch[key], kind="stable")  # pitch by pitch, in time
        time, key, bins = time[order], key[order], bins[order]
        pitch = self.pitch[key]
        has_next = np.append(pitch[1:] == pitch[:-1], False) if len(key) else np.zeros(0, bool)
        offset = np.where(has_next, np.roll(time, -1), end)
        on = key < self.off0
        onset, offset, pitch, bins = self._settle(time[on], offset[on], pitch[on], bins[on])
        velocity = bins * VELOCITY_BIN + VELOCITY_BIN // 2
        return Score(onset / STEPS_PER_S, offset / STEPS_PER_S, pitch, velocity, quarter_s)

    def seconds(self, ids: NDArray[np.integer], quarter_s: float = 0.5) -> float:
        return self.in_steps(ids)[2] / STEPS_PER_S

    def silence(self, seconds: float, quarter_s: float = 0.5) -> Ids:
        return self._shifts(max(round(seconds * STEPS_PER_S), 0))

    def stretch(self, ids: Ids, factor: float) -> Ids:
        """A window slowed by `factor`; the number of ids may change. Raises ConfigError outside 0.5 … 2."""
        if not 0.5 <= factor <= 2:
            raise ConfigError("stretch", got=factor, allowed="factors from 0.5 to 2")
        time, key, end = self.in_steps(ids)
        # times scale from the window's start, so errors do not add up; two notes of a pitch in neighbouring steps stay
        # apart
        step, group = np.unique(time, return_inverse=True)
        new_step = np.rint(step * factor).astype(np.int64)
        onsets = np.flatnonzero(key < self.off0)
        onsets = onsets[np.argsort(key[onsets], kind="stable")]
        too_near = (key[onsets[1:]] == key[onsets[:-1]]) & (time[onsets[1:]] - time[onsets[:-1]] == 1)
        shift = np.zeros(len(step), dtype=np.int64)
        shift[group[onsets[1:][too_near]]] = 1
        shift = np.cumsum(shift)
        new_step = shift + np.maximum.accumulate(new_step - shift) if len(step) else new_step
        time = new_step[group]
        gap = np.diff(time, prepend=0)
        rest = max(round(end * factor) - (int(time[-1]) if len(time) else 0), 0)
        return np.concatenate([self._emit(gap, key), self._shifts(rest)])

    def grammar(
        self,
        rules: "Rules",
        prompts: Sequence[NDArray[np.integer]],
        quarter_s: Sequence[float],
        on_grid: Sequence[bool] = (),
    ) -> "Grammar":
        from musictx.tokenizers.performance.rules import EventRules

        return EventRules(self, rules, prompts, on_grid)

    def idiom(self, quarter_s: float) -> Idiom:
        return EventIdiom(self)

    def trace(self, ids: Ids, quarter_s: float) -> Trace:
        table, score = EventTable(self.vocab), self.decode(ids, quarter_s)
        notes, step = notes_by_step(score, 1 / STEPS_PER_S), np.cumsum(table.steps[ids])
        note, first = np.full(len(ids), -1), np.zeros(len(score), np.int64)
        sounding: dict[int, int] = {}
        velocities: list[int] = []
        for t, i in enumerate(ids.tolist()):
            pitch = int(table.pitch[i])
            if table.on[i]:
                n = notes[0, pitch, int(step[t])].pop(0)
                note[[t, *velocities]] = sounding[pitch] = n
                first[n], velocities = t, []
            elif table.off[i]:
                note[t] = sounding.pop(pitch, -1)
            elif table.velocity[i]:
                velocities.append(t)
        return Trace(score, step / STEPS_PER_S, note, first)

    @staticmethod
    def _settle(onset: Steps, offset: Steps, pitch: Steps, bins: Steps) -> tuple[Steps, Steps, Steps, Steps]:
        """Integer steps by the encoding's rules, of notes sorted by pitch, then time."""
        if not len(onset):
            return onset, offset, pitch, bins
        first = np.flatnonzero(np.diff(pitch << 40 | onset, prepend=-1))  # notes of one pitch and step become one
        offset = np.maximum.reduceat(offset, first)
        bins = np.maximum.reduceat(bins, first)
        onset, pitch = onset[first], pitch[first]
        offset = np.maximum(offset, onset + 1)
        same = pitch[1:] == pitch[:-1]
        offset[:-1][same] = np.minimum(offset[:-1], onset[1:])[same]
        return onset, offset, pitch, bins

    def in_steps(self, ids: NDArray[np.integer]) -> tuple[Steps, Steps, int]:
        """Events without shifts: their steps, their ids, and the last step. Raises TokenError."""
        key = self.vocab.music(ids).astype(np.int64)
        is_shift = (key >= self.shift0) & (key < self.velocity0)
        clock = np.cumsum(np.where(is_shift, key - self.shift0 + 1, 0))
        event = ~is_shift & (key < self.others0)
        return clock[event], key[event], int(clock[-1]) if len(clock) else 0

    def _shifts(self, steps: int) -> Ids:
        full, rest = divmod(steps, self.max_shift_steps)
        tail = [self.shift0 + rest - 1] if rest else []
        return np.array([self.shift0 + self.max_shift_steps - 1] * full + tail, dtype=np.uint16)

    def _emit(self, gap: Steps, key: Steps) -> Ids:
        """Each event `key` after a silence of `gap` steps: the longest shifts first."""
        most = self.max_shift_steps
        n_shifts = -(-gap // most)
        at = np.cumsum(n_shifts + 1) - 1
        out = np.full(int(at[-1]) + 1 if len(at) else 0, self.shift0 + most - 1, dtype=np.uint16)
        out[at] = key
        waits = gap > 0
        out[at[waits] - 1] = self.shift0 + (gap[waits] - 1) % most
        return out


class EventIdiom:
    """An `Idiom`."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer, self.table = tokenizer, EventTable(tokenizer.vocab)
        self.waits = self.table.steps > 0

    def ids(self, score: Score, now_s: float) -> Ids:
        ids = self.tokenizer.encode(score)
        if np.isinf(now_s):
            return ids
        steps = self.table.steps[ids]
        is_certain = (np.cumsum(steps) < np.rint(now_s * STEPS_PER_S)) & (steps == 0)
        # time that passes belongs to the event after it, and its length is known only then
        return ids[: int(np.flatnonzero(is_certain).max(initial=-1)) + 1]

    def prefix(self, ids: Ids, seconds: float) -> Ids:
        return self.tokenizer.encode(self.tokenizer.decode(ids).clip(0, seconds))

    def reader(self) -> "EventReader":
        return EventReader(self.table)


class EventReader:
    """A `Reader`."""

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
