"""A Score as a sound file, through a SoundFont: nothing but pip's packages, no network."""

from functools import cache
from pathlib import Path

import numpy as np
import pretty_midi
import soundfile

from musictx.errors import ConfigError
from musictx.files import replacing
from musictx.notes.score import Score
from musictx.viz.soundfont import SoundFont
from musictx.viz.synth import Audio, render

PEAK = 0.9  # of full scale: loud, and never clipped
FORMATS = (".wav", ".flac")
GENERAL_MIDI = Path(pretty_midi.__file__).with_name("TimGM6mb.sf2")  # Tim Brechbill's, which pretty_midi carries


def write_wav(score: Score, path: Path, sample_rate: int = 44_100, soundfont: Path | None = None) -> None:
    """16-bit stereo, peak-normalised; WAV or FLAC by the name's suffix. Written whole or not at all.

    `soundfont`: another .sf2 file than the General MIDI one. Raises ConfigError for another suffix, SoundFontError
    for a font that cannot be read.
    """
    if path.suffix.lower() not in FORMATS:
        raise ConfigError(f"{path}: sound is written as {' or '.join(FORMATS)}: give a name that ends so")
    audio = synthesize(score, sample_rate, soundfont)
    peak = np.abs(audio).max(initial=0.0)
    samples = np.rint(audio * (PEAK * 32767 / peak if peak > 0 else 0.0)).astype(np.int16)
    with replacing(path) as partial:
        soundfile.write(partial, samples, sample_rate, "PCM_16")


def synthesize(score: Score, sample_rate: int = 44_100, soundfont: Path | None = None) -> Audio:
    """(samples, 2) float32, as loud as font and velocities make it. Raises SoundFontError."""
    return render(score, _font(soundfont or GENERAL_MIDI), sample_rate)


@cache
def _font(path: Path) -> SoundFont:
    return SoundFont(path)
