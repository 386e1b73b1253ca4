"""Renders a Score as sound through a SoundFont: a key once, as long as its longest note, whose beginning its notes
share."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pretty_midi
import soundfile
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from musictx.errors import UserError
from musictx.files import check_suffix, replacing
from musictx.music.score import DRUMS, Score
from musictx.viz.soundfont import Envelope, KeyedSample, SoundFont

Audio = NDArray[np.floating[Any]]  # float32
RATE = 44_100  # samples a second
Voice = list[float]  # onset_s, offset_s, velocity
FULL_DB = 100.0  # an envelope's fall of 1, in dB
SILENT = 0.8  # of that fall: the note is over
PIANOS = range(8)
SPREAD = 0.3  # of a piano's keys from left to right, as its player hears them: many fonts are mono
LONGEST_S = 180.0  # of a key's sound, which lies in memory; no piano sounds for so long
HOP = 512  # samples between two settings of the filter
LOWEST_HZ = 8.176  # MIDI key 0, from which cutoffs count


def render(score: Score, font: SoundFont) -> Audio:
    """(samples, 2) left and right, not normalised, up to the last release. A key is silent after `LONGEST_S`."""
    voices = _voices(score, font)
    tails_s = (offset + region.loudness.release_s * SILENT for (region, _), v in voices.items() for _, offset, _ in v)
    audio = np.zeros((2, int(np.ceil(max(tails_s, default=0.0) * RATE))), np.float32)  # numpy is slow at pairs
    for (region, pan), notes in voices.items():
        longest_s = max(offset - onset for onset, offset, _ in notes)
        n_release = int(region.loudness.release_s * SILENT * RATE)
        wave = _wave(region, round(longest_s * RATE) + n_release)
        release = 10 ** (-FULL_DB / 20 * np.linspace(0, SILENT, n_release, endpoint=False, dtype=np.float32))
        sides = np.sqrt([0.5 - pan, 0.5 + pan]).astype(np.float32) * np.float32(region.gain)
        for onset, offset, velocity in notes:
            start, n_held = round(onset * RATE), round((offset - onset) * RATE)
            sound = wave[: n_held + n_release].copy()
            sound[n_held:] *= release[: len(sound[n_held:])]
            sound = sound[: audio.shape[1] - start]  # rounding may place the last sample past the end
            # attenuation by 40 log10(127 / velocity) dB, section 8.4.1
            for side, share in zip(audio, sides * np.float32((velocity / 127) ** 2), strict=True):
                side[start : start + len(sound)] += share * sound
    return audio.T


def _voices(score: Score, font: SoundFont) -> dict[tuple[KeyedSample, float], list[Voice]]:
    """Every note with each of its regions, by region and pan."""
    voices: dict[tuple[KeyedSample, float], list[Voice]] = {}
    groups: dict[tuple[int, int], tuple[float, list[Voice]]] = {}  # the sounding notes of each class, and since when
    columns = (score.onset_s, score.offset_s, score.pitch, score.velocity, score.program)
    for onset, offset, key, velocity, program in zip(*(c.tolist() for c in columns), strict=True):
        spread = SPREAD * (key - 64) / 88 if program in PIANOS else 0.0
        for region in font.regions(program % DRUMS, program == DRUMS, key, velocity):
            voice = [onset, min(offset, onset + LONGEST_S), velocity]
            voices.setdefault((region, min(max(region.pan + spread, -0.5), 0.5)), []).append(voice)
            if region.choke:
                since, sounding = groups.get((program, region.choke), (onset, []))
                if since < onset:
                    for other in sounding:
                        other[1] = min(other[1], onset)
                    sounding = []
                groups[program, region.choke] = onset, [*sounding, voice]
    return voices


def _wave(region: KeyedSample, length: int) -> Audio:
    """(at most `length`,) the sound of the key while down, as loud as velocity 127."""
    fade = region.loudness
    if fade.drop >= SILENT:
        length = min(length, int(RATE * (fade.delay_s + fade.attack_s + fade.hold_s + SILENT * fade.decay_s)))
    step = region.rate_hz / RATE
    samples = region.samples
    if region.loop is not None:
        first, last = region.loop
        n_missing = max(int(np.ceil(length * step)) + 2 - last, 0)
        samples = np.concatenate([samples[:last], np.resize(samples[first:last], n_missing)])
    y = np.pad(samples.astype(np.float32) / 2**15, (1, 2))
    at = np.arange(min(length, int(len(samples) / step))) * step
    i = at.astype(np.int64)
    f = (at - i).astype(np.float32)
    a, b, c, d = (y[i + k] for k in range(4))
    # Catmull-Rom spline: straight lines between samples would hiss
    sound = b + 0.5 * f * (c - a + f * (2 * a - 5 * b + 4 * c - d + f * (3 * (b - c) + d - a)))
    time_s = np.arange(len(sound), dtype=np.float32) / RATE
    rise, fall = _envelope(fade, time_s)
    return _low_pass(region, sound) * rise * 10 ** (-FULL_DB / 20 * fall)


def _envelope(envelope: Envelope, time_s: Audio) -> tuple[Audio, Audio]:
    """Its rise from 0 to 1, and its fall from 0 to its drop."""
    time_s = time_s - envelope.delay_s
    rise = (time_s / envelope.attack_s).clip(0, 1)
    fall = ((time_s - envelope.attack_s - envelope.hold_s) / envelope.decay_s).clip(0, envelope.drop)
    return rise, fall


def _low_pass(region: KeyedSample, sound: Audio) -> Audio:
    """The filter of 12 dB an octave that the second envelope moves, on spectra of overlapping frames."""
    n_frames = -(-len(sound) // HOP) + 1
    time_s = np.arange(n_frames, dtype=np.float32) * HOP / RATE
    rise, fall = _envelope(region.sweep, time_s)
    cutoff_hz = LOWEST_HZ * 2 ** ((region.cutoff_cents + region.sweep_cents * (rise - fall)) / 1200)  # (frames,)
    if cutoff_hz.min(initial=np.inf) > 0.45 * RATE:
        return sound
    padded = np.zeros((n_frames + 1) * HOP, np.float32)
    padded[HOP : HOP + len(sound)] = sound
    window = np.sin(np.pi * (np.arange(2 * HOP) + 0.5) / (2 * HOP)).astype(np.float32) ** 2
    frames = sliding_window_view(padded, 2 * HOP)[::HOP] * window  # (frames, 2 HOP)
    x = np.fft.rfftfreq(4 * HOP, 1 / RATE).astype(np.float32) / cutoff_hz[:, None]
    quality = 10 ** (region.resonance_db / 20) / np.sqrt(2, dtype=np.float32)
    spectra = np.fft.rfft(frames, 4 * HOP) / (1 - x**2 + 1j * x / quality)
    blocks = np.fft.irfft(spectra, 4 * HOP).astype(np.float32).reshape(n_frames, 4, HOP)
    total = np.zeros((n_frames + 3, HOP), np.float32)
    for k in range(4):
        total[k : k + n_frames] += blocks[:, k]
    return total.ravel()[HOP : HOP + len(sound)]


PEAK = 0.9  # of full scale: loud, and never clipped
MOST_S = 3600.0  # an hour of sound takes 2 GB of memory
FORMATS = (".wav", ".flac")
GENERAL_MIDI = Path(pretty_midi.__file__).with_name("TimGM6mb.sf2")  # Tim Brechbill's, which pretty_midi carries


def write_wav(score: Score, path: Path, soundfont: Path | None = None) -> None:
    """Writes 16-bit stereo, peak-normalised, as WAV or FLAC by the suffix, whole or not at all.

    `soundfont`: another .sf2 file than the General MIDI one. Raises ConfigError for the font or suffix, UserError for
    more than an hour or a full disk.
    """
    check_suffix("path", path, FORMATS)
    if score.duration_s > MOST_S:
        what = f"{path}: {score.duration_s / 60:.0f} minutes of sound, at most {MOST_S / 60:g} can be written"
        raise UserError(what, "give shorter music, or leave the sound out")
    audio = render(score, open_font(soundfont))
    peak = max(audio.max(initial=0.0), -audio.min(initial=0.0))
    audio *= PEAK * 32767 / float(peak) if peak > 0 else 0.0
    with replacing(path) as partial:
        try:
            with soundfile.SoundFile(partial, "w", RATE, 2, "PCM_16") as sound:
                sound.write(np.rint(audio, out=audio).astype(np.int16, order="C"))
        except (soundfile.LibsndfileError, AssertionError):  # soundfile's error for a full disk
            raise UserError(f"{path}: cannot write the sound; is the disk full?") from None


@cache
def open_font(path: Path | None = None) -> SoundFont:
    """Reads a font once; by default the General MIDI one. Raises ConfigError."""
    return SoundFont(path or GENERAL_MIDI)
