"""The rules of event streams: which of NOTE_ON, NOTE_OFF, TIME_SHIFT, VELOCITY may come next, for a whole batch.

No NOTE_OFF for a silent pitch nor in the step of its NOTE_ON; no NOTE_ON for a sounding pitch, which is let go first,
as the encoding does; a velocity before the first note, and after a VELOCITY a note; no silence and no note longer than
the rules say. At least one id is always legal: while a note may begin, it or its velocity; else time may pass, unless a
note has sounded too long, which may then end.
"""

from collections.abc import Sequence
from copy import copy

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from musictx.sampling.rules import Rules
from musictx.tokenizers.grammar import NEVER, EventGrammar

ROWS = ("struck", "oldest", "silent", "now", "silent_since", "has_velocity", "coloured", "no_specials")


class EventRules:
    """Obeys `musictx.sampling.grammar.Grammar`. Times are steps of the encoding's clock, int64."""

    def __init__(
        self,
        table: EventGrammar,
        rules: Rules,
        motifs: Sequence[NDArray[np.integer]],
        device: torch.device | str,
    ) -> None:
        def on_device(values: object) -> Tensor:
            return torch.as_tensor(np.asarray(values)).to(device)

        # one look-up for all of a kind: on a CPU a step of small operations costs what their number is
        self.is_a = on_device(np.stack([table.on, table.off, table.velocity], 1)[..., None])  # (V, 3, 1)
        self.amounts = on_device(np.stack([table.pitch, table.steps], 1)[..., None])  # (V, 2, 1)
        self.shifts = on_device(table.steps[table.steps > 0])[None]  # (1, S)
        self.pitches = on_device(rules.pitches())[None]  # (1, 128)
        self.max_silence, self.max_note = (
            max(int(s * table.steps_per_s), 1) for s in (rules.max_silence_s, rules.max_note_s)
        )
        self.max_polyphony = rules.max_polyphony
        places = [table.place(motif) for motif in motifs]
        self.struck = on_device([p.struck for p in places])  # (B, 128)
        self.now = on_device([[p.now] for p in places])  # (B, 1)
        self.silent_since = on_device([[p.silent_since] for p in places])  # (B, 1)
        self.has_velocity = on_device([[p.has_velocity] for p in places])  # (B, 1)
        self.coloured = torch.zeros_like(self.has_velocity)  # (B, 1) True right after a VELOCITY
        self.oldest = self.struck.amin(1, keepdim=True)  # (B, 1)
        self.silent = self.oldest == NEVER  # (B, 1)
        self.no_specials = torch.zeros(len(places), 3, dtype=torch.bool, device=device)
        self.n_velocities = int(table.velocity.sum())

    def legal(self) -> Tensor:
        until = torch.where(self.silent, self.silent_since + self.max_silence, self.oldest + self.max_note)
        free = ~self.coloured
        unheard = self.struck == NEVER  # (B, 128)
        on = unheard & self.pitches
        if self.max_polyphony is not None:
            on &= unheard.sum(1, keepdim=True) > 128 - self.max_polyphony
        velocity = (on.any(1, keepdim=True) & free).expand(-1, self.n_velocities)
        on &= self.has_velocity
        off = (self.struck < self.now) & free
        shift = (self.shifts <= until - self.now) & free
        return torch.cat([on, off, shift, velocity, self.no_specials], 1)  # (B, V)

    def update(self, ids: Tensor) -> None:
        on, off, velocity = self.is_a[ids].unbind(1)  # (B, 1) each
        pitch, steps = self.amounts[ids].unbind(1)
        after = torch.where(on, self.now, self.struck.gather(1, pitch).masked_fill(off, NEVER))
        self.struck = self.struck.scatter(1, pitch, after)
        self.oldest = self.struck.amin(1, keepdim=True)
        self.silent = self.oldest == NEVER
        self.now = self.now + steps
        self.silent_since = torch.where(self.silent, self.silent_since, self.now)
        self.coloured = velocity
        self.has_velocity = self.has_velocity | velocity

    def may_end(self) -> bool:
        return True

    def take(self, rows: Tensor) -> "EventRules":
        taken = copy(self)
        for name in ROWS:
            setattr(taken, name, getattr(self, name)[rows])
        return taken
