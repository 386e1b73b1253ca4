"""Targets for new music: key, chords, density, polyphony, register, loudness."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from musictx.errors import ConfigError, MidiError
from musictx.generate.score_chords import chords_found
from musictx.music.curve import Curve, parse_curve
from musictx.music.harmony import (
    MOST_CHORDS,
    Chord,
    ChordLine,
    Classes,
    chord_track,
    chords_by_bar,
    key_classes,
    parse_chords,
    spell,
)
from musictx.music.read import SUFFIXES, notation_in, read_bytes, read_tracks
from musictx.music.score import Meter, Score
from musictx.setting import check_types, setting
from musictx.tokenizers.rules import AUTO, Rules, scale_classes

CURVES = {  # the least, the most, and in what
    "density": (1.0, 30.0, "notes a second"),  # below, `rules.max_still_s=auto` begins more notes than asked
    "polyphony": (1, 30, "notes at once"),
    "register": (21, 108, "as a pitch"),
    "loudness": (1, 127, "as a velocity"),
}
MOST_STRENGTH = 20.0
PARTICLES, MOST_PARTICLES = 4, 64
SEED = "seed"


@dataclass(frozen=True)
class Control:
    """Targets of new music, which it may miss.

    Raises:
        ConfigError: for impossible ones.
    """

    key: str | None = setting(None, "the key of new notes, as in 'D minor', F# or Am; null: any")
    chords: str | None = setting(
        None,
        "chords for new notes, again and again: bars, 'C | Am F | G7', or seconds, '0 C, 4 Am, 8 G7'; seed: the seed's "
        "own, by bar; or a file of chords, MIDI or a score; null: any",
    )
    bar_seconds: float | None = setting(None, "how long each bar of chords lasts; null: from bar line to bar line")
    density: int | float | str | None = setting(
        None, "new notes a second, or a curve, '0 3, 10 8': from 3 to 8 in ten seconds; null: as sampler.guard has it"
    )
    polyphony: int | float | str | None = setting(
        None, "about how many new notes sound at once, or a curve; null: as sampler.guard has it"
    )
    register: int | float | str | None = setting(
        None, "the pitch around which new notes lie, 60 is middle C, or a curve; null: as sampler.guard has it"
    )
    loudness: int | float | str | None = setting(
        None, "velocity of new notes, 1 to 127, or a curve; null: as the model likes"
    )
    strength: float = setting(
        6.0,
        "how firmly: one more makes each note outside the chord 2.7 times as unlikely; 0 alone: chord symbols of a "
        "score do not lead",
    )
    particles: int | str = setting(
        AUTO,
        "so many draws side by side, of which those that had to be led least replace the others; "
        f"auto: {PARTICLES}, in scores 1",
    )

    def __post_init__(self) -> None:
        self.curves()  # before the types are compared: it says what a curve is
        check_types(self)
        is_off = self.strength == 0 and not self.is_active  # for chord symbols
        if not (0 < self.strength <= MOST_STRENGTH or is_off):
            allowed = f"more than 0 and at most {MOST_STRENGTH:g}, or 0 alone"
            raise ConfigError("strength", got=self.strength, allowed=allowed)
        for name in ("strength", "particles")[is_off:]:
            if (value := getattr(self, name)) != getattr(Control, name) and not self.is_active:
                allowed = "key=, chords=, density=, polyphony=, register= or loudness= too"
                raise ConfigError(name, got=value, why="nothing is asked for", allowed=allowed)
        if self.particles != AUTO and (isinstance(self.particles, str) or not 0 < self.particles <= MOST_PARTICLES):
            raise ConfigError("particles", got=self.particles, allowed=f"1 to {MOST_PARTICLES}, or auto")
        line, key = self.line, self.classes
        if self.bar_seconds is not None and not self.in_bars:
            raise ConfigError("bar_seconds", got=self.bar_seconds, why="it is for bars", allowed="chords='C | Am' too")
        if self.bar_seconds is not None and not 0.1 <= self.bar_seconds <= 60:
            raise ConfigError("bar_seconds", got=self.bar_seconds, allowed="0.1 to 60 seconds, or null")
        if line is not None and key is not None:
            refuse_outside(line.chords, key, f"key={self.key}")

    @property
    def is_active(self) -> bool:
        """Whether there is any target."""
        return any(getattr(self, name) is not None for name in ("key", "chords", *CURVES))

    @property
    def free(self) -> list[str]:
        """The bounds of the seed's character that these curves replace."""
        beyond = ["low", "high"]
        of = {"density": ["density", "dense", "thin", "polyphony"], "polyphony": ["polyphony", *beyond]}
        of |= {"register": beyond}
        return [name for curve, names in of.items() if getattr(self, curve) is not None for name in names]

    @property
    def rows(self) -> int:
        """The number of draws of each piece of new music."""
        if not self.is_active:
            return 1
        return PARTICLES if isinstance(self.particles, str) else self.particles

    def curves(self) -> dict[str, Curve]:
        """The numbers and curves by name. Raises ConfigError."""
        values = {name: value for name in CURVES if (value := getattr(self, name)) is not None}
        return {name: parse_curve(name, value, *CURVES[name]) for name, value in values.items()}

    @property
    def line(self) -> ChordLine | None:
        """The chords that `chords` spells out."""
        return None if self.chords is None or self.chords == SEED or self.chord_file else parse_chords(self.chords)

    @property
    def chord_file(self) -> str | None:
        """The file of chords; only `read` opens it, since text on a page must not."""
        return self.chords if self.chords is not None and self.chords.lower().endswith(SUFFIXES) else None

    @property
    def in_bars(self) -> bool:
        return self.chords == SEED or (self.line is not None and self.line.in_bars)

    @property
    def classes(self) -> Classes | None:
        """The pitch classes of the key."""
        return key_classes(self.key) if self.key is not None else None

    def read(self) -> Self:
        """Replaces a file of chords by their text; those of a score count bars. Raises MidiError, and ConfigError for
        too many."""
        if self.chord_file is None:
            return self
        data = read_bytes(self.chord_file)
        if (written := notation_in(data, self.chord_file, chart=True)) is not None:
            return replace(self, chords=chords_found(written, len(written.bars), self.chord_file))
        score = read_tracks(data, self.chord_file).merge()
        if not len(score):
            raise MidiError(self.chord_file, "it has no chords", "give a file with notes")
        return replace(self, chords=chord_track(score))

    def chords_after(self, seed: Score, meter: Meter, end_s: float) -> str | None:
        """The chords after a seed that ends at `end_s`, as text. Raises ConfigError for a seed without notes."""
        if self.chords != SEED:
            return self.chords
        if not len(seed):
            raise ConfigError("chords", got=SEED, why="nothing comes before the new music", allowed="chords, or a seed")
        before_s, _ = self.lines_s(meter, end_s)
        if len(before_s) > MOST_CHORDS + 1:
            why = f"the seed has more than {MOST_CHORDS} bars"
            raise ConfigError("chords", got=SEED, why=why, allowed="less of it, or a longer bar_seconds=")
        text = chords_by_bar(seed, before_s)
        if self.classes is not None:
            refuse_outside(parse_chords(text).chords, self.classes, f"key={self.key}")
        return text

    def lines_s(self, meter: Meter, end_s: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The bar lines (or whole seconds) of chords in a seed that ends at `end_s`, and those after it, in seconds.

        Two or more of each. Bars are the seed's own, from the line nearest to its first bar to that nearest to its end,
        if its notes keep to them; else equal ones."""
        if not self.in_bars or self.bar_seconds is not None or meter.whole_s is None or meter.lines_s is None:
            unit_s = (self.bar_seconds or meter.bar_s) if self.in_bars else 1.0
            bars = min(max(round(end_s / unit_s), 1), MOST_CHORDS + 1)  # more are refused
            return unit_s * np.arange(bars + 1, dtype=np.float64), np.array([end_s, end_s + unit_s])
        lines = np.unique(meter.bars_s(max(end_s, float(meter.lines_s[-1])), more=2))
        first, last = (int(np.abs(lines - at_s).round(2).argmin()) for at_s in (max(meter.whole_s, 0.0), end_s))
        last = max(last, first if first == 1 else 0)  # an upbeat; later bars may be empty
        return lines[min(first, max(last - 1, 0)) : max(last, 1) + 1], lines[last:]

    def say(self, source: object, seed: Score, meter: Meter, end_s: float, say: Callable[[str], None]) -> None:
        """Says the bar lines and chords that come from the seed."""
        if self.in_bars and self.bar_seconds is None:
            bars_s = np.diff(self.lines_s(meter, end_s)[1])
            lasts = " to ".join(dict.fromkeys(f"{bar_s:.2f}" for bar_s in (bars_s.min(), bars_s.max())))
            why = "its notes keep to no" if meter.lines_s is not None else "it has no"
            how = f"each alike, since {why} bar lines" if meter.whole_s is None else "from bar line to bar line"
            say(f"{source}: a bar of chords lasts {lasts} s, {how}; bar_seconds= names another length")
        if self.chords == SEED:
            say(f"{source}: its chords are {self.chords_after(seed, meter, end_s)}")

    def check_rules(self, rules: Rules) -> None:
        """Raises ConfigError for a target that the rules exclude."""
        line, key = self.line, self.classes
        if line is not None and rules.scale is not None:
            refuse_outside(line.chords, frozenset(scale_classes(rules.scale)), f"scale={rules.scale}")
        may = frozenset(pitch % 12 for pitch in rules.pitches().nonzero()[0].tolist())
        chords = [("chords", str(chord), chord.classes) for chord in (line.chords if line is not None else ())]
        for name, got, classes in [*chords, *([("key", self.key, key)] if key is not None else [])]:
            if not classes & may:
                why, hint = "the rules leave none of its notes", "give a wider range of pitches"
                raise ConfigError(name, got=got, why=why, hint=hint)
        curves, most = self.curves(), rules.max_polyphony
        if "polyphony" in curves and most is not None and max(curves["polyphony"].values) > most:
            raise ConfigError("polyphony", got=self.polyphony, why=f"max_polyphony={most}", allowed="no more than that")
        if "register" in curves and not all(rules.lowest <= at <= rules.highest for at in curves["register"].values):
            allowed = f"{rules.lowest} to {rules.highest}, as the rules say"
            raise ConfigError("register", got=self.register, allowed=allowed)
        still_s = rules.max_still_s
        rarest = min(curves["density"].values) if self.density is not None else float("inf")
        if isinstance(still_s, int | float) and rarest * still_s < 1:
            why = f"max_still_s={still_s:g} makes more notes than that"
            raise ConfigError("density", got=self.density, why=why, allowed=f"at least {1 / still_s:g}")


def refuse_outside(chords: tuple[Chord, ...], classes: Classes, where: str) -> None:
    """Raises ConfigError for a chord with a note outside `classes`, called `where`."""
    for chord in chords:
        if outside := chord.classes - classes:
            why = f"{spell(outside)} is outside {where}"
            raise ConfigError("chords", got=str(chord), why=why, hint="change one of them")
