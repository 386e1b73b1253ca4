from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import notations

from musictx.errors import ConfigError, TokenError
from musictx.generate import humanize as inside
from musictx.generate.humanize import WEIGHTS, humanize, network, seconds_of, touches_of
from musictx.generate.loudness import features_of
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Note, Part, Tempo

TUNE = tuple(Note(12 * n, 12, 72 + n % 5) for n in range(64))
RIGHT = tuple(Note(12 * n, 12, pitch) for n in range(64) for pitch in ((60, 64) if n % 2 else (67,)))
LEFT = tuple(Note(24 * n, 24, pitch) for n in range(32) for pitch in (43, 50))
SONG = Notation(
    (Part("Melody", 73, TUNE), Part("Piano", 0, RIGHT), Part("Piano", 0, LEFT)),
    tuple(Bar(96 * n, 4, 4) for n in range(8)),
    768,
)


def of(notation, name, slots=(0, 1, 2)):
    return features_of(notation, slots)[name].tolist()


def test_the_tune_is_louder_than_the_hands_and_the_bass_marks_bar_lines(monkeypatch):
    monkeypatch.setattr(inside, "NOISE", 0)
    bass = replace(SONG.parts[2], notes=tuple(Note(12 * n, 12, 43) for n in range(64)))
    touches = touches_of(replace(SONG, parts=(*SONG.parts[:2], bass)))
    tune, right, left = (touch.velocity.astype(float) for touch in touches)
    assert tune.mean() > max(right.mean(), left.mean()) + 2
    assert left[0::8].mean() > left[1::2].mean() + 1  # between beats


def test_without_a_tune_the_highest_notes_of_the_right_hand_sing():
    piano = replace(SONG, parts=SONG.parts[1:])
    right = touches_of(piano)[0].velocity.astype(float)
    top = np.array([note.pitch in (67, 64) for note in RIGHT])
    assert right[top].mean() > right[~top].mean() + 5
    assert of(piano, "tune", (1, 2)) == [*top.tolist(), *[False] * len(LEFT)]


@given(notations(), st.integers(0, 5))
def test_any_score_is_played_within_bounds_and_in_order(notation, seed):
    scores = humanize(notation, seed)
    assert scores == humanize(notation, seed)
    for part, touch, score in zip(notation.parts, touches_of(notation, seed), scores, strict=True):
        assert len(part.notes) == len(score) == len(touch.velocity)
        if len(score):
            assert score.velocity.min() >= 1
            assert score.velocity.max() <= 127
            assert score.onset_s.min() >= 0
            onset_s = seconds_of(notation, np.array([note.onset for note in part.notes], float))
            np.testing.assert_allclose(score.onset_s, np.sort(onset_s))
        for pitch in np.unique(score.pitch):
            key = score.select(score.pitch == pitch)
            assert (key.offset_s[:-1] <= key.onset_s[1:] + 1e-9).all()


def test_chance_only_adds_a_little():
    one, other = (np.concatenate([x.velocity for x in touches_of(SONG, seed)]).astype(float) for seed in (0, 1))
    assert 1 < abs(one - other).mean() < 4


def test_seconds_follow_the_tempi():
    slower = replace(SONG, tempi=(Tempo(0, 120.0), Tempo(48, 60.0)))
    np.testing.assert_allclose(seconds_of(slower, np.array([0.0, 24, 48, 72])), [0, 0.5, 1, 2])
    assert humanize(slower)[0].onset_s[-1] == pytest.approx(1 + (756 - 48) / 24)


def test_places_of_a_waltz_with_an_upbeat():
    bars = (Bar(0, 3, 4), Bar(24, 3, 4), Bar(96, 6, 8))
    notes = tuple(Note(at, 6, 60) for at in (0, 24, 36, 48, 96, 108, 132))
    waltz = Notation((Part("", 0, notes),), bars, 168)
    level = [of(waltz, name, (1,)) for name in ("bar line", "half bar", "beat", "half beat")]
    assert [names.index(True) for names in zip(*level, strict=True)] == [2, 0, 3, 2, 0, 3, 1]


def test_phrases_end_at_rests():
    line = tuple(Note(at, 24, 60) for at in (0, 24, 48, 96, 120))
    score = Notation((Part("", 0, line),), (Bar(0, 4, 4), Bar(96, 4, 4)), 192)
    assert of(score, "since the phrase began", (1,)) == pytest.approx(np.log2([1, 2, 3, 1, 2]))
    assert of(score, "until the phrase ends", (1,)) == pytest.approx(np.log2([4, 3, 2, 3, 2]))


def test_the_network_is_small_and_knows_the_features():
    assert WEIGHTS.stat().st_size < 100_000
    assert sum(weight.size + bias.size for weight, bias in network().layers) < 3000
    assert set(network().features) == set(features_of(SONG, (0, 1, 2)))


@pytest.mark.parametrize("seed", [-1, 0.5, None])
def test_a_wrong_seed(seed):
    with pytest.raises(ConfigError, match="whole number from 0"):
        humanize(SONG, seed)


def test_too_many_parts_and_none():
    many = replace(SONG, parts=tuple(Part(str(n), 73, TUNE + LEFT) for n in range(20)))
    with pytest.raises(TokenError, match="20 parts"):
        humanize(many)
    assert [len(score) for score in humanize(replace(SONG, parts=(Part("", 0, ()),)))] == [0]
    assert humanize(replace(SONG, parts=())) == []
