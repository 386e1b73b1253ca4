"""Density, polyphony and register of a score's new notes: how far each id would lead from what is asked.

The numbers are of all new parts together. Each part has its share of notes and of sound, as in the seed, and its
distance from the mean height there; parts that the seed lacks share alike."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from musictx.generate.control import Control
from musictx.generate.steering import RECENT_S, SPREAD, gap
from musictx.music.notation.notation import Notation
from musictx.music.score import UNITS
from musictx.tokenizers.score import ScoreTokenizer
from musictx.tokenizers.score.rules import Row
from musictx.tokenizers.score.tokens import MOST_UNITS

if TYPE_CHECKING:
    from musictx.generate.score_templates import Template

Floats = NDArray[np.float64]


class ScoreCurves:
    """The curves of a `Control`, in seconds from the first new bar on."""

    def __init__(self, control: Control, template: "Template", tokenizer: ScoreTokenizer) -> None:
        self.curves, self.tokenizer = control.curves(), tokenizer
        self.clock, self.begin = Clock(template.notation), template.span[0]
        drawn = sorted({slot for slot, _ in template.free})
        parts = [template.notation.parts[template.slots.index(slot)] for slot in drawn]
        notes = np.array([1 + len(part.notes) for part in parts])
        sound = np.array([1 + sum(note.length for note in part.notes) for part in parts])
        mean = np.mean([part.height for part in parts if part.notes] or [0.0])
        higher = [part.height - mean if part.notes else 0.0 for part in parts]
        self.share = {
            "density": dict(zip(drawn, notes / notes.sum(), strict=True)),
            "polyphony": dict(zip(drawn, sound / sound.sum(), strict=True)),
        }
        self.higher = dict(zip(drawn, higher, strict=True))

    def of_pitches(self, row: Row) -> Floats:
        """(V,) the squared distance of pitches from the register."""
        if "register" not in self.curves:
            return np.zeros(self.tokenizer.vocab.size)
        target = self._asked("register", self._s(row, row.at)) + self.higher[row.slot]
        pitch = self.tokenizer.pitch
        away: Floats = np.where(pitch >= 0, ((pitch - target) / SPREAD["register"]) ** 2, 0.0)
        return away

    def of_moves(self, row: Row) -> Floats:
        """(V,) the squared distance from density and polyphony, as logarithms, after one more note, a later place, or
        the end of the bar."""
        t, away = self.tokenizer, np.zeros(self.tokenizer.vocab.size)
        if row.last not in ("PART", "PITCH"):  # the note that comes is decided on
            return away
        ends, adds, places = row.bar[1] - row.bar[0], slice(t.long0, t.bar), np.arange(MOST_UNITS + 1)
        if "density" in self.curves:
            at_s, end_s = self._s(row, places), self._s(row, ends)
            away += self._gap("density", row, end_s, self._rate(row, end_s))
            away[t.at0 : t.long0] = self._gap("density", row, at_s, self._rate(row, at_s) + 1 / RECENT_S)
            now_s = self._s(row, row.at)
            away[adds] = self._gap("density", row, now_s, self._rate(row, now_s) + 1 / RECENT_S)
        if "polyphony" in self.curves:
            later = self._sounding(row, places) + 1
            over = later > self._target("polyphony", row, at_s := self._s(row, places))
            away[t.at0 : t.long0] += self._gap("polyphony", row, at_s, later) * over
            if row.last == "PITCH":
                now, now_s = self._sounding(row, row.at), self._s(row, row.at)
                stays, more = (self._gap("polyphony", row, now_s, n) for n in (now, now + 1))
                away += stays
                away[adds] += more - stays
        return away

    def _gap(self, name: str, row: Row, at_s: Floats, value: Floats) -> Floats:
        squared: Floats = gap(self._target(name, row, at_s), value) ** 2
        return squared

    def _target(self, name: str, row: Row, at_s: Floats) -> Floats:
        """The part's share of a number; one note at once at least."""
        least = 1.0 if name == "polyphony" else 0.0
        target: Floats = np.maximum(self._asked(name, at_s) * self.share[name][row.slot], least)
        return target

    def _asked(self, name: str, at_s: Floats) -> Floats:
        asked: Floats = np.interp(at_s, self.curves[name].at_s, self.curves[name].values)
        return asked

    def _s(self, row: Row, places: int | NDArray[np.int64]) -> Floats:
        """Seconds from the first new bar to places of the row's bar; before its first note that is its beginning."""
        return self.clock.seconds(row.bar[0] + np.maximum(places, 0)) - self.clock.seconds(np.array(self.begin))

    def _rate(self, row: Row, at_s: Floats) -> Floats:
        """Notes a second of the row's part at moments, as they are heard since then."""
        onsets = np.array([onset for slot, onset, *_ in row.notes if slot == row.slot], np.int64)
        since_s = at_s[..., None] - (self.clock.seconds(onsets) - self.clock.seconds(np.array(self.begin)))
        rate: Floats = np.where(since_s >= 0, np.exp(-np.maximum(since_s, 0) / RECENT_S), 0.0).sum(-1) / RECENT_S
        return rate

    def _sounding(self, row: Row, places: int | NDArray[np.int64]) -> Floats:
        """The notes of the row's part that sound at places of its bar."""
        own = np.array([note[1:3] for note in row.notes if note[0] == row.slot], np.int64).reshape(-1, 2)
        at = (row.bar[0] + np.maximum(places, 0))[..., None]
        sounding: Floats = ((own[:, 0] <= at) & (own[:, 1] > at)).sum(-1).astype(np.float64)
        return sounding


class Clock:
    """The seconds of a score's units, by its tempi."""

    def __init__(self, notation: Notation) -> None:
        self.onset = np.array([tempo.onset for tempo in notation.tempi])
        self.unit_s = np.array([60 / tempo.quarters_a_minute / UNITS for tempo in notation.tempi])
        self.onset_s = np.concatenate([[0.0], np.cumsum(np.diff(self.onset) * self.unit_s[:-1])])

    def seconds(self, at: NDArray[np.int64]) -> Floats:
        k = np.maximum(np.searchsorted(self.onset, at, side="right") - 1, 0)
        seconds: Floats = self.onset_s[k] + (at - self.onset[k]) * self.unit_s[k]
        return seconds
