"""The rules of event streams: which of NOTE_ON, NOTE_OFF, TIME_SHIFT, VELOCITY may come next.

- No NOTE_OFF for a silent pitch or in the step of its NOTE_ON, no NOTE_ON for a sounding pitch.
- A velocity before the first note, and a note after a drawn VELOCITY.
- No silence, note or wait for a new note longer than the rules say.
- No more onsets at once than ten fingers strike, or than somewhere in the seed.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from musictx.tokenizers.performance.events import NEVER, PITCHES, STEPS_PER_S, EventTable
from musictx.tokenizers.rules import BEAT_NOTE, NOTE, Rules
from musictx.tokenizers.tokenizer import Tokenizer

FINGERS = 10  # in MAESTRO and POP909 at most 9 notes begin within 10 ms
MOVING = ("onset", "now", "strike_by", "oldest", "silent", "sound_by", "next", "has_velocity", "at_once")  # by step


class EventRules:
    """A `Grammar`. Times are steps of the encoding's clock, int64."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        rules: Rules,
        prompts: Sequence[NDArray[np.integer]],
        on_grid: Sequence[bool] = (),
    ) -> None:
        """`on_grid`: which prompts keep to a grid."""
        table = EventTable(tokenizer.vocab)
        note, n_waits = table.on | table.off, int((table.steps > 0).sum())
        # an extra column beside the pitches': ids that are not notes write to it
        pitch, later = np.where(note, table.pitch, PITCHES), np.where(table.on, 0, NEVER)
        self.moves = np.stack([pitch, table.steps, later, table.velocity], 1)[..., None]  # (V, 4, 1)
        music = note | table.velocity | (table.steps > 0)
        self.follow = np.where(table.velocity[:, None], table.on, music)  # (V, V) [before, after]
        # ids are in this order; after velocities come those that are never legal
        self.on, self.off, self.waits, self.others = (
            slice(PITCHES),
            slice(PITCHES, 2 * PITCHES),
            slice(2 * PITCHES, 2 * PITCHES + n_waits),
            slice(2 * PITCHES + n_waits, None),
        )
        self.shifts = table.steps[self.waits]  # (S,)
        self.pitches = rules.pitches()  # (P,), P is 128
        self.max_silence, self.max_polyphony = _steps(rules.max_silence_s), rules.max_polyphony
        seeds = [tokenizer.decode(prompt) for prompt in prompts]
        waits = [np.diff(np.unique(seed.onset_s)) for seed in seeds]
        self.max_still = np.array([[_steps(rules.still_s(wait_s))] for wait_s in waits])  # (B, 1)
        max_note_s = [
            rules.note_s(seed.offset_s - seed.onset_s, BEAT_NOTE if beats else NOTE)
            for seed, beats in zip(seeds, on_grid or [False] * len(seeds), strict=True)
        ]
        self.max_note = np.array([[_steps(each_s)] for each_s in max_note_s])  # (B, 1)
        self.most_at_once = np.array([[max(FINGERS, _most_at_once(seed.onset_s))] for seed in seeds])  # (B, 1)
        onset, now, last_note, last_onset, has_velocity = zip(*map(table.place, prompts), strict=True)
        self.row = np.arange(len(prompts))[:, None]  # (B, 1)
        self.onset = np.array([[*row, NEVER] for row in onset])  # (B, P + 1) NEVER or more where silent
        self.now = np.array(now)[:, None]  # (B, 1)
        self.at_once = (self.onset == self.now).sum(1, keepdims=True)  # (B, 1) notes that have begun now
        self.sound_by = np.array(last_note)[:, None] + self.max_silence  # (B, 1) for silent rows
        # (B, 1) the step by which a new note begins
        self.strike_by = np.array(last_onset)[:, None] + self.max_still
        # (B, V) ids that may follow the last; after a prompt any music: no note may be legal after its last VELOCITY
        self.next = np.array([music] * len(prompts))
        self.has_velocity = np.array(has_velocity)[:, None]  # (B, 1)
        self.oldest = self.onset.min(1, keepdims=True)  # (B, 1)
        self.silent = self.oldest >= NEVER  # (B, 1)

    def legal(self) -> NDArray[np.bool_]:
        # a note that is too long ends before all else: a model that would sustain it strikes all others
        ends = np.where(self.silent, self.sound_by, self.oldest + self.max_note)
        must_end = (ends <= self.now) & ~self.silent  # (B, 1)
        onset = self.onset[:, :PITCHES]
        is_silent = onset >= NEVER  # (B, P)
        may_begin = ~must_end & (self.at_once < self.most_at_once)  # (B, 1)
        if self.max_polyphony is not None:
            may_begin &= is_silent.sum(1, keepdims=True) > PITCHES - self.max_polyphony
        on = is_silent & self.pitches & may_begin
        legal = np.empty_like(self.next)  # (B, V)
        legal[:, self.on] = on & self.has_velocity
        legal[:, self.off] = onset < np.where(must_end, self.now - self.max_note + 1, self.now)
        legal[:, self.waits] = self.shifts <= np.minimum(ends, self.strike_by) - self.now
        legal[:, self.others] = on.any(1, keepdims=True)
        legal &= self.next
        return legal

    def update(self, ids: NDArray[np.int64]) -> None:
        pitch, steps, later, is_velocity = self.moves[ids].swapaxes(0, 1)  # (B, 1) each
        begins = later == 0
        self.onset[self.row, pitch] = self.now + later
        self.at_once = (self.at_once + begins) * (steps == 0)
        self.now = self.now + steps
        self.strike_by = np.where(begins, self.now + self.max_still, self.strike_by)
        self.oldest = self.onset.min(1, keepdims=True)
        self.silent = self.oldest >= NEVER
        self.sound_by = np.where(self.silent, self.sound_by, self.now + self.max_silence)
        self.next = self.follow[ids]
        self.has_velocity = self.has_velocity | (is_velocity > 0)

    def move(self, rows: NDArray[np.int64]) -> None:
        for name in MOVING:
            setattr(self, name, getattr(self, name)[rows])


def _most_at_once(onset_s: NDArray[np.float64]) -> int:
    """The most onsets in one step."""
    return int(np.unique(np.rint(onset_s * STEPS_PER_S), return_counts=True)[1].max(initial=0))


def _steps(seconds: float) -> int:
    return max(int(seconds * STEPS_PER_S + 1e-6), 1)  # 0.29 s are 29 steps, in floating point too
