"""Leads a batch to what a `Control` asks for: adds to the logits of each row, step by step.

A key, chords, register and loudness choose among notes, and among velocities. The probability that a note begins stays
the model's, but where a chord begins. Density makes all notes likelier and waits unlikelier, or the other way round.
Polyphony makes beginnings unlikelier and ends likelier where enough notes sound, and ends unlikelier where too few do.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from musictx.errors import ConfigError
from musictx.generate.chord_changes import ChordChanges
from musictx.generate.chord_clock import CLOSE, ChordClock
from musictx.generate.control import Control
from musictx.generate.prompt import Prompt
from musictx.music.grid import STEPS_PER_QUARTER
from musictx.music.harmony import Classes
from musictx.music.score import Meter
from musictx.tokenizers import Ids, Tokenizer
from musictx.tokenizers.performance.events import VELOCITY_BIN

RECENT_S = 2.0  # notes count for the density, less and less the longer ago they began
SPREAD = {"register": 24.0, "loudness": 28.0}  # so far from what is asked is as unwelcome as a note outside the chord
MOST_GAP = 2.0  # as a logarithm: a number further from the one asked for leads no more


class Steering:
    """Where each row of a batch is in its chords, and how dense its music is. Raises ConfigError for what the encoding
    cannot take."""

    def __init__(
        self,
        control: Control,
        tokenizer: Tokenizer,
        prompts: Sequence[Prompt],
        device: torch.device | str,
        higher: int = 0,
    ) -> None:
        """The model hears the music so many semitones `higher`."""

        def on_device(values: object) -> Tensor:
            return torch.as_tensor(np.asarray(values)).to(device)

        check_encoding(control, tokenizer)
        assert tokenizer.pace is not None  # refused above
        strikes, velocities, waits = strikes_of(tokenizer), velocities_of(tokenizer) >= 0, tokenizer.pace > 0  # (V,)
        units_s = [p.quarter_s / STEPS_PER_QUARTER if tokenizer.metrical else 1.0 for p in prompts]
        self.step_s = on_device(units_s)[:, None]  # (B, 1) of a grid
        self.wait = on_device(np.outer(units_s, tokenizer.pace))  # (B, V) seconds
        self.now_s = torch.zeros_like(self.wait[:, :1])  # (B, 1) in chords and curves
        self.clock = ChordClock(control, tokenizer, prompts, on_device)
        chords, pitch = self.clock.chords, tokenizer.pitch - higher
        self.strength, away = control.strength, strikes * unwelcome(chords, control.classes, pitch)
        self.of_notes = on_device(-self.strength * away).float()  # (U, V)
        self.strikes, self.sounds = on_device(strikes)[None], on_device(strikes | velocities)[None]  # (1, V)
        curves = control.curves()
        self.curves = {name: (on_device(curve.at_s), on_device(curve.values)) for name, curve in curves.items()}
        groups = {"register": (strikes, tokenizer.pitch), "loudness": (velocities, velocities_of(tokenizer))}
        # by curve: the ids that it leads, and their values, (1, V) each
        self.aims = {name: on_device(np.stack(each))[:, None] for name, each in groups.items() if name in curves}
        self.of_density = on_device(self.strength * (1.0 * (strikes | velocities) - waits)).float()[None]  # (1, V)
        first = curves["density"].values[0] if "density" in curves else 1.0
        self.rate = on_device([[rate_after(p, tokenizer) or first] for p in prompts])  # (B, 1)
        self.ends, keys = on_device(ends_of(tokenizer))[None], keys_of(tokenizer)
        down = np.zeros((len(prompts), len(keys) + 1), bool)
        for row, p in zip(down, prompts, strict=True):
            row[keys[p.ids]] = strikes[p.ids]  # the last id of a key counts
        self.keys, self.down = on_device(keys), on_device(down)  # (V,), (B, V + 1) which are down, by their strike
        # half a step of a clock of seconds: a bar line between two steps is at the nearest
        self.near_s = 0.0 if tokenizer.metrical else float(tokenizer.pace[waits].min()) / 2
        self.changes = None
        if control.chords is not None and ends_of(tokenizer).any():
            of_chords = on_device(unwelcome(chords, None, pitch) > 0)  # (U, V)
            masks = self.strikes[0], self.ends[0], self.keys
            self.changes = ChordChanges(self.strength, of_chords, on_device(pitch), *masks, self.down)
        # (B, voices) the last id of each voice of a grid, first that of the voice which comes next
        self.held = on_device([held_by(p, tokenizer) for p in prompts]) if tokenizer.voices else None
        self.chord = self.clock.at(self.now_s + self.near_s)[0]  # (B, 1)
        self.since_s = self.now_s - 1.0  # (B, 1) when it began; the first one is none that begins
        self.reach(self.now_s)

    def __call__(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (B, V), -inf where illegal -> those led to what is asked. And (B, V) the logarithm of what share of
        its group the model itself gave to what is asked, for the ids of groups."""
        of_notes = self.of_notes[self.chord[:, 0]]  # (B, V)
        if self.changes is not None:
            ends, strikes, waits = self.changes.lead(self.down)
            past = self.now_s + self.wait > self.next_s + self.near_s  # (B, V)
            logits, _ = lead(logits, -self.strength * past.float(), self.wait > 0)
            logits = logits + ends + waits * (self.wait > 0)
            of_notes = of_notes + strikes
        logits, eased = lead(logits, of_notes, self.begins_note())
        for name, (group, values) in self.aims.items():
            away = (values - self.now(name)) / SPREAD[name]  # (B, V)
            logits, ease = lead(logits, (-self.strength * away**2).float(), group > 0)
            eased = eased + ease
        if "density" in self.curves:
            gap = (self.now("density") / self.rate).log().clamp(-MOST_GAP, MOST_GAP)  # (B, 1)
            logits = logits + gap.float() * self.of_density
        if "polyphony" in self.curves:
            logits = logits + self.of_polyphony()
        return logits, eased

    def begins_note(self) -> Tensor:
        """(B or 1, V) the ids that begin a note now; on a grid a voice that keeps its pitch begins none, but where a
        chord begins."""
        if self.held is None:
            return self.strikes
        return self.strikes.expand(len(self.held), -1).scatter(1, self.held[:, :1], self.since_s == self.step_now_s)

    def away(self) -> Tensor:
        """(B,) how far density and polyphony are from what is asked: squares of logarithms, times the strength."""
        away = torch.zeros_like(self.rate)
        now = {"density": self.rate, "polyphony": self.down.sum(1, keepdim=True).clamp(min=0.5)}
        for name, is_ in now.items():
            if name in self.curves:
                away = away + (self.now(name) / is_).log().clamp(-MOST_GAP, MOST_GAP) ** 2
        return self.strength * away[:, 0]

    def now(self, name: str) -> Tensor:
        """(B, 1) where a curve is now."""
        at_s, values = self.curves[name]
        after = torch.searchsorted(at_s, self.now_s, right=True)
        before, after = after - 1, after.clamp(max=len(at_s) - 1)
        share = (self.now_s - at_s[before]) / (at_s[after] - at_s[before]).clamp(min=CLOSE)
        return values[before] + share * (values[after] - values[before])

    def of_polyphony(self) -> Tensor:
        """(B, V)."""
        asked, sounding = self.now("polyphony"), self.down.sum(1, keepdim=True)
        begins = (asked / (sounding + 1)).log().clamp(-MOST_GAP, 0) * self.sounds
        ends = ((sounding + 0.5) / asked).log().clamp(-MOST_GAP, MOST_GAP) * self.ends
        return (self.strength * (begins + ends)).float()

    def update(self, ids: Tensor) -> None:
        """One more token a row, (B,)."""
        wait_s = self.wait.gather(1, ids[:, None])  # (B, 1)
        struck = self.strikes[0].index_select(0, ids)[:, None]  # (B, 1)
        if "density" in self.curves:
            self.rate = self.rate * (-wait_s / RECENT_S).exp() + struck / RECENT_S
        if self.changes is not None or "polyphony" in self.curves:
            self.down = self.down.scatter(1, self.keys.index_select(0, ids)[:, None], struck)
        if self.held is not None:
            self.held = torch.cat([self.held[:, 1:], ids[:, None]], 1)
        if self.changes is not None:
            self.changes.strike(ids)
        self.reach(self.now_s + wait_s)

    def reach(self, now_s: Tensor) -> None:
        """It is so many seconds after the prompts, (B, 1)."""
        self.now_s = now_s
        if self.held is not None:  # all voices of a step take one chord
            now_s = (now_s / self.step_s + CLOSE).floor() * self.step_s
        chord, self.next_s = self.clock.at(now_s + self.near_s)  # (B, 1) each
        self.since_s = now_s.where(chord != self.chord, self.since_s)
        self.chord, self.step_now_s = chord, now_s
        if self.changes is not None:
            self.changes.reach(self.chord, self.down)

    def move(self, rows: Tensor) -> None:
        """Row b becomes what row rows[b] was, (B,), of the same prompt."""
        self.now_s, self.rate, self.down = self.now_s[rows], self.rate[rows], self.down[rows]
        for name in ("chord", "next_s", "since_s", "step_now_s"):
            setattr(self, name, getattr(self, name)[rows])
        if self.changes is not None:
            self.changes.move(rows)
        self.held = None if self.held is None else self.held[rows]


