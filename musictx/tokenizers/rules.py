"""Rules that a person may set for the sampler, beyond those of the encoding itself."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.errors import ConfigError
from musictx.music.beat_grid import GRIDS, SWING
from musictx.music.grid import REST
from musictx.music.harmony import pitch_class
from musictx.setting import check_types, setting

SCALES = {
    "major": (0, 2, 4, 5, 7, 9, 11),
    "minor": (0, 2, 3, 5, 7, 8, 10),
    "harmonic": (0, 2, 3, 5, 7, 8, 11),
    "dorian": (0, 2, 3, 5, 7, 9, 10),
    "pentatonic": (0, 2, 4, 7, 9),
    "blues": (0, 3, 5, 6, 7, 10),
}
# ranges of soprano, alto, tenor and bass in a choir
VOICE_RANGES = ((60, 81), (53, 76), (47, 69), (38, 64))
OCTAVE, FIFTH = 0, 7  # semitones, modulo octaves
MOST_S = 3600.0
AUTO, OFF = "auto", "off"


class Auto(NamedTuple):
    """A limit that follows the seed within bounds; `without_s` without a seed."""

    least_s: float
    most_s: float
    without_s: float

    def limit_s(self, seed_s: Sequence[float] | NDArray[np.floating]) -> float:
        """The limit for a seed with waits or notes of these lengths."""
        return float(np.clip(max(seed_s), self.least_s, self.most_s)) if len(seed_s) else self.without_s


STILL = Auto(1.0, 3.0, 2.0)  # the model waits no longer than the seed does
NOTE = Auto(4.0, 8.0, 8.0)  # of 6,554 notes that composers wrote after seeds of 15 s, one lasts over 8 s
GRID_NOTE = Auto(1.0, 20.0, 20.0)  # of chorales, where repeated notes are one long note
BEAT_NOTE = Auto(1.0, 8.0, 8.0)  # after a seed on a grid, whose notes have written lengths


CHOIR_RULES = ("voice_order", "voice_ranges", "no_parallels")  # for chorale models alone


@dataclass(frozen=True)
class Rules:
    """Limits of the sampler. The voices are those of the chorale grid.

    Raises:
        ConfigError: for rules that no music can keep.
    """

    masks: bool = setting(True, "draw only events that can follow; false: any event at any time")
    max_silence_s: float = setting(5.0, "longest silence, seconds; max_still_s, where it is shorter, ends one sooner")
    max_note_s: int | float | str = setting(
        AUTO,
        f"longest note, seconds; auto: the seed's longest, at least {NOTE.least_s:g} s and at most {NOTE.most_s:g}; "
        f"on a grid at least {BEAT_NOTE.least_s:g} s, in chorales at most {GRID_NOTE.most_s:g}",
    )
    max_still_s: int | float | str | None = setting(
        AUTO,
        "longest wait for a new note, seconds; null: no limit; auto: the seed's longest, at least "
        f"{STILL.least_s:g} s and at most {STILL.most_s:g}; beside a melody no limit, beside a score's tune a bar",
    )
    max_polyphony: int | None = setting(None, "most notes at once; null: any number")
    grid: str = setting(
        AUTO,
        f"places of the beat at which new notes begin and end: {', '.join(GRIDS)} (t: triplets) or {SWING}; off: any "
        "moment; auto: those of the seed, none after a free performance",
    )
    lowest: int = setting(0, "lowest pitch")
    highest: int = setting(127, "highest pitch")
    scale: str | None = setting(None, "draw only the pitches of a scale, as in 'F# minor'")
    voice_order: bool | None = setting(None, "chorale models: no voice above the one before it; null: beside a melody")
    voice_ranges: bool | None = setting(
        None, "chorale models: every voice within its singers' range; null: beside a melody"
    )
    no_parallels: bool | None = setting(
        None, "chorale models: no two voices move in parallel fifths or octaves; null: beside a melody"
    )

    def __post_init__(self) -> None:
        for name in ("max_silence_s", "max_note_s", "max_still_s"):
            value, has_auto = getattr(self, name), name != "max_silence_s"
            if (has_auto and value == AUTO) or (name == "max_still_s" and value is None):
                continue
            is_number = isinstance(value, Real) and not isinstance(value, bool)
            if not is_number or not 0 < value <= MOST_S:  # refuses NaN too
                allowed = f"more than 0 and at most {MOST_S:g} seconds" + ", or auto for the seed's own" * has_auto
                raise ConfigError(name, got=value, allowed=allowed)
        check_types(self)
        if self.grid not in (grids := (AUTO, OFF, *GRIDS, SWING)):
            raise ConfigError("grid", got=self.grid, allowed=f"one of {', '.join(grids)}")
        most = self.max_polyphony
        if most is not None and not 1 <= most <= 128:
            raise ConfigError("max_polyphony", got=most, allowed="1 to 128, or null for no limit")
        if not 0 <= self.highest <= 127:
            raise ConfigError("highest", got=self.highest, allowed="a pitch, 0 to 127")
        if not 0 <= self.lowest <= self.highest:
            raise ConfigError("lowest", got=self.lowest, allowed=f"a pitch, 0 to highest={self.highest}")
        if not self.pitches().any():
            why = f"it has no pitch from {self.lowest} to {self.highest}"
            raise ConfigError("scale", got=self.scale, why=why, hint="give a wider range")

    def beside_melody(self) -> "Rules":
        """What auto and null mean there: voices may wait, and keep all rules of a choir."""
        still_s = None if self.max_still_s == AUTO else self.max_still_s
        if not self.masks:
            return replace(self, max_still_s=still_s)
        unsaid: dict[str, Any] = {name: True for name in CHOIR_RULES if getattr(self, name) is None}
        return replace(self, max_still_s=still_s, **unsaid)

    def check_free(self, what: str) -> None:
        """Raises ConfigError for a grid, where music keeps to none."""
        if self.grid not in (AUTO, OFF):
            raise ConfigError("grid", got=self.grid, why=f"{what} keeps to no grid of a beat", allowed="auto or off")

    def note_s(self, seed_s: Sequence[float] | NDArray[np.floating], auto: Auto = NOTE) -> float:
        """The longest note after a seed with notes of these lengths."""
        return auto.limit_s(seed_s) if isinstance(self.max_note_s, str) else float(self.max_note_s)

    def still_s(self, seed_s: Sequence[float] | NDArray[np.floating]) -> float:
        """The longest wait for a new note after a seed with these waits."""
        if self.max_still_s is None:
            return MOST_S
        return STILL.limit_s(seed_s) if isinstance(self.max_still_s, str) else float(self.max_still_s)

    def pitches(self) -> NDArray[np.bool_]:
        """(128,) True where a note may begin. Raises ConfigError for an unknown scale."""
        at = np.arange(128)
        allowed: NDArray[np.bool_] = (at >= self.lowest) & (at <= self.highest)
        if self.scale is not None:
            allowed &= np.isin(at % 12, scale_classes(self.scale))
        return allowed


def scale_classes(name: str) -> list[int]:
    """The pitch classes of a scale, as of `F# minor`. Raises ConfigError."""
    words = re.fullmatch(r"([A-G])([#b]?)[ _-]+(\w+)", name.strip())
    if not words or words[3].lower() not in SCALES:
        raise ConfigError("scale", got=name, allowed=f"a tonic and one of {', '.join(SCALES)}, as in 'F# minor'")
    tonic = pitch_class(words[1], words[2])
    return [(tonic + step) % 12 for step in SCALES[words[3].lower()]]


def parallel(upper: Any, lower: Any, last_upper: Any, last_lower: Any) -> NDArray[np.bool_]:
    """True where two voices move in parallel fifths or octaves.

    Pitches of two neighbouring steps, as arrays that broadcast. Unisons are octaves; rests do not move.
    """
    both_move: NDArray[np.bool_] = (upper != last_upper) & (lower != last_lower)
    if not both_move.any():  # as at most steps of a grid
        return both_move
    interval = abs(last_upper - last_lower) % 12
    perfect = ((interval == OCTAVE) | (interval == FIFTH)) & (abs(upper - lower) % 12 == interval)
    all_sound = (upper != REST) & (lower != REST) & (last_upper != REST) & (last_lower != REST)
    return both_move & all_sound & perfect & ((upper > last_upper) == (lower > last_lower))  # type: ignore[no-any-return]
