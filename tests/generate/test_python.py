"""What a person's script hands over, and what it gets: numbers of numpy, scores with drums, rules, equal results."""

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import musictx
from musictx.errors import ConfigError, UserError
from musictx.generate.requests import Accompany, Continue, Length, Sampling
from musictx.music.score import DRUMS, Meter

STRICT = musictx.Rules(lowest=40, voice_order=True, voice_ranges=True, no_parallels=True)
TUNE = musictx.Score(np.arange(8) * 0.5, np.arange(8) * 0.5 + 0.5, [60, 62, 64, 65, 67, 65, 64, 62], [80] * 8, 0.5)
BEATEN = musictx.Score([0, 0, 1], [1, 0.1, 2], [60, 36, 64], [80] * 3, 0.5, [0, DRUMS, 0])


@pytest.fixture(scope="module")
def piano(world):
    return musictx.load(world.bundle)


@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.int64])
def test_whole_numbers_of_numpy_are_pythons(kind):
    request = Continue(Sampling(top_k=kind(1)), Length(tokens=kind(60)), window=kind(64), variations=kind(2))
    found = request.sampling.top_k, request.length.tokens, request.window, request.variations
    assert found == (1, 60, 64, 2)
    assert {type(each) for each in found} == {int}
    assert type(musictx.Rules(max_polyphony=kind(3)).max_polyphony) is int


def test_other_numbers_of_numpy_and_paths_are_pythons():
    sampling = Sampling(temperature=np.float16(0.5), guard=np.bool_(True), top_p=np.array(0.5))  # type: ignore[arg-type]
    assert [type(each) for each in (sampling.temperature, sampling.guard, sampling.top_p)] == [float, bool, float]
    assert musictx.Control(chords=Path("c.mid")).chords == "c.mid"  # type: ignore[arg-type]


def test_one_rule_for_a_choir_leaves_the_others():
    model = musictx.load("harmoniser")
    one, none, all_of_them = (
        model.accompany(TUNE, rules=rules, variations=2) for rules in (musictx.Rules(lowest=40), None, STRICT)
    )
    assert [music.new_notes for music in one] == [music.new_notes for music in all_of_them]
    assert all((music.new_notes.pitch >= 40).all() for music in one)
    resolved = Accompany(rules=musictx.Rules(lowest=40)).rules.beside_melody()
    assert resolved == replace(STRICT, max_still_s=None)
    assert none[0].given_notes == TUNE
    assert len(none[0].score) == len(TUNE) + len(none[0].new_notes)


def test_equal_results_are_equal(piano, world):
    a, b, c = (piano.continue_midi(world.seed, tokens=20, random_seed=seed)[0] for seed in (1, 1, 2))
    assert a == b
    assert a != c
    assert b in [c, a]
    assert pickle.loads(pickle.dumps(a)) == a
    assert a.new_notes == b.new_notes
    assert len(a.given_notes) + len(a.new_notes) == len(a.score)


def test_bars_of_a_file_and_equal_ones_compare():
    lines = [Meter(lines_s=np.arange(n, dtype=np.float64)) for n in (4, 4, 5)]
    assert lines[0] == lines[1] != lines[2]
    assert lines[0] != Meter() != lines[0]
    assert Meter() == Meter() != 3


def test_drums_of_a_score_are_heard_as_those_of_a_file(piano, tmp_path):
    musictx.write_midi(BEATEN, str(tmp_path / "a.mid"))
    for drums in False, True:
        of_score, of_file = (
            piano.continue_midi(seed, tokens=20, drums=drums)[0] for seed in (BEATEN, tmp_path / "a.mid")
        )
        assert of_score.score == of_file.score
        assert [bool(each.remarks) for each in (of_score, of_file)] == [True, True]
    with pytest.raises(UserError, match="the seed has only drums: drums=true takes them"):
        piano.continue_midi(BEATEN.select(BEATEN.program == DRUMS), tokens=20)


def test_only_a_file_has_parts(piano):
    for seed in BEATEN, None:
        with pytest.raises(ConfigError, match="^part=Violin: only a file has parts"):
            piano.continue_midi(seed, tokens=20, part="Violin")
    with pytest.raises(ConfigError, match="^part=Violin: only a file has parts"):
        musictx.load("chorale").fill(TUNE, from_s=1, to_s=2, part="Violin")
    with pytest.raises(ConfigError, match="elise.mid: part=9: give the name or number of one"):
        piano.continue_midi("elise", tokens=20, part=9)
    with pytest.raises(ConfigError, match="^part=true: give a word"):
        piano.continue_midi("elise", tokens=20, part=True)


def test_two_seeds_of_one_name_are_refused(piano, tmp_path):
    for folder in "a", "b":
        musictx.write_midi(TUNE, tmp_path / folder / "x.mid")
    with pytest.raises(UserError, match="x-1 would be the continuation of two seeds"):
        piano.continue_midi(tmp_path, tokens=20)


def test_the_melody_of_a_score_has_no_drums_and_a_part_may_be_a_number(tmp_path, piano):
    (music,) = musictx.load("harmoniser").accompany(musictx.Score.merge([TUNE, BEATEN.select(BEATEN.program == DRUMS)]))
    assert music.given_notes == TUNE
    assert music.remarks[0] == "the melody: its drums are left out"
    musictx.write_midi(TUNE, tmp_path / "a.mid")
    (music,) = piano.continue_midi(tmp_path / "a.mid", tokens=20, part=np.int64(1))
    assert len(music.new_notes)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"control": {"key": "C"}}, r"^control=dict: give musictx\.Control"),
        ({"control": 0}, r"^control=int: give musictx\.Control"),
        ({"rules": {"lowest": 50}}, r"^rules=dict: give musictx\.Rules"),
    ],
)
def test_what_is_no_request(piano, values, said):
    with pytest.raises(ConfigError, match=said):
        piano.continue_midi("elise", tokens=20, **values)


def test_a_wrong_seed_is_a_short_line(piano):
    with pytest.raises(ConfigError) as refused:
        piano.continue_midi([TUNE] * 3)
    assert len(str(refused.value)) < 200
    with pytest.raises(ConfigError, match="^infill=null: give a MIDI file or a Score"):
        musictx.load("chorale").fill(None, from_bar=1, to_bar=1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("notes", "said"),
    [
        (([0], [1], [60.7], [80]), "pitch must be whole numbers"),
        (([0], [1], [60], [np.nan]), "velocity must be whole numbers"),
        (([0], [1], [60], [80], None), "a quarter note lasts more than 0 seconds"),
    ],
)
def test_a_score_cuts_no_number(notes, said):
    with pytest.raises(ValueError, match=said):
        musictx.Score(*notes)
    assert musictx.Score([0], [1], [60.0], [80.0]).pitch.tolist() == [60]
