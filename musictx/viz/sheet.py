"""A blind listening sheet: one HTML page with its sound inside, without a network, its key closed.

Its sounds differ only in their music: all have the same length, loudness and number of bytes.
"""

import io
import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from html import escape
from pathlib import Path
from string import Template, ascii_uppercase
from typing import NamedTuple

import numpy as np
import soundfile
from numpy.typing import NDArray

from musictx.errors import counted
from musictx.music.score import Score
from musictx.viz.sound import PEAK, RATE, Audio, open_font, render
from musictx.waiting import estimated

RATINGS = {1: "1, badly", 2: "2", 3: "3", 4: "4", 5: "5, very well"}
MOST = len(ascii_uppercase)  # continuations of one seed


class Trial(NamedTuple):
    """One seed and its continuations in the order of the page, all as MP3, and who made each."""

    seed: bytes
    sounds: list[bytes]
    sources: list[str]


def listening_sheet(trials: Sequence[Trial], composer: str, about: str, credit: str) -> str:
    """The page. `composer` is the source to find; the page shows `about` with the key, and `credit` always."""
    folder = Path(__file__).parent
    parts = {suffix: folder.joinpath(f"sheet.{suffix}").read_text(encoding="utf-8") for suffix in ("html", "css", "js")}
    sources = [trial.sources for trial in trials]
    key = json.dumps({"composer": composer, "sources": sources, "about": about}, ensure_ascii=False).encode()
    digest = sha256(key)
    for trial in trials:
        digest.update(b"".join([trial.seed, *trial.sounds]))
    return Template(parts["html"]).substitute(
        style=parts["css"],
        script=parts["js"],
        sheet=digest.hexdigest()[:12],
        letters=f"A to {ascii_uppercase[len(sources[0]) - 1]}",
        trials="\n".join(_trial(n, trial, len(trials)) for n, trial in enumerate(trials, 1)),
        credit=escape(credit),
        key=b64encode(key).decode(),
    )


def _trial(n: int, trial: Trial, of: int) -> str:
    letters = ascii_uppercase[: len(trial.sounds)]
    rows = [
        f'<fieldset class="row"><legend>{letter}</legend>{_player(f"Piece {n}, continuation {letter}", sound)}\n'
        f"{_choices(f'rating-{n}-{letter}', f'How well does {letter} continue?', RATINGS)}</fieldset>"
        for letter, sound in zip(letters, trial.sounds, strict=True)
    ]
    return (
        f'<section aria-labelledby="piece-{n}"><h2 id="piece-{n}">Piece {n} of {of}</h2>\n'
        f'<div class="row"><p>First the beginning</p>{_player(f"Piece {n}, the beginning", trial.seed)}</div>\n'
        + "\n".join(rows)
        + f'\n<div class="row">{_choices(f"choice-{n}", "Which one is the composer’s?", {x: x for x in letters})}</div>'
        "</section>"
    )


def _player(label: str, sound: bytes) -> str:
    data = b64encode(sound).decode()
    return f'<audio controls aria-label="{label}" src="data:audio/mpeg;base64,{data}"></audio>'


def _choices(name: str, question: str, choices: dict[int, str] | dict[str, str]) -> str:
    """Radio buttons."""
    labels = (
        f'<label><input type="radio" name="{name}" value="{value}">{text}</label>' for value, text in choices.items()
    )
    group = f'<div class="choices" role="radiogroup" aria-labelledby="ask-{name}">{"".join(labels)}</div>'
    return f'<p id="ask-{name}">{question}</p>{group}'


FADE_S = 1.0
LEVEL = -20.0  # LUFS: loud enough for a laptop, and piano music keeps below PEAK
COMPRESSION = 0.75  # between 320 and 32 kbit/s: 96
BLOCK_S, HOP_S = 0.4, 0.1  # of loudness
# ITU-R BS.1770-4, tables 1 and 2: numerators and denominators at 48 kHz of the shelf of a head and of the high-pass
FILTERS_HZ = 48_000
SHELF = (1.53512485958697, -2.69169618940638, 1.19839281085285), (1.0, -1.69065929318241, 0.73248077421585)
HIGH_PASS = (1.0, -2.0, 1.0), (1.0, -1.99004745483398, 0.99007225036621)


