"""The targets of a `Control` in scores: chords and keys by bar, and the terms on logits that lead rows to them."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from musictx.errors import ConfigError
from musictx.generate.control import Control
from musictx.generate.score_curves import ScoreCurves
from musictx.generate.steering import lead, outside_count
from musictx.music.harmony import ChordLine, Classes, key_mode, key_sharps
from musictx.music.notation.parts import Key
from musictx.tokenizers.rules import AUTO
from musictx.tokenizers.score.rules import Row
from musictx.tokenizers.score.tokens import LENGTHS, MOST_LONG

if TYPE_CHECKING:
    from musictx.generate.score_templates import Template
    from musictx.generate.scores import AroundParts

ALL: Classes = frozenset(range(12))

Floats = NDArray[np.float64]


class ScoreSteering:
    """The `Targets` of a score's new notes, by their places; `grammar` keeps the rows, so it has no state of its own.

    A pitch outside its chord is less likely, and one that lies outside a later chord too where it sounds on. So is a
    length that goes beyond its chord."""

    def __init__(self, control: Control, template: "Template", grammar: "AroundParts") -> None:
        self.grammar, self.strength = grammar, control.strength
        self.curves = ScoreCurves(control, template, grammar.tokenizer)
        self.begins, chords = chord_places(control.line, bar_lines(template))
        pitch = grammar.tokenizer.pitch  # (V,)
        self.pitches = pitch >= 0
        self.outside = self.pitches * outside_count(chords, None, pitch)  # (U, V) of each chord
        self.of_key = self.pitches * outside_count([ALL], control.classes, pitch)[0]  # (V,)

    def __call__(self, logits: Floats) -> tuple[Floats, Floats]:
        of_pitches, of_others = np.zeros((2, *logits.shape))  # (B, V)
        for b, row in enumerate(self.grammar.rows):
            if self.grammar.draws(b):
                outside, beyond = self._away(row)
                # no chord climbs away: its pitches come from low to high, and one more is no must
                of_pitch = of_others if row.last == "PITCH" else of_pitches
                of_others[b] += beyond + self.curves.of_moves(row)
                of_pitch[b] += outside + self.curves.of_pitches(row)
        return lead(logits - self.strength * of_others, -self.strength * of_pitches, self.pitches)

    def _away(self, row: Row) -> tuple[Floats, Floats]:
        """(V,) the chords and keys that each pitch is outside of; 1 for each length that goes beyond its chord."""
        t, onset, beyond = self.grammar.tokenizer, row.bar[0] + max(row.at, 0), np.zeros(len(self.pitches))
        k = max(bisect_right(self.begins, onset) - 1, 0)
        last = max(bisect_left(self.begins, onset + row.length), k + 1)
        away = self.outside[k:last].sum(0) + self.of_key
        if k + 1 < len(self.begins):
            room = self.begins[k + 1] - onset
            longer = row.longer + np.arange(1, MOST_LONG + 1)
            beyond[t.long0 : t.length0] = longer * LENGTHS >= room
            beyond[t.length0 : t.pitch0] = row.longer * LENGTHS + np.arange(1, LENGTHS + 1) > room
            if row.last == "AT":  # a pitch takes the length of the last note
                beyond[t.pitch0 : t.bar] = row.length > room
        return away, beyond

    def begins_note(self) -> NDArray[np.bool_]:
        return np.repeat(self.pitches[None], len(self.grammar.rows), 0)

    def update(self, ids: NDArray[np.int64]) -> None:
        pass

    def move(self, rows: NDArray[np.int64]) -> None:
        pass

    def away(self) -> Floats:
        return np.zeros(len(self.grammar.rows))


def bar_lines(template: "Template") -> list[int]:
    """The bar lines from the first new bar to the end of the last; an upbeat is no bar of chords."""
    spans, numbers = template.notation.spans, [bar for _, bar in template.free]
    first, last = min(numbers), max(numbers)
    first += first < template.notation.has_upbeat <= last
    return [*(bar.onset for bar, _ in spans[first : last + 1]), spans[last][1]]


def chord_places(line: ChordLine | None, lines: Sequence[int]) -> tuple[list[int], list[Classes]]:
    """Where chords change between bar lines, in units, and their pitch classes; one of all notes without a line."""
    begins, chords = [lines[0]], [ALL if line is None else line.chords[0].classes]
    for n in range((len(lines) - 1) * (line is not None)):
        assert line is not None
        for at, chord in zip(line.begins, line.chords, strict=True):
            if int(at) == n % int(line.length) and chord.classes != chords[-1]:
                begins.append(lines[n] + round(at % 1 * (lines[n + 1] - lines[n])))
                chords.append(chord.classes)
    return begins, chords


def in_key(template: "Template", key: str) -> "Template":
    """New bars with a key's signature; a score without signatures gets none."""
    old, at = template.notation, template.span[0]
    new = Key(at, key_sharps(key), key_mode(key))
    if not old.keys or old.keys[-1].sharps == new.sharps:
        return template
    return replace(template, notation=replace(old, keys=(*old.keys, new)))


def check_control(control: Control) -> None:
    """Raises ConfigError for targets that a score cannot have."""
    for name, why, hint in (
        ("loudness", "a score has no loudness", "humanize=true gives it one"),
        ("bar_seconds", "a score has bars of its own", "leave it out"),
    ):
        if (value := getattr(control, name)) is not None:
            raise ConfigError(name, got=value, why=why, hint=hint)
    if (several := control.particles) not in (AUTO, 1):  # of draws at different bars the densest would win
        raise ConfigError("particles", got=several, why="a score is drawn part by part", allowed="1, or auto")
    if control.chords is not None and not control.in_bars:
        allowed = "bars, as in 'C | Am F | G7', or seed"
        raise ConfigError("chords", got=control.chords, why="chords in a score last bars and beats", allowed=allowed)
