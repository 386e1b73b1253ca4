from unittest.mock import Mock

import numpy as np
import pytest
import soundfile

from musictx.errors import UserError
from musictx.music.score import DRUMS, Score
from musictx.viz import sound
from musictx.viz.sound import write_wav

RATE = 44_100


def heard(path):
    """(samples, 2), of a file that says what it should."""
    info = soundfile.info(path)
    assert (info.channels, info.samplerate, info.subtype) == (2, RATE, "PCM_16")
    return soundfile.read(path)[0]


def pitch_hz(audio, near_hz):
    """The strongest frequency within a semitone of `near_hz`, to a quarter of a hertz."""
    spectrum = np.abs(np.fft.rfft(audio[4410:RATE].sum(1) * np.hanning(RATE - 4410), 4 * RATE))
    hz = np.arange(len(spectrum)) / 4
    inside = (hz > near_hz / 1.06) & (hz < near_hz * 1.06)
    assert spectrum[inside].max() > 0.3 * spectrum.max()  # a harmonic may be stronger, but it is there
    return hz[inside][spectrum[inside].argmax()]


@pytest.mark.parametrize(
    ("program", "pitch", "hz"), [(0, 57, 220.0), (48, 72, 523.25), (73, 81, 880.0)]
)  # piano, strings, flute
def test_a_note_sounds_at_its_pitch(tmp_path, program, pitch, hz):
    write_wav(Score([0.0], [2.0], [pitch], [100], program=[program]), tmp_path / "a.wav")
    audio = heard(tmp_path / "a.wav")
    cents = 1200 * np.log2(pitch_hz(audio, hz) / hz)
    assert abs(cents) < 13  # the font itself is as far off; a semitone is 100
    assert np.abs(audio).max() == pytest.approx(0.9, abs=1e-4)
    assert 2.0 <= len(audio) / RATE <= 5.0  # the strings fade slowly


def test_loudness_follows_velocity(tmp_path):
    write_wav(Score([0.0, 2.0, 4.0], [1.0, 3.0, 5.0], [60] * 3, [127, 64, 32]), tmp_path / "a.wav")
    audio = heard(tmp_path / "a.wav")
    peaks = [np.abs(audio[at * RATE : (at + 1) * RATE]).max() for at in (0, 2, 4)]
    # 40 log10(127 / velocity) dB softer
    np.testing.assert_allclose(np.array(peaks) / peaks[0], [1.0, (64 / 127) ** 2, (32 / 127) ** 2], rtol=0.02)


def test_drums_come_from_their_bank():
    font = Mock(regions=Mock(return_value=[]))
    sound.render(Score([0.0], [0.3], [38], [100], program=[DRUMS]), font)
    font.regions.assert_called_with(0, True, 38, 100)


def test_flac_has_the_same_samples(tmp_path):
    score = Score([0.0, 0.5], [1.0, 1.5], [60, 67], [90, 90])
    write_wav(score, tmp_path / "a.wav")
    write_wav(score, tmp_path / "a.flac")
    wav, flac = heard(tmp_path / "a.wav"), heard(tmp_path / "a.flac")
    np.testing.assert_array_equal(wav, flac)
    assert (tmp_path / "a.flac").stat().st_size < (tmp_path / "a.wav").stat().st_size / 2
    write_wav(Score.empty(), tmp_path / "silence.wav")
    assert heard(tmp_path / "silence.wav").shape == (0, 2)
    with pytest.raises(UserError, match=r"a.mp3:"):
        write_wav(Score.empty(), tmp_path / "a.mp3")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.flac", "a.wav", "silence.wav"]


def test_more_than_an_hour_is_refused(tmp_path):
    with pytest.raises(UserError, match="61 minutes of sound, at most 60 "):
        write_wav(Score([0.0], [3660.0], [60], [90]), tmp_path / "a.wav")


def test_a_key_held_for_hours_takes_no_memory(monkeypatch):
    monkeypatch.setattr(sound, "LONGEST_S", 2.0)
    organ = Score([0.0], [3600.0], [60], [90], program=[19])
    assert len(sound.render(organ, sound.open_font())) < 20 * RATE


def test_a_disk_that_is_full_is_a_line(tmp_path):
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (9999, before[1]))
    try:
        with pytest.raises(UserError, match=r"a.wav: .*disk full"):
            write_wav(Score([0.0], [2.0], [60], [90]), tmp_path / "a.wav")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []
