"""What may distinguish one sound from another on a listening sheet, and must not."""

import io

import numpy as np
import pytest
import soundfile

from musictx.music.score import Score
from musictx.viz.sheet import excerpt, from_first_note, loudness, make_trials, match_loudness, mp3
from musictx.viz.sound import RATE


def sine(hz, seconds=1.0, peak=1.0):
    return (peak * np.sin(2 * np.pi * hz * np.arange(round(seconds * RATE)) / RATE)).astype(np.float32)


def test_loudness_is_that_of_the_standard():
    """BS.1770-4, annex 1: a sine of 997 Hz at full scale in one channel reads -3.01; the others are the published
    response of its filters."""
    assert loudness(sine(997)) == pytest.approx(-3.01, abs=0.01)
    assert loudness(sine(997, peak=0.1)) == pytest.approx(-23.01, abs=0.01)
    assert loudness(sine(10_000)) == pytest.approx(-3.01 + 3.34, abs=0.05)  # the shelf
    assert loudness(sine(38)) < -9  # the high-pass
    assert loudness(np.zeros(RATE, np.float32)) == -np.inf


def test_a_pause_makes_no_music_less_loud():
    tone = sine(440, 10)
    assert loudness(np.concatenate([tone, 0 * tone])) == pytest.approx(loudness(tone), abs=0.1)  # not 3 below


def test_all_are_as_loud_as_the_first_and_none_is_clipped():
    click = np.zeros(RATE, np.float32)
    click[RATE // 2] = 0.001  # high peak, little loudness
    quiet, loud, silent = sine(300, peak=0.01), sine(3000), np.zeros(RATE, np.float32)
    a, b, c = match_loudness([quiet, loud, silent])
    assert [loudness(a), loudness(b)] == pytest.approx([-20, -20], abs=0.01)
    assert not c.any()
    a, b = match_loudness([quiet, click])
    assert np.abs(b).max() == pytest.approx(0.9, abs=1e-3)
    assert loudness(a) == pytest.approx(loudness(b), abs=0.01)


def test_an_excerpt_has_the_asked_length_whatever_sounds_and_ends_in_silence():
    held = Score([0.0, 1.0], [30.0, 1.1], [60, 64], [100, 100])
    for score in (held, Score.empty()):
        assert excerpt(score, 2.5).shape == (110_250,)
    sound = excerpt(held, 2.5)
    assert np.abs(sound[:RATE]).max() > 0.01
    assert np.abs(sound[-100:]).max() < 1e-4
    assert np.abs(sound[-RATE // 2 : -RATE // 4]).max() > np.abs(sound[-RATE // 8 :]).max() * 2


def test_mp3_has_as_many_bytes_for_silence_as_for_noise():
    rng = np.random.default_rng(0)
    sounds = [np.zeros(2 * RATE, np.float32), sine(440, 2, 0.5), rng.normal(0, 0.1, 2 * RATE).astype(np.float32)]
    files = [mp3(sound) for sound in sounds]
    assert {len(file) for file in files} == {24_764}
    heard, rate = soundfile.read(io.BytesIO(files[1]))
    assert (rate, heard.shape) == (44_100, (88_200,))
    spectrum = np.abs(np.fft.rfft(heard))
    assert np.argmax(spectrum) / 2 == 440


def test_a_late_first_note_is_no_sign():
    late = Score([1.5, 2.0], [1.8, 3.0], [60, 62], [80, 80])
    soon = from_first_note(late)
    assert soon.onset_s.tolist() == [0.0, 0.5]
    assert soon.offset_s == pytest.approx([0.3, 1.5])
    assert len(from_first_note(Score.empty())) == 0
    very = from_first_note(Score([10.0], [11.0], [60], [80]))
    assert very.onset_s.tolist() == [7.0]  # a pause that long is music
    seeds = [Score([0.0], [1.0], [55], [80])]
    heard = {"the composer": [late], "model": [soon]}
    (trial,) = make_trials(seeds, 1.0, heard, 2.0, [["model", "the composer"]])
    a, b = (soundfile.read(io.BytesIO(sound))[0] for sound in trial.sounds)
    assert np.allclose(a, b, atol=1e-3)
