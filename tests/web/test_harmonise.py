"""Voices below a melody at the page, asked without a page."""

import re
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
from stubs import whole
from untrained import write_harmoniser
from wishes import HYMN, more, now, quiet, voices

from musictx.config.web import Limits
from musictx.errors import UserError
from musictx.generate.accompanying import accompany_melody
from musictx.generate.open_bundle import open_bundle
from musictx.model.onnx.player import open_source_player
from musictx.music.grid import REST
from musictx.music.score import Score
from musictx.music.write import write_midi
from musictx.web import draw
from musictx.web.session import Session
from musictx.web.studio import Studio


@pytest.fixture(scope="module")
def models(world, tmp_path_factory):
    bundle = write_harmoniser(tmp_path_factory.mktemp("voices") / "v.safetensors", hide_source=0.1)
    return {"hymns": open_bundle(world.hymn_bundle)}, open_bundle(bundle, continues=False)


def studio_of(models, folder, limits=Limits()):  # noqa: B008 - it is immutable
    return Studio(models[0], folder, limits, models[1])


def test_a_melody_that_is_dropped_is_kept_and_gets_voices(models, tmp_path, tmp_path_factory):
    studio = studio_of(models, tmp_path_factory.mktemp("made"))
    low = Score([0.0, 0.5, 1.0], [0.5, 1.0, 2.0], [48, 50, 52], [90] * 3, 0.5)  # an octave below sopranos
    write_midi(low, tmp_path / "low.mid")
    begun = studio.upload(Session(), (tmp_path / "low.mid").read_bytes(), "low.mid")
    said = []
    after, what = studio.harmonise(begun, voices(), lambda *of: said.append(of))
    assert re.match(r"2 accompaniments of low, in [\d.]+ s. .* 12 semitones higher", what)
    assert said == sorted(said)
    assert said[-1] == (2.0, 2.0)
    for take in after.now.takes:
        assert take.melody.pitch.tolist() == [48, 50, 52]
        assert take.transposed == 12
    assert after.now.takes[0].voices != after.now.takes[1].voices


def test_of_four_voices_the_highest_are_the_melody_and_a_note_below_looks_at_it(models, tmp_path):
    studio = studio_of(models, tmp_path)
    after, what = studio.harmonise(studio.example(Session(), HYMN), voices(), quiet)
    assert re.search(r"its highest \d+ notes", what)
    assert studio.reader(after)[0].layers == 2
    traced = studio.reader(after)[0].trace(after.now.score)
    voice = traced.struck_by % 4
    below, melody = (int(np.flatnonzero(which)[3]) for which in (voice == 3, voice == 0))
    assert studio.arcs(after, below, None).startswith('<img alt="attention arcs" src="data:image/svg')
    with pytest.raises(UserError, match="^this note"):
        studio.arcs(after, melody, None)
    further = studio.begin_from_take(after)
    assert further.now.music.score == after.now.takes[0].score
    assert studio.reader(further)[0].layers == 1  # of the model that continues it


def test_a_bass_gets_voices_above_that_look_at_it(models, tmp_path):
    below = open_bundle(write_harmoniser(tmp_path / "any.safetensors"), continues=False)
    studio = studio_of((models[0], below), tmp_path)
    late = [[k + 1.0, k + 2.0, p, 90] for k, p in enumerate((31, 36, 38, 31)) if k != 2]  # an octave below; a rest
    played = studio.phrase(Session(), late)
    after, _ = studio.harmonise(played, voices(voices="B", variations=1), quiet)
    take = after.now.takes[0]
    assert take.melody == played.now.music.score
    assert (take.melody_voices, take.transposed) == ("B", 12)
    reader = studio.reader(after)[0]
    traced = reader.trace(take.score)
    bass = traced.struck_by % 4 == 3
    assert traced.score.pitch[bass].tolist() == [31, 36, 31]
    assert traced.score.onset_s[bass].tolist() == pytest.approx(take.melody.onset_s.tolist(), abs=0.1)
    heard = reader.tokenizer.decode_grid(reader.ids(take.score, 12))
    assert set(heard[:, 3].tolist()) == {REST, 43, 48}
    assert sorted(set(zip(traced.score.onset_s.round(2), traced.score.pitch, strict=True))) == sorted(
        set(zip(take.score.onset_s.round(2), take.score.pitch, strict=True))
    )
    assert studio.arcs(after, int(np.flatnonzero(~bass)[2]), None).startswith("<img")
    with pytest.raises(UserError, match="^this note"):
        studio.arcs(after, int(np.flatnonzero(bass)[1]), None)


