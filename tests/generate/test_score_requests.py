"""A score keeps each setting of a request, or refuses it in a line."""

from dataclasses import replace

import pytest
from small_scores import PLAIN, SONG, drawn, in_file
from untrained import write_score_model

import musictx
from musictx.errors import BundleError, ConfigError
from musictx.generate.control import Control
from musictx.generate.primer import Part as Region
from musictx.generate.requests import Accompany, Continue, Fill, Length, Sampling
from musictx.tokenizers.rules import Rules


def test_settings_that_no_score_can_keep_are_one_line(tmp_path):
    path = in_file(SONG, tmp_path)
    for request, says in (
        (Continue(PLAIN, Length(tokens=5)), "tokens=5: a score goes on by whole bars"),
        (Continue(PLAIN, Length(bars=1.5)), "bars=1.5: a score goes on by whole bars"),
        (Continue(PLAIN, part=Region(side="end")), "seed_from=end: a score is heard from its beginning"),
        (Continue(PLAIN, part=Region(start="beat")), "start=beat: new bars begin at a bar line"),
        (Continue(PLAIN, rules=Rules(voice_order=True)), "chorale models"),
        (Continue(PLAIN, rules=Rules(masks=False)), "bars and parts"),
        (Continue(PLAIN, rules=Rules(grid="swing")), "exact places"),
        (Continue(PLAIN, include_seed=False), "written behind the score"),
        (Continue(PLAIN, drums=True), "no drums"),
        (Accompany(Sampling(guard=False, seed_guidance=1)), "new hands have no seed"),
        (Fill(PLAIN, from_s=1.0, to_s=2.0), "whole bars"),
        (Fill(PLAIN, from_bar=1, to_bar=9), "bars from 1 to 2"),
        (Fill(PLAIN, from_bar=1, to_bar=1, only="Flute"), "1 Voice, 2 Piano, 3 Piano"),
        (Accompany(transpose=2), "models of chorales"),
    ):
        with pytest.raises(ConfigError, match=says) as refused:
            drawn(path, request)
        assert "\n" not in str(refused.value)


def test_python_has_the_same(tmp_path):
    model = musictx.load(write_score_model(tmp_path / "score.safetensors"))
    path = in_file(SONG, tmp_path)
    (music,) = model.continue_midi(path, bars=1, humanize=True)
    assert music.bars is not None
    assert music.seed == path
    (music,) = model.fill(path, from_bar=1, to_bar=1)
    assert music.is_new is not None
    (music,) = model.accompany_score(
        in_file(replace(SONG, parts=SONG.parts[:1]), tmp_path), control=Control(chords="C | F")
    )
    assert len(music.notation.parts) == 3
    assert [chord.name for chord in music.chords] == ["C", "F"]
    with pytest.raises(BundleError, match="accompany_score"):
        model.accompany(path)
    with pytest.raises(ConfigError, match="bars and parts"):
        model.continue_midi(None)
