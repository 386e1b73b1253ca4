"""Writes a score as a picture, a film or sound, by the suffix of the file's name."""

from collections.abc import Sequence
from math import inf
from pathlib import Path

from musictx.music.score import Bars, Score
from musictx.viz import animate, figure, sound
from musictx.viz.animate import film
from musictx.viz.piano_roll import Chord, New, piano_roll
from musictx.viz.sound import write_wav

FORMATS = (*figure.FORMATS, *animate.FORMATS, *sound.FORMATS)


def write_as(
    score: Score,
    path: Path,
    title: str,
    new: New = inf,
    *,
    bars: Bars | None = None,
    soundfont: Path | None = None,
    chords: Sequence[Chord] = (),
) -> None:
    """Writes the score, whole or not at all: `new` as in `Panel`, the rest as in `piano_roll` and `write_wav`. Raises
    ConfigError for another suffix."""
    suffix = path.suffix.lower()
    path.parent.mkdir(parents=True, exist_ok=True)
    if suffix in sound.FORMATS:
        write_wav(score, path, soundfont=soundfont)
    elif suffix in animate.FORMATS:
        film(title, score, new, path, bars)
    else:
        piano_roll([(title, score, new)], path, bars=bars, chords=[chords])
