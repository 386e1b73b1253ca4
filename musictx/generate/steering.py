"""Steering: terms on logits that lead the rows of a batch to the targets of a `Control`.

Key, chords, register and loudness move probability among notes or velocities; density and polyphony change that of
beginnings, ends and waits."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from musictx.errors import ConfigError
from musictx.generate.chords import CLOSE, ChordChanges, ChordClock
from musictx.generate.control import Control
from musictx.generate.primer import Prompt
from musictx.music.grid import STEPS_PER_QUARTER
from musictx.music.harmony import Classes
from musictx.music.score import Meter
from musictx.tokenizers import Ids, Tokenizer
from musictx.tokenizers.performance.events import VELOCITY_BIN

RECENT_S = 2.0  # notes count for the density, less and less the longer ago they began
SPREAD = {"register": 24.0, "loudness": 28.0}  # so far from what is asked is as unwelcome as a note outside the chord
MOST_GAP = 2.0  # as a logarithm: a number further from the one asked for leads no more
LEAST = 1e-9  # no number: after a long silence a rate is 0
NOTHING = -700.0  # as a logarithm, beside 0; the exponential of -inf takes four times as long
MOVING = ("now_s", "rate", "down", "chord", "next_s", "since_s", "step_now_s")  # by row

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class Steering:
    """The state of each row; the model hears music `higher` semitones up. Raises as `check_encoding`."""

    def __init__(self, control: Control, tokenizer: Tokenizer, prompts: Sequence[Prompt], higher: int = 0) -> None:
        check_encoding(control, tokenizer)
        assert tokenizer.pace is not None  # refused above
        strikes, velocities = strikes_of(tokenizer), velocities_of(tokenizer)  # (V,)
        self.strikes, self.sounds, self.waits = strikes, strikes | (velocities >= 0), tokenizer.pace > 0  # (V,)
        units_s = [p.quarter_s / STEPS_PER_QUARTER if tokenizer.metrical else 1.0 for p in prompts]
        self.step_s = np.array(units_s)[:, None]  # (B, 1) of a grid
        self.wait = np.outer(units_s, tokenizer.pace)  # (B, V) seconds
        self.now_s = np.zeros((len(prompts), 1))  # in chords and curves
        self.clock = ChordClock(control, tokenizer, prompts)
        chords, pitch = self.clock.chords, tokenizer.pitch - higher
        self.strength = control.strength
        self.of_notes = -self.strength * strikes * outside_count(chords, control.classes, pitch)  # (U, V)
        self.curves = curves = control.curves()
        groups = {"register": (strikes, tokenizer.pitch), "loudness": (velocities >= 0, velocities)}
        # by curve: the ids that it leads, and their values, (V,) each
        self.aims = {name: group for name, group in groups.items() if name in curves}
        self.of_density = self.strength * (1.0 * self.sounds - self.waits)  # (V,)
        first = curves["density"].values[0] if "density" in curves else 1.0
        self.rate = np.array([[rate_after(p, tokenizer) or first] for p in prompts])  # (B, 1)
        self.ends, self.keys = ends_of(tokenizer), strike_ids(tokenizer)  # (V,)
        self.rows = np.arange(len(prompts))
        self.down = np.zeros((len(prompts), len(self.keys) + 1), bool)  # (B, V + 1) keys, by their strike
        for row, p in zip(self.down, prompts, strict=True):
            row[self.keys[p.ids]] = strikes[p.ids]  # the last id of a key counts
        # half a step of a clock of seconds: a bar line between two steps is at the nearest
        self.near_s = 0.0 if tokenizer.metrical else float(tokenizer.pace[self.waits].min()) / 2
        self.changes = None
        if control.chords is not None and self.ends.any():
            outside = outside_count(chords, None, pitch) > 0  # (U, V)
            self.changes = ChordChanges(self.strength, outside, pitch, strikes, self.ends, self.keys, self.down)
        # (B, voices) the last id of each voice of a grid, first that of the voice which comes next
        self.voice_ids = np.array([voice_ids(p, tokenizer) for p in prompts]) if tokenizer.voices else None
        self.chord = self.clock.at(self.now_s + self.near_s)[0]  # (B, 1)
        self.since_s = self.now_s - 1.0  # (B, 1) when it began; the first one is none that begins
        self.reach(self.now_s)

    def __call__(self, logits: Floats) -> tuple[Floats, Floats]:
        """Logits (B, V), -inf where illegal -> steered logits (B, V), and logarithms of the targets' share under the
        model (B, V)."""
        of_notes = self.of_notes[self.chord[:, 0]]  # (B, V)
        if self.changes is not None:
            ends, strikes, waits = self.changes.lead(self.down)
            past = self.now_s + self.wait > self.next_s + self.near_s  # (B, V)
            logits, _ = lead(logits, np.where(past, -self.strength, 0.0), self.waits)
            logits = logits + ends + waits * self.waits
            of_notes = of_notes + strikes
        logits, ease = lead(logits, of_notes, self.begins_note())
        for name, (group, values) in self.aims.items():
            away = (values - self.now(name)) / SPREAD[name]  # (B, V)
            logits, more = lead(logits, -self.strength * away**2, group)
            ease = ease + more
        if "density" in self.curves:
            logits = logits + gap(self.now("density"), self.rate) * self.of_density
        if "polyphony" in self.curves:
            logits = logits + self.of_polyphony()
        return logits, ease

    def begins_note(self) -> Bools:
        """(B, V) the ids that begin a note now; on a grid the same pitch counts only where a chord begins."""
        begins = np.repeat(self.strikes[None], len(self.rows), 0)
        if self.voice_ids is not None:
            begins[self.rows, self.voice_ids[:, 0]] = (self.since_s == self.step_now_s)[:, 0]
        return begins

    def away(self) -> Floats:
        """(B,) the squared distance of density and polyphony from their targets, as logarithms, times the strength."""
        away = np.zeros_like(self.rate)
        values = {"density": self.rate, "polyphony": np.maximum(self.down.sum(1, keepdims=True), 0.5)}
        for name, value in values.items():
            if name in self.curves:
                away += gap(self.now(name), value) ** 2
        return self.strength * away[:, 0]

    def now(self, name: str) -> Floats:
        """(B, 1) the value of a curve now."""
        now: Floats = np.interp(self.now_s, self.curves[name].at_s, self.curves[name].values)
        return now

    def of_polyphony(self) -> Floats:
        """(B, V) the terms of polyphony."""
        target, sounding = self.now("polyphony"), self.down.sum(1, keepdims=True)
        begins, ends = np.minimum(gap(target, sounding + 1), 0), -gap(target, sounding + 0.5)
        of_polyphony: Floats = self.strength * (begins * self.sounds + ends * self.ends)
        return of_polyphony

    def update(self, ids: NDArray[np.int64]) -> None:
        """Takes one more token a row, (B,)."""
        wait_s = self.wait[self.rows, ids][:, None]  # (B, 1)
        is_strike = self.strikes[ids]  # (B,)
        if "density" in self.curves:
            self.rate = self.rate * np.exp(-wait_s / RECENT_S) + is_strike[:, None] / RECENT_S
        if self.changes is not None or "polyphony" in self.curves:
            self.down[self.rows, self.keys[ids]] = is_strike
        if self.voice_ids is not None:
            self.voice_ids = np.concatenate([self.voice_ids[:, 1:], ids[:, None]], 1)
        if self.changes is not None:
            self.changes.strike(ids)
        if wait_s.any():
            self.reach(self.now_s + wait_s)

    def reach(self, now_s: Floats) -> None:
        """Moves each row to `now_s` seconds after its prompt, (B, 1)."""
        self.now_s = now_s
        if self.voice_ids is not None:  # all voices of a step take one chord
            now_s = np.floor(now_s / self.step_s + CLOSE) * self.step_s
        chord, self.next_s = self.clock.at(now_s + self.near_s)  # (B, 1) each
        self.since_s = np.where(chord != self.chord, now_s, self.since_s)
        self.chord, self.step_now_s = chord, now_s
        if self.changes is not None:
            self.changes.reach(self.chord, self.down)

    def move(self, rows: NDArray[np.int64]) -> None:
        """Makes row b a copy of row rows[b], (B,), of the same prompt."""
        for name in MOVING:
            setattr(self, name, getattr(self, name)[rows])
        if self.changes is not None:
            self.changes.move(rows)
        self.voice_ids = None if self.voice_ids is None else self.voice_ids[rows]


def steer_accompaniment(
    control: Control,
    tokenizer: Tokenizer,
    ids: Ids,
    meter: Meter,
    *,
    rows: int = 1,
    from_s: float = 0.0,
    higher: int = 0,
) -> Steering | None:
    """The steering of an accompaniment after `ids` that begin at `from_s`; None without targets."""
    if not control.is_active:
        return None
    now_s = from_s + tokenizer.seconds(ids, meter.quarter_s)
    prompt = Prompt(ids, np.zeros(0, np.int64), 0.0, meter.quarter_s, meter, None, 0)
    steering = Steering(control, tokenizer, [prompt] * rows, higher)
    steering.reach(steering.now_s + now_s)
    return steering


def lead(logits: Floats, more: Floats, group: Bools) -> tuple[Floats, Floats]:
    """Logits (B, V) with `more` on a group (B or 1, V) of ids, whose sum of probabilities stays.

    Also the logarithm of the mean exp(more) under their probabilities, (B, V), 0 for other ids."""
    if not more.any():
        return logits, np.zeros_like(logits)
    with np.errstate(invalid="ignore"):  # NaN where none of them is legal, or a logit is no number
        inside = np.where(group, logits, -np.inf)
        total = inside + more
        back = log_sum_exp(inside) - log_sum_exp(total)  # (B, 1)
        can = group & np.isfinite(back)
        return np.where(can, total + back, logits), np.where(can, -back, 0.0)


def log_sum_exp(logits: Floats) -> Floats:
    """(B, 1) the logarithm of the sum of exp(logits)."""
    most = logits.max(1, keepdims=True)
    total: Floats = np.log(np.exp(np.maximum(logits - most, NOTHING)).sum(1, keepdims=True)) + most
    return total


def gap(target: Floats, value: Floats) -> Floats:
    """(B, 1) the distance of values from their targets, as logarithms."""
    return np.log(target / np.maximum(value, LEAST)).clip(-MOST_GAP, MOST_GAP)


def check_encoding(control: Control, tokenizer: Tokenizer) -> None:
    """Raises ConfigError for a target that an encoding cannot have."""
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
    """(V,) the ids that begin a note, or continue it in a grid."""
    return tokenizer.vocab.mask("NOTE_ON", "PITCH")


def ends_of(tokenizer: Tokenizer) -> NDArray[np.bool_]:
    """(V,) the ids that end a note."""
    return tokenizer.vocab.mask("NOTE_OFF")


def strike_ids(tokenizer: Tokenizer) -> NDArray[np.int64]:
    """(V,) the strike of each strike and end, V of other ids."""
    vocab, keys = tokenizer.vocab, np.full(tokenizer.vocab.size, tokenizer.vocab.size)
    strikes, ends = vocab.mask("NOTE_ON"), ends_of(tokenizer)
    if ends.any():
        keys[strikes] = keys[ends] = np.flatnonzero(strikes)
    return keys


def velocities_of(tokenizer: Tokenizer) -> NDArray[np.int64]:
    """(V,) the velocity of an id, -1 for none."""
    bins = tokenizer.vocab.values(*(row.type for row in tokenizer.vocab.events if row.type == "VELOCITY"))
    return np.where(bins >= 0, bins * VELOCITY_BIN + VELOCITY_BIN // 2, -1)


def outside_count(chords: Sequence[Classes], key: Classes | None, pitch: NDArray[np.int64]) -> NDArray[np.float64]:
    """(U, V) 1 for pitches outside each chord, plus 1 outside the key."""
    outside = [np.isin(pitch % 12, list(classes), invert=True) for classes in (*chords, key or range(12))]
    return np.array(outside[:-1], float) + outside[-1]


def rate_after(prompt: Prompt, tokenizer: Tokenizer) -> float:
    """The density at a prompt's end, in notes a second."""
    assert tokenizer.pace is not None
    ago = np.cumsum(tokenizer.pace[prompt.ids][::-1])[::-1]
    return float(np.exp(-ago / RECENT_S)[strikes_of(tokenizer)[prompt.ids]].sum() / RECENT_S)


def voice_ids(prompt: Prompt, tokenizer: Tokenizer) -> list[int]:
    """The last id of each voice of a grid; PAD before the first."""
    ids = [*[tokenizer.vocab.pad] * tokenizer.voices, *prompt.ids.tolist()]
    return ids[-tokenizer.voices :]