def excerpt(score: Score, seconds: float, soundfont: Path | None = None) -> Audio:
    """(samples,) mono, exactly so long: it fades out, or ends in silence. Raises ConfigError for the font."""
    sound = np.zeros(round(seconds * RATE), np.float32)
    music = render(score.clip(0.0, seconds), open_font(soundfont)).mean(axis=1)[: len(sound)]
    sound[: len(music)] = music
    n_fade = round(min(FADE_S, seconds / 4) * RATE)
    sound[len(sound) - n_fade :] *= np.cos(np.linspace(0, np.pi / 2, n_fade, dtype=np.float32)) ** 2
    return sound


def loudness(sound: Audio) -> float:
    """LUFS of a mono sound (samples,) without pauses; minus infinity for silence. ITU-R BS.1770-4, annex 1."""
    n = 1 << (len(sound) + RATE // 10).bit_length()  # with room for the filters' tails
    z = np.exp(-2j * np.pi * np.fft.rfftfreq(n, 1 / RATE) / FILTERS_HZ)
    weights = np.ones_like(z)
    for numerator, denominator in (SHELF, HIGH_PASS):
        weights *= np.polyval(numerator[::-1], z) / np.polyval(denominator[::-1], z)
    signal = np.fft.irfft(np.fft.rfft(sound, n) * weights, n)[: len(sound)]
    energy = np.concatenate([[0.0], np.cumsum(signal**2)])
    block = min(round(BLOCK_S * RATE), len(sound))
    starts = np.arange(0, len(sound) - block + 1, round(HOP_S * RATE))
    power = (energy[starts + block] - energy[starts]) / block  # (blocks,)
    power = power[power > 10 ** ((-70.0 + 0.691) / 10)]
    power = power[power > 0.1 * power.mean()] if len(power) else power
    return float(-0.691 + 10 * np.log10(power.mean())) if len(power) else -np.inf


def match_loudness(sounds: Sequence[Audio]) -> list[Audio]:
    """All equally loud: at LEVEL, or as far below it as the highest peak among them requires."""
    peaks = [float(np.abs(sound).max(initial=0.0)) for sound in sounds]
    full_scale = [sound / peak if peak > 0 else sound for sound, peak in zip(sounds, peaks, strict=True)]
    levels = [loudness(sound) for sound in full_scale]  # with the peak at 0 dB
    level = min([LEVEL, *(20 * np.log10(PEAK) + loud for loud in levels if np.isfinite(loud))])
    return [
        x * 10 ** ((level - loud) / 20) if np.isfinite(loud) else x for x, loud in zip(full_scale, levels, strict=True)
    ]


def mp3(sound: Audio) -> bytes:
    """A mono sound (samples,) at a constant bit rate: sounds of one length have as many bytes."""
    # every browser plays MP3
    file = io.BytesIO()
    soundfile.write(
        file, sound, RATE, "MPEG_LAYER_III", format="MP3", compression_level=COMPRESSION, bitrate_mode="CONSTANT"
    )
    return file.getvalue()


LATE_S = 3.0  # in MAESTRO's validation split the first note after a ten-second seed is never later


def make_trials(
    seeds: Sequence[Score],
    seed_s: float,
    continuations: Mapping[str, Sequence[Score]],
    length_s: float,
    order: Sequence[list[str]],
    soundfont: Path | None = None,
) -> list[Trial]:
    """The sound of each seed and of its continuations by each source, in the `order` of the sources."""
    trials = []
    for i, sources in estimated(list(enumerate(order)), f"sound of {counted(len(seeds), 'piece')}"):
        sounds = [excerpt(seeds[i], seed_s, soundfont)]
        sounds += [excerpt(from_first_note(continuations[name][i]), length_s, soundfont) for name in sources]
        first, *others = map(mp3, match_loudness(sounds))
        trials.append(Trial(first, others, sources))
    return trials


def orders(sources: list[str], pieces: int, random_seed: int) -> list[list[str]]:
    """A random order of the sources for each piece, with each letter about equally often for each source."""
    # people prefer the first or the last of several, whoever made it
    chance, n = np.random.default_rng(random_seed), len(sources)
    rows: list[NDArray[np.int64]] = []
    while len(rows) < pieces:
        square = chance.permutation(n)
        rows += [np.roll(square, k) for k in range(n)]
    return [[sources[k] for k in rows[i]] for i in chance.permutation(pieces)]


def from_first_note(score: Score) -> Score:
    """The music without silence at its beginning."""
    # after a cut through long notes a piece's next note comes late; models hear the notes end and continue at once
    return score.clip(min(float(score.onset_s.min(initial=LATE_S)), LATE_S), np.inf)
