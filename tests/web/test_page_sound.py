"""What a person hears on the page is their whole file with the new notes."""

import mido
import numpy as np
import pytest
from stubs import whole
from waltz import BARS, QUARTER, waltz
from wishes import more, now, quiet, region

from musictx.config.web import LIMITS, Limits
from musictx.generate.open_bundle import open_bundle
from musictx.music.score import DRUMS
from musictx.web import stage
from musictx.web.session import Session, Step
from musictx.web.studio import Studio


@pytest.fixture(params=["one tempo", "slower"])
def file(request, tmp_path):
    path = waltz(tmp_path / "waltz.mid")
    if request.param == "slower":
        midi = mido.MidiFile(path)
        midi.tracks[0].append(mido.MetaMessage("set_tempo", tempo=700_000, time=QUARTER * 9))
        midi.save(path)
    return path


def sound_of(step: Step, monkeypatch, folder, limits=LIMITS):
    written = []
    monkeypatch.setattr(stage, "write_wav", lambda score, path: written.append(score))
    stage.step_html(step, folder, limits)
    (score,) = written
    return score


def pairs(score):
    return list(zip(score.onset_s.tolist(), score.pitch.tolist(), strict=True))


def is_in(few, many):
    """Whether each note of `few` begins in `many` with its pitch, within a step of 10 ms."""
    return all(any(abs(at_s - other_s) < 8e-3 and pitch == key for other_s, key in many) for at_s, pitch in few)


@pytest.mark.parametrize("name", ["world", "filling"])
def test_drums_sound_with_the_music_of_a_model_where_the_roll_has_it(name, world, filling, file, tmp_path, monkeypatch):
    studio = Studio({"able": open_bundle(world.bundle if name == "world" else filling)}, tmp_path)
    begun = studio.upload(Session(), file.read_bytes(), file.name)
    after, _ = whole(studio.go_on(begun, more(from_s=5.0), quiet))
    filled, _ = whole(studio.fill(begun, region(4.0, 6.0), quiet)) if name == "filling" else (after, "")
    for step in map(now, (begun, after, filled)):
        heard = sound_of(step, monkeypatch, tmp_path)
        drums = heard.program == DRUMS
        assert is_in(pairs(step.score), pairs(heard.select(~drums)))
        assert drums.sum() > 2
        assert np.isin(heard.pitch[drums], 36).all()
    assert (sound_of(now(begun), monkeypatch, tmp_path).program == DRUMS).sum() == BARS


def test_music_with_too_many_drums_sounds_without_them(world, tmp_path, monkeypatch):
    path = waltz(tmp_path / "waltz.mid")
    studio = Studio({"able": open_bundle(world.bundle)}, tmp_path)
    step = now(studio.upload(Session(), path.read_bytes(), path.name))
    most = Limits(notes=len(step.score) + BARS - 1)
    assert sound_of(step, monkeypatch, tmp_path, most) == step.score
