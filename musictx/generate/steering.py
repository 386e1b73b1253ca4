"""Leads a batch to what a `Control` asks for: adds to the logits of each row, step by step.

A key, chords and loudness choose among notes, and among velocities: how probable it is that a note begins stays as the
model has it. Density makes all notes likelier and waits unlikelier, or the other way round.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from musictx.errors import ConfigError
from musictx.generate.control import Control
from musictx.generate.prompt import Prompt
from musictx.music.grid import STEPS_PER_QUARTER
from musictx.tokenizers import Tokenizer
from musictx.tokenizers.performance.events import VELOCITY_BIN

CLOSE = 1e-6  # of a bar or a second: times are sums of floats
RECENT_S = 2.0  # notes count for the density, less and less the longer ago they began
SPREAD = 28.0  # a velocity so far from the loudness asked for is as unwelcome as a note outside the chord
MOST_GAP = 2.0  # as a logarithm: a rate further from the density asked for leads no more


class Steering:
    """Where each row of a batch is in its chords, and how dense its music is. Raises ConfigError for what the encoding
    cannot take."""

    def __init__(
        self, control: Control, tokenizer: Tokenizer, prompts: Sequence[Prompt], device: torch.device | str
    ) -> None:
        def on_device(values: object) -> Tensor:
            return torch.as_tensor(np.asarray(values)).to(device)

        check_encoding(control, tokenizer)
        assert tokenizer.pace is not None  # refused above
        line, strength = control.line, control.strength
        strikes, velocities, waits = strikes_of(tokenizer), velocities_of(tokenizer) >= 0, tokenizer.pace > 0  # (V,)
        units_s = [p.quarter_s / STEPS_PER_QUARTER if tokenizer.metrical else 1.0 for p in prompts]
        self.step_s = on_device(units_s)[:, None]  # (B, 1) of a grid
        self.wait = on_device(np.outer(units_s, tokenizer.pace))  # (B, V) seconds
        self.now_s = torch.zeros_like(self.wait[:, :1])  # (B, 1) since the new music began
        self.unit_s = on_device([[control.unit_s(p.bar_s)] for p in prompts])  # (B, 1) of what `begins` counts
        self.begins, self.length = on_device(line.begins if line else [0.0]), line.length if line else 1.0  # (K,)
        self.strikes, self.velocities = on_device(strikes)[None], on_device(velocities)[None]  # (1, V)
        self.of_notes = on_device(-strength * strikes * unwelcome(control, tokenizer.pitch)).float()  # (K, V)
        self.density, self.loudness = control.density, control.loudness
        away = (velocities_of(tokenizer) - (control.loudness or 0)) / SPREAD
        self.of_velocities = on_device(-strength * velocities * away**2).float()[None]  # (1, V)
        self.of_density = on_device(strength * (1.0 * (strikes | velocities) - waits)).float()[None]  # (1, V)
        self.rate = on_device([[rate_after(p, tokenizer) or control.density or 1.0] for p in prompts])  # (B, 1)
        # (B, voices) the last id of each voice of a grid, first that of the voice which comes next
        self.held = on_device([held_by(p, tokenizer) for p in prompts]) if tokenizer.voices else None

    def __call__(self, logits: Tensor) -> Tensor:
        """Logits (B, V), -inf where illegal -> those led to what is asked."""
        now_s = self.now_s
        if self.held is not None:  # all voices of a step take one chord
            now_s = ((now_s / self.step_s + CLOSE).floor()) * self.step_s
        at = (now_s / self.unit_s + CLOSE) % self.length
        more = self.of_notes[torch.searchsorted(self.begins, at[:, 0], right=True) - 1]  # (B, V)
        if self.held is not None:
            more = more.scatter(1, self.held[:, :1], 0.0)
        logits = lead(logits, more, self.strikes)
        if self.loudness is not None:
            logits = lead(logits, self.of_velocities, self.velocities)
        if self.density is not None:
            gap = (self.density / self.rate).log().clamp(-MOST_GAP, MOST_GAP)  # (B, 1)
            logits = logits + gap.float() * self.of_density
        return logits

    def update(self, ids: Tensor) -> None:
        """One more token a row, (B,)."""
        wait_s = self.wait.gather(1, ids[:, None])  # (B, 1)
        self.now_s = self.now_s + wait_s
        if self.density is not None:
            struck = self.strikes[0].index_select(0, ids)[:, None]
            self.rate = self.rate * (-wait_s / RECENT_S).exp() + struck / RECENT_S
        if self.held is not None:
            self.held = torch.cat([self.held[:, 1:], ids[:, None]], 1)


def lead(logits: Tensor, more: Tensor, group: Tensor) -> Tensor:
    """Logits (B, V) with `more` on the ids of a group (1, V), whose probability together stays as it is."""
    inside = torch.where(group, logits, -torch.inf)
    led = inside + more
    back = inside.logsumexp(1, keepdim=True) - led.logsumexp(1, keepdim=True)  # NaN where none of them is legal
    return torch.where(group & back.isfinite(), led + back, logits)


def check_encoding(control: Control, tokenizer: Tokenizer) -> None:
    """Raises ConfigError for what an encoding cannot take."""
    name, hint = tokenizer.name, "leave it out"
    if tokenizer.pace is None or not strikes_of(tokenizer).any():
        raise ConfigError("control", why=f"the ids of {name} do not say when each note begins", hint=hint)
    if control.density is not None and tokenizer.voices:
        why = f"{name} has an id for each sixteenth of a voice, however many notes begin"
        raise ConfigError("density", got=control.density, why=why, hint=hint)
    if control.loudness is not None and not (velocities_of(tokenizer) >= 0).any():
        raise ConfigError("loudness", got=control.loudness, why=f"{name} has no velocities", hint=hint)


def strikes_of(tokenizer: Tokenizer) -> NDArray[np.bool_]:
    """(V,) the ids that begin a note, or let it sound on in a grid."""
    return tokenizer.vocab.mask("NOTE_ON", "MELODY_ON", "PITCH")


def velocities_of(tokenizer: Tokenizer) -> NDArray[np.int64]:
    """(V,) the velocity that an id gives to notes; -1 where it gives none."""
    bins = tokenizer.vocab.values(*(row.type for row in tokenizer.vocab.events if row.type.endswith("VELOCITY")))
    return np.where(bins >= 0, bins * VELOCITY_BIN + VELOCITY_BIN // 2, -1)


def unwelcome(control: Control, pitch: NDArray[np.int64]) -> NDArray[np.float64]:
    """(K, V) 1 for pitches outside each chord, and 1 more for those outside the key."""
    line, key, every = control.line, control.classes, frozenset(range(12))
    chords = [chord.classes for chord in line.chords] if line else [every]
    outside = [np.isin(pitch % 12, list(classes), invert=True) for classes in (*chords, key or every)]
    return np.array(outside[:-1], float) + outside[-1]


def rate_after(prompt: Prompt, tokenizer: Tokenizer) -> float:
    """Notes a second at a prompt's end."""
    assert tokenizer.pace is not None
    ago = np.cumsum(tokenizer.pace[prompt.ids][::-1])[::-1]
    return float(np.exp(-ago / RECENT_S)[strikes_of(tokenizer)[prompt.ids]].sum() / RECENT_S)


def held_by(prompt: Prompt, tokenizer: Tokenizer) -> list[int]:
    """The last id of each voice of a grid; PAD before the first."""
    ids = [*[tokenizer.vocab.pad] * tokenizer.voices, *prompt.ids.tolist()]
    return ids[-tokenizer.voices :]
