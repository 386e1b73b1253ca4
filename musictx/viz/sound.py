"""A Score as sound, by pretty_midi's own synthesiser: an organ-like tone, no SoundFont, no network."""

import wave
from pathlib import Path

import numpy as np
import pretty_midi
from numpy.typing import NDArray

from musictx.files import replacing
from musictx.notes.score import Score

PEAK = 0.9  # of full scale: loud, and never clipped
HARMONICS = (1.0, 0.5, 0.3, 0.15, 0.08, 0.04)  # amplitudes of a soft principal stop


def write_wav(score: Score, path: Path, sample_rate: int = 44_100) -> None:
    """16-bit mono, peak-normalised. Written whole or not at all."""
    part = pretty_midi.Instrument(0)
    columns = zip(score.velocity.tolist(), score.pitch.tolist(), score.onset_s, score.offset_s, strict=True)
    part.notes.extend(pretty_midi.Note(*column) for column in columns)
    audio = part.synthesize(sample_rate, _organ)  # (samples,)
    peak = np.abs(audio).max(initial=0.0)
    samples = np.rint(audio * (PEAK * 32767 / peak if peak > 0 else 0.0)).astype("<i2")
    with replacing(path) as partial, wave.open(str(partial), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(sample_rate)
        file.writeframes(samples.tobytes())


def _organ(phase: NDArray[np.float64]) -> NDArray[np.float64]:
    """One period of the tone, by phase in radians."""
    tone: NDArray[np.float64] = np.sum([a * np.sin((k + 1) * phase) for k, a in enumerate(HARMONICS)], axis=0)
    return tone