def test_another_player_writes_the_voices_and_the_model_shows_where_it_looked(models, world, tmp_path):
    path = write_harmoniser(tmp_path / "v.safetensors", hide_source=0.1)
    player = Mock(wraps=open_source_player(path))
    studio = Studio(models[0], tmp_path, harmoniser=models[1], source_player=player)
    after, _ = studio.harmonise(studio.example(Session(), HYMN), voices(), quiet)
    player.begin.assert_called_once()
    inner = int(np.flatnonzero(studio.reader(after)[0].trace(now(after).score).struck_by % 4 == 1)[2])
    assert studio.arcs(after, inner, None).startswith("<img")


def test_the_slider_guides_and_at_0_does_not(models, tmp_path, monkeypatch):
    asked = Mock(side_effect=accompany_melody)
    monkeypatch.setattr(draw, "accompany_melody", asked)
    studio = studio_of(models, tmp_path)
    played = studio.phrase(Session(), [[0, 0.5, 67, 90], [0.5, 1.0, 69, 90]])
    after, what = studio.harmonise(played, voices(temperature=0.5, seed_guidance=1.5, variations=1), quiet)
    assert what.startswith("1 accompaniment of played, in ")
    assert len(after.now.takes) == 1
    studio.harmonise(played, voices(seed_guidance=0.0), quiet)
    studio.harmonise(played, voices(), quiet)
    how = [call.args[3].sampling for call in asked.call_args_list]
    assert [(each.temperature, each.strength) for each in how] == [(0.5, 1.5), (1.0, 0.0), (1.0, None)]
    plain = models[1]._replace(header=replace(models[1].header, notes={}))
    with pytest.raises(UserError, match="^seed_guidance=1.5: "):
        studio_of((models[0], plain), tmp_path).harmonise(played, voices(seed_guidance=1.5), quiet)
    with pytest.raises(UserError, match="^seed_guidance=-1.0: give 0 to 10"):
        studio.harmonise(played, voices(seed_guidance=-1.0), quiet)


def test_what_is_heard_gets_voices_and_a_melody_gets_them_once_more(models, tmp_path):
    studio = studio_of(models, tmp_path)
    drawn, _ = whole(studio.go_on(studio.example(Session(), HYMN), more(lowest=60, highest=79), quiet))
    after, _ = studio.harmonise(drawn.choose(1), voices(), quiet)
    assert after.now.music.score == drawn.now.takes[1].score
    again, _ = studio.harmonise(after.choose(1), voices(), quiet)
    assert again.now.music is after.now.music
    further, _ = whole(studio.go_on(again.choose(1), more(lowest=60, highest=79), quiet))
    assert further.now.music.score == again.now.takes[1].score


def test_what_cannot_be_harmonised_is_said(models, tmp_path):
    hurried = studio_of(models, tmp_path, Limits(seconds=0.001))
    with pytest.raises(UserError, match="^0.001 s went by"):
        hurried.harmonise(hurried.example(Session(), HYMN), voices(), quiet)
    alone = Studio(models[0], tmp_path)
    with pytest.raises(UserError, match="no model here"):
        alone.harmonise(alone.example(Session(), HYMN), voices(), quiet)
    with pytest.raises(UserError, match="^variations=99: "):
        hurried.harmonise(hurried.example(Session(), HYMN), voices(variations=99), quiet)
