"""What a person may forbid the sampler, beyond what the encoding forbids by itself."""

import re
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from musictx.errors import ConfigError

SCALES = {
    "major": (0, 2, 4, 5, 7, 9, 11),
    "minor": (0, 2, 3, 5, 7, 8, 10),
    "harmonic": (0, 2, 3, 5, 7, 8, 11),
    "dorian": (0, 2, 3, 5, 7, 9, 10),
    "pentatonic": (0, 2, 4, 7, 9),
    "blues": (0, 3, 5, 6, 7, 10),
}
TONICS = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}
# soprano, alto, tenor, bass as choirs sing them
VOICE_RANGES = ((60, 81), (53, 76), (47, 69), (38, 64))
MOST_S = 3600.0


@dataclass(frozen=True)
class Rules:
    """Limits on the music drawn. Raises ConfigError for those that no music can keep.

    `masks` False lets the model draw any event. The voices are those of the chorale grid: with `voice_order` none
    sings above the one before it, with `voice_ranges` each stays where its singers can.
    """

    masks: bool = True
    max_silence_s: float = 5.0
    max_note_s: float = 20.0
    max_polyphony: int | None = None
    lowest: int = 0
    highest: int = 127
    scale: str | None = None
    voice_order: bool = False
    voice_ranges: bool = False

    def __post_init__(self) -> None:
        for name in ("max_silence_s", "max_note_s"):
            value = getattr(self, name)
            if not 0 < value <= MOST_S:
                raise ConfigError(f"rules.{name}={value}: give more than 0 and at most {MOST_S:g} seconds")
        if self.max_polyphony is not None and self.max_polyphony < 1:
            raise ConfigError(f"rules.max_polyphony={self.max_polyphony}: give 1 or more, or null for no limit")
        if not 0 <= self.lowest <= self.highest <= 127:
            raise ConfigError(
                f"rules.lowest={self.lowest}, rules.highest={self.highest}: give pitches 0 to 127, the lowest first"
            )
        if not self.pitches().any():
            raise ConfigError(
                f"rules.scale={self.scale} has no pitch from {self.lowest} to {self.highest}: give a wider range"
            )
        if not self.masks and replace(self, masks=True) != Rules():
            raise ConfigError("rules.masks=false forbids nothing: leave out the other rules, or the masks on")

    def pitches(self) -> NDArray[np.bool_]:
        """(128,) True where a note may begin. Raises ConfigError for a scale that does not exist."""
        at = np.arange(128)
        allowed: NDArray[np.bool_] = (at >= self.lowest) & (at <= self.highest)
        if self.scale is not None:
            allowed &= np.isin(at % 12, scale_classes(self.scale))
        return allowed


def scale_classes(name: str) -> list[int]:
    """Pitch classes of a scale in words: `C major`, `F# minor`, `Bb blues`. Raises ConfigError."""
    words = re.fullmatch(r"([A-G])([#b]?)[ _-]+(\w+)", name.strip())
    if not words or words[3].lower() not in SCALES:
        raise ConfigError(f"rules.scale={name}: give a tonic and one of {', '.join(SCALES)}, as in 'F# minor'")
    tonic = TONICS[words[1]] + {"": 0, "#": 1, "b": -1}[words[2]]
    return [(tonic + step) % 12 for step in SCALES[words[3].lower()]]
