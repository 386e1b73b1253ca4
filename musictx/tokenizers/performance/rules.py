"""The rules of event streams: which of NOTE_ON, NOTE_OFF, TIME_SHIFT, VELOCITY may come next, for a whole batch.

No NOTE_OFF for a silent pitch nor in the step of its NOTE_ON. No NOTE_ON for a sounding pitch, which must end first, as
in the encoding. A velocity before the first note, and a note after a drawn VELOCITY. No silence, note or wait for a new
note longer than the rules say. At one moment no more notes begin than ten fingers strike, or than begin somewhere in
the seed. A note that has sounded too long ends before anything else. Else a model that would sustain it, and may let no
time pass, strikes all others. At least one id is always legal: a note or its velocity, while a note may begin. Else
time may pass, unless such a note must end.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from musictx.tokenizers.performance.events import NEVER, PITCHES, STEPS_PER_S, EventTable
from musictx.tokenizers.rules import Rules
from musictx.tokenizers.tokenizer import Tokenizer

FINGERS = 10  # in MAESTRO and POP909 at most 9 notes begin within 10 ms
MOVING = ("struck", "now", "strike_by", "oldest", "silent", "sound_by", "next", "has_velocity", "at_once")  # by step


class EventRules:
    """Obeys `musictx.tokenizers.grammar.Grammar`. Times are steps of the encoding's clock, int64. It uses tables, not
    comparisons: on a CPU a step takes as long as it has operations."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        rules: Rules,
        prompts: Sequence[NDArray[np.integer]],
        device: torch.device | str,
    ) -> None:
        def on_device(values: object) -> Tensor:
            return torch.as_tensor(np.asarray(values)).to(device)

        table = EventTable(tokenizer.vocab)
        note = table.on | table.off
        # an extra column beside the pitches': ids that are not notes write to it
        pitch, later = np.where(note, table.pitch, PITCHES), np.where(table.on, 0, NEVER)
        self.moves = on_device(np.stack([pitch, table.steps, later], 1)[..., None])  # (V, 3, 1)
        music = note | table.velocity | (table.steps > 0)
        self.follow = on_device(np.where(table.velocity[:, None], table.on, music))  # (V, V) [before, after]
        self.is_velocity = on_device(table.velocity[:, None])  # (V, 1)
        self.n_others = int((~music | table.velocity).sum())  # velocities, and the ids after them, never legal
        self.shifts = on_device(table.steps[table.steps > 0])[None]  # (1, S)
        self.pitches = on_device(rules.pitches())[None]  # (1, P), P is 128
        self.max_silence, self.max_polyphony = _steps(rules.max_silence_s), rules.max_polyphony
        seeds = [tokenizer.decode(prompt) for prompt in prompts]
        waits = [np.diff(np.unique(seed.onset_s)) for seed in seeds]
        self.max_still = on_device([[_steps(rules.still_s(wait_s))] for wait_s in waits])  # (B, 1)
        self.max_note = on_device([[_steps(rules.note_s(seed.offset_s - seed.onset_s))] for seed in seeds])  # (B, 1)
        self.most_at_once = on_device([[max(FINGERS, _most_at_once(seed.onset_s))] for seed in seeds])  # (B, 1)
        struck, now, silent_since, struck_last, has_velocity = zip(*map(table.place, prompts), strict=True)
        self.struck = on_device([[*row, NEVER] for row in struck])  # (B, P + 1) NEVER or more where silent
        self.now = on_device(now)[:, None]  # (B, 1)
        self.at_once = (self.struck == self.now).sum(1, keepdim=True)  # (B, 1) notes that have begun now
        self.sound_by = on_device(silent_since)[:, None] + self.max_silence  # (B, 1) for silent rows
        # (B, 1) the step by which a new note begins
        self.strike_by = on_device(struck_last)[:, None] + self.max_still
        # (B, V) what may follow the last id; after a prompt any music: no note may be legal after its last VELOCITY
        self.next = on_device([music] * len(prompts))
        self.has_velocity = on_device(has_velocity)[:, None]  # (B, 1)
        self.oldest = self.struck.amin(1, keepdim=True)  # (B, 1)
        self.silent = self.oldest >= NEVER  # (B, 1)

    def legal(self) -> Tensor:
        ends = torch.where(self.silent, self.sound_by, self.oldest + self.max_note)
        struck = self.struck[:, :PITCHES]
        unheard = struck >= NEVER  # (B, P)
        on = unheard & self.pitches
        if self.max_polyphony is not None:
            on &= unheard.sum(1, keepdim=True) > PITCHES - self.max_polyphony
        overdue = ends <= self.now
        overdue &= ~self.silent  # (B, 1)
        until = torch.minimum(ends, self.strike_by)
        on &= ~overdue & (self.at_once < self.most_at_once)
        others = on.any(1, keepdim=True).expand(-1, self.n_others)
        on &= self.has_velocity
        off = struck < torch.where(overdue, self.now - self.max_note + 1, self.now)
        return torch.cat([on, off, self.shifts <= until - self.now, others], 1) & self.next  # (B, V)

    def update(self, ids: Tensor) -> None:
        pitch, steps, later = self.moves.index_select(0, ids).unbind(1)  # (B, 1) each
        self.struck = self.struck.scatter(1, pitch, self.now + later)
        self.at_once = (self.at_once + (later == 0)) * (steps == 0)
        self.now = self.now + steps
        self.strike_by = torch.where(later == 0, self.now + self.max_still, self.strike_by)
        self.oldest = self.struck.amin(1, keepdim=True)
        self.silent = self.oldest >= NEVER
        self.sound_by = torch.where(self.silent, self.sound_by, self.now + self.max_silence)
        self.next = self.follow.index_select(0, ids)
        self.has_velocity = self.has_velocity | self.is_velocity.index_select(0, ids)

    def move(self, rows: Tensor) -> None:
        for name in MOVING:
            setattr(self, name, getattr(self, name)[rows])


def _most_at_once(onset_s: NDArray[np.float64]) -> int:
    """How many notes begin in one step, at most."""
    return int(np.unique(np.rint(onset_s * STEPS_PER_S), return_counts=True)[1].max(initial=0))


def _steps(seconds: float) -> int:
    return max(int(seconds * STEPS_PER_S + 1e-6), 1)  # 0.29 s are 29 steps, in floating point too
