"""Strangers' files: read apart, shortened, refused in one line."""

import re

import mido
import numpy as np
import pytest
from player import play
from strategies import forget_pedal, slowing

from musictx.config.web import Limits
from musictx.errors import UserError
from musictx.music.read import read_tracks
from musictx.music.score import Meter, Score
from musictx.music.write import write_midi
from musictx.tokenizers import build_tokenizer
from musictx.web.fit import fit, shorten
from musictx.web.session import PageMusic, Step
from musictx.web.uploads import read_upload

TUNE = Score([0, 0.5, 1], [0.5, 1, 2], [60, 64, 67], [80, 80, 80])


def read(path):
    return read_upload(path.read_bytes(), path.name, Limits())


def test_a_file_is_read_with_its_bars(tmp_path):
    write_midi(TUNE, tmp_path / "my tune.mid", (3, 4))
    music = read(tmp_path / "my tune.mid")
    assert (music.name, len(music.score), music.meter.signature) == ("my tune", 3, (3, 4))


def drums(path):
    write_midi(Score([0, 1], [0.5, 1.5], [36, 38], [80, 80], program=np.array(128)), path)


def silence(path):
    midi = mido.MidiFile()
    midi.add_track("nothing")
    midi.save(path)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: path.write_bytes(b"\x89PNG and so on"), "not a MIDI file: it begins with"),
        (lambda path: path.write_bytes(b"MThd" + bytes(6000)), "there is no track in it"),
        (drums, "only drums"),
        (silence, "no notes"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path, make, reason):
    make(tmp_path / "a.mid")
    with pytest.raises(UserError, match=reason) as error:
        read(tmp_path / "a.mid")
    assert str(error.value).startswith("a.mid: ")
    assert "\n" not in str(error.value)


def test_a_band_is_heard_as_one_piano(tmp_path):
    programs = np.array([40, 68, 128])
    write_midi(Score([0, 0.5, 1], [0.5, 1, 2], [60, 64, 36], [80] * 3, program=programs), tmp_path / "a.mid")
    music = read(tmp_path / "a.mid")
    heard = fit(music, build_tokenizer("performance"))
    assert "2 instruments" in heard.note
    assert "drums" in heard.note
    assert heard.score.program.tolist() == [0, 0]
    voices = fit(music, build_tokenizer("chorale"))
    assert "drums" in voices.note
    assert "instruments" not in voices.note


def test_a_pedal_may_be_forgotten_at_one_tempo_and_not_at_another(tmp_path):
    midi = mido.MidiFile(forget_pedal(slowing(TUNE, tmp_path / "a.mid", [(480, 400)])))
    midi.save(tmp_path / "a.mid")
    music = read(tmp_path / "a.mid")
    assert "pedal" not in fit(music, build_tokenizer("performance")).note
    assert re.search(r"\. [^.]*pedal[^.]* 60 s [^.]*\.", fit(music, build_tokenizer("chorale")).note)  # one sentence


def test_long_music_is_shortened_where_it_becomes_too_much():
    long = Score(np.arange(100.0), np.arange(100.0) + 10, np.full(100, 60), np.full(100, 80))

    def beginning(score: Score, limits: Limits) -> Score:
        return shorten(PageMusic("long", score, Meter()), limits).score

    assert len(beginning(long, Limits())) == 100
    assert beginning(long, Limits(music_s=20)).duration_s == 20
    assert len(beginning(long, Limits(notes=7))) == 7
    assert len(beginning(long, Limits(sounding_s=55))) == 5
    held = Score([0.0, 2980.0], [2980.0, 2980.2], [60, 62], [80, 80])
    assert beginning(held, Limits()).offset_s.tolist() == [180.0]
    one = shorten(PageMusic("one", held.select(held.pitch == 60), Meter()), Limits())
    assert one.score.duration_s == 180
    assert one.note.endswith(" first 180 s.")


def test_music_is_fitted_to_the_model():
    chorale = build_tokenizer("chorale")
    wide = Score([0, 0, 1], [1, 1, 2], [5, 60, 62], [80, 80, 80])
    fitted = fit(PageMusic("wide", wide, Meter()), chorale)
    assert len(fitted.score) == 2
    assert fitted.note.startswith("Notes of pitch 5 (1 of 3) lie outside ")
    with pytest.raises(UserError, match="range, 21 to 108"):
        fit(PageMusic("low", wide.select(wide.pitch == 5), Meter()), chorale)
    late = Score([500], [501], [60], [80])
    with pytest.raises(UserError, match="first 180 s"):
        shorten(PageMusic("late", late, Meter()), Limits())


def test_music_that_is_too_long_ends_in_its_file_where_it_ends_on_the_page(tmp_path):
    midi = mido.MidiFile(ticks_per_beat=480)
    for channel, low in ((0, 60), (1, 40), (9, 36)):
        track = mido.MidiTrack([mido.Message("control_change", channel=channel, control=64, value=127)])
        for k in range(60):
            track.append(mido.Message("note_on", channel=channel, note=low + k % 7, velocity=80))
            track.append(mido.Message("note_off", channel=channel, note=low + k % 7, time=430))
            track.append(mido.MetaMessage("set_tempo", tempo=400_000 + 1000 * k, time=50))
        midi.tracks.append(track)
    midi.save(tmp_path / "long.mid")
    whole = read(tmp_path / "long.mid")
    for limits in (Limits(music_s=9.3), Limits(notes=31), Limits(sounding_s=12)):
        music = shorten(whole, limits)
        assert "downloads the first " in music.note
        for name in ("performance", "chorale"):
            heard = fit(music, build_tokenizer(name))
            data = Step(heard).midi
            back = read_tracks(data, "", one_tempo=name == "chorale")
            shown = music.reading(in_beats=name == "chorale").score
            assert back.merge().pitch.tolist() == shown.pitch.tolist()
            assert np.abs(back.merge().offset_s - shown.offset_s).max() < 2e-3
            assert back.merge(True).duration_s < shown.duration_s + 2e-3  # its drums end too
            assert max(sound.off for sound in play(data)) <= back.tempo_map.ticks(np.array([shown.duration_s]))[0] + 1
    assert shorten(whole, Limits()).project is whole.project