def beside(
    control: Control,
    tokenizer: Tokenizer,
    written: Ids,
    meter: Meter,
    device: torch.device | str,
    *,
    rows: int = 1,
    from_s: float = 0.0,
    higher: int = 0,
) -> Steering | None:
    """Leads rows that go with a melody, after what is `written` from `from_s` on; None where nothing is asked for."""
    if not control.asked:
        return None
    now_s = from_s + tokenizer.seconds(written, meter.quarter_s)
    prompt = Prompt(written, torch.zeros(0), 0.0, meter.quarter_s, meter, None, 0)
    steering = Steering(control, tokenizer, [prompt] * rows, device, higher)
    steering.reach(steering.now_s + now_s)
    return steering


def lead(logits: Tensor, more: Tensor, group: Tensor) -> tuple[Tensor, Tensor]:
    """Logits (B, V) with `more` on the ids of a group (1, V), whose probability together stays as it is. And for these
    ids the logarithm of the mean exp(more) under their probabilities, (B, V), 0 for others."""
    inside = torch.where(group, logits, -torch.inf)
    led = inside + more
    back = inside.logsumexp(1, keepdim=True) - led.logsumexp(1, keepdim=True)  # NaN where none of them is legal
    can = group & back.isfinite()
    return torch.where(can, led + back, logits), torch.where(can, -back, 0.0)


