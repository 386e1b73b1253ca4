"""What a person asks of new music without another training: its key, chords, density and loudness."""

from dataclasses import dataclass

from musictx.errors import ConfigError
from musictx.music.harmony import Chord, ChordLine, Classes, key_classes, parse_chords, spell
from musictx.setting import check_types, setting
from musictx.tokenizers.rules import Rules, scale_classes

DENSITIES = (1.0, 30.0)  # below, `rules.max_still_s=auto` begins more notes than asked
MOST_STRENGTH = 20.0


@dataclass  # not frozen, as Sampling is not
class Control:
    """Where new music is led. Nothing is forbidden: unlikely notes may still come. Raises ConfigError for what no music
    can meet."""

    key: str | None = setting(None, "the key of new notes, as in 'D minor', F# or Am; null: any")
    chords: str | None = setting(
        None,
        "chords for new notes, again and again: bars, 'C | Am F | G7', or seconds, '0 C, 4 Am, 8 G7'; null: any",
    )
    bar_seconds: float | None = setting(None, "how long a bar of chords lasts; null: as long as the seed's")
    density: float | None = setting(None, "new notes a second; null: as the model likes")
    loudness: int | None = setting(None, "velocity of new notes, 1 to 127; null: as the model likes")
    strength: float = setting(6.0, "how firmly: one more makes each note outside the chord 2.7 times as unlikely")

    def __post_init__(self) -> None:
        check_types(self)
        if self.density is not None and not DENSITIES[0] <= self.density <= DENSITIES[1]:  # refuses NaN too
            allowed = f"{DENSITIES[0]:g} to {DENSITIES[1]:g} notes a second, or null"
            raise ConfigError("density", got=self.density, allowed=allowed)
        if self.loudness is not None and not 1 <= self.loudness <= 127:
            raise ConfigError("loudness", got=self.loudness, allowed="a velocity, 1 to 127, or null")
        if not 0 < self.strength <= MOST_STRENGTH:
            raise ConfigError("strength", got=self.strength, allowed=f"more than 0 and at most {MOST_STRENGTH:g}")
        if self.strength != Control.strength and not self.asked:
            raise ConfigError(
                "strength",
                got=self.strength,
                why="nothing is asked for",
                allowed="key=, chords=, density= or loudness= too",
            )
        line, key = self.line, self.classes
        if self.bar_seconds is not None and (line is None or not line.in_bars):
            raise ConfigError("bar_seconds", got=self.bar_seconds, why="it is for bars", allowed="chords='C | Am' too")
        if self.bar_seconds is not None and not 0.1 <= self.bar_seconds <= 60:
            raise ConfigError("bar_seconds", got=self.bar_seconds, allowed="0.1 to 60 seconds, or null")
        if line is not None and key is not None:
            refuse_outside(line.chords, key, f"key={self.key}")

    @property
    def asked(self) -> bool:
        """Whether anything is asked for."""
        return any(each is not None for each in (self.key, self.chords, self.density, self.loudness))

    @property
    def line(self) -> ChordLine | None:
        return parse_chords(self.chords) if self.chords is not None else None

    @property
    def classes(self) -> Classes | None:
        """The notes of the key."""
        return key_classes(self.key) if self.key is not None else None

    def unit_s(self, bar_s: float) -> float:
        """The unit in which chords begin, where the seed's bar lasts `bar_s`."""
        if self.line is None or not self.line.in_bars:
            return 1.0
        return bar_s if self.bar_seconds is None else self.bar_seconds

    def say_bar(self, source: object, bar_s: float) -> None:
        """Prints how long a bar of chords lasts, where that is left to the music of `source`."""
        if self.line is not None and self.line.in_bars and self.bar_seconds is None:
            print(
                f"{source}: a bar of chords lasts {bar_s:.2f} s, as its own bars do; bar_seconds= names another length"
            )

    def check_rules(self, rules: Rules) -> None:
        """Raises ConfigError for what the rules exclude."""
        line, key = self.line, self.classes
        if line is not None and rules.scale is not None:
            refuse_outside(line.chords, frozenset(scale_classes(rules.scale)), f"scale={rules.scale}")
        may = frozenset(pitch % 12 for pitch in rules.pitches().nonzero()[0].tolist())
        asked = [("chords", str(chord), chord.classes) for chord in (line.chords if line is not None else ())]
        for name, got, classes in [*asked, *([("key", self.key, key)] if key is not None else [])]:
            if not classes & may:
                why, hint = "the rules leave none of its notes", "give a wider range of pitches"
                raise ConfigError(name, got=got, why=why, hint=hint)
        still_s = rules.max_still_s
        if self.density is not None and isinstance(still_s, int | float) and self.density * still_s < 1:
            why = f"max_still_s={still_s:g} makes more notes than that"
            raise ConfigError("density", got=self.density, why=why, allowed=f"at least {1 / still_s:g}")


def refuse_outside(chords: tuple[Chord, ...], classes: Classes, where: str) -> None:
    """Raises ConfigError for a chord with a note that is not among `classes`, which `where` names."""
    for chord in chords:
        if outside := chord.classes - classes:
            why = f"{spell(outside)} is outside {where}"
            raise ConfigError("chords", got=str(chord), why=why, hint="change one of them")