def check_encoding(control: Control, tokenizer: Tokenizer) -> None:
    """Raises ConfigError for what an encoding cannot take."""
    name, hint = tokenizer.name, "leave it out"
    if tokenizer.pace is None or not strikes_of(tokenizer).any():
        raise ConfigError("control", why=f"the ids of {name} do not say when each note begins", hint=hint)
    lacks = {
        "density": "has an id for each sixteenth of a voice, however many notes begin" if tokenizer.voices else "",
        "polyphony": "has no ids for the ends of notes" if not ends_of(tokenizer).any() else "",
        "register": "has voices, each in its range" if tokenizer.voices else "",
        "loudness": "has no velocities" if (velocities_of(tokenizer) < 0).all() else "",
    }
    for each in control.curves():
        if lacks[each]:
            raise ConfigError(each, got=getattr(control, each), why=f"{name} {lacks[each]}", hint=hint)


def strikes_of(tokenizer: Tokenizer) -> NDArray[np.bool_]:
    """(V,) the ids that begin a note, or let it sound on in a grid."""
    return tokenizer.vocab.mask("NOTE_ON", "MELODY_ON", "PITCH")


def ends_of(tokenizer: Tokenizer) -> NDArray[np.bool_]:
    """(V,) the ids that end a note."""
    return tokenizer.vocab.mask("NOTE_OFF", "MELODY_OFF")


def keys_of(tokenizer: Tokenizer) -> NDArray[np.int64]:
    """(V,) for a strike itself, for the end of a note its strike, V for other ids."""
    vocab, keys = tokenizer.vocab, np.full(tokenizer.vocab.size, tokenizer.vocab.size)
    for on, off in (("NOTE_ON", "NOTE_OFF"), ("MELODY_ON", "MELODY_OFF")):
        strikes, ends = vocab.mask(on), vocab.mask(off)
        if ends.any():
            keys[strikes] = keys[ends] = np.flatnonzero(strikes)
    return keys


def velocities_of(tokenizer: Tokenizer) -> NDArray[np.int64]:
    """(V,) the velocity that an id gives to notes; -1 where it gives none."""
    bins = tokenizer.vocab.values(*(row.type for row in tokenizer.vocab.events if row.type.endswith("VELOCITY")))
    return np.where(bins >= 0, bins * VELOCITY_BIN + VELOCITY_BIN // 2, -1)


def unwelcome(chords: Sequence[Classes], key: Classes | None, pitch: NDArray[np.int64]) -> NDArray[np.float64]:
    """(U, V) 1 for pitches outside each chord, and 1 more for those outside the key."""
    outside = [np.isin(pitch % 12, list(classes), invert=True) for classes in (*chords, key or range(12))]
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
