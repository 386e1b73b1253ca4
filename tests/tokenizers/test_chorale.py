import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import ids

from musictx.errors import ConfigError, TokenError
from musictx.music.grid import grid_to_score
from musictx.music.score import Score
from musictx.tokenizers.chorale import ChoraleTokenizer

TOK = ChoraleTokenizer()
PITCHES = st.one_of(st.just(-1), st.integers(40, 80))
GRIDS = st.lists(st.lists(PITCHES, min_size=4, max_size=4), max_size=30).map(
    lambda rows: np.array(rows, dtype=np.int16).reshape(-1, 4)
)


def test_two_steps_literally():
    grid = np.array([[72, 67, 64, 48], [72, -1, 64, 47]], np.int16)
    stream = TOK.encode_grid(grid)
    assert [TOK.vocab.describe(int(i)) for i in stream] == [
        *("PITCH 72", "PITCH 67", "PITCH 64", "PITCH 48"),
        *("PITCH 72", "REST", "PITCH 64", "PITCH 47"),
    ]
    score = TOK.decode(stream, quarter_s=0.4)
    assert score.pitch.tolist() == [48, 64, 67, 72, 47]
    np.testing.assert_allclose(score.onset_s, [0, 0, 0, 0, 0.1])
    np.testing.assert_allclose(score.offset_s, [0.1, 0.2, 0.1, 0.2, 0.2])


@given(GRIDS)
def test_grid_and_ids_are_inverse(grid):
    np.testing.assert_array_equal(TOK.decode_grid(TOK.encode_grid(grid)), grid)


@given(GRIDS, st.sampled_from([0.6, 0.5, 1.1]))
def test_decode_of_encode_is_the_normalised_score(grid, quarter_s):
    score = grid_to_score(grid, quarter_s)
    stream = TOK.encode(score)
    assert TOK.decode(stream, quarter_s) == TOK.normalise(score)
    np.testing.assert_array_equal(TOK.encode(TOK.decode(stream, quarter_s)), stream)


@given(ids(TOK.vocab))
def test_decode_of_any_ids_is_a_valid_score(tokens):
    score = TOK.decode(tokens)
    assert (score.offset_s > score.onset_s).all()
    assert score.duration_s <= (len(tokens) + 3) // 4 * 0.15 + 1e-9


def test_ten_voices_are_refused():
    score = Score(np.zeros(10), np.ones(10), np.arange(50, 60), np.full(10, 80))
    with pytest.raises(TokenError, match="10 notes sounding; the chorale grid has 4 voices"):
        TOK.encode(score)


def test_a_pitch_off_the_keyboard_is_refused():
    score = Score(np.zeros(1), np.ones(1), np.array([12]), np.array([80]))
    with pytest.raises(TokenError, match="pitch 12 is outside the chorale vocabulary, which has 21 … 108"):
        TOK.encode(score)


@given(GRIDS, st.integers(-10, 10))
def test_transposing_ids_moves_every_pitch_and_no_rest(grid, semitones):
    moved = TOK.decode_grid(TOK.transpose(TOK.encode_grid(grid), semitones))
    np.testing.assert_array_equal(moved, np.where(grid == -1, -1, grid + semitones))


def test_pitch_range():
    assert TOK.pitch_range(TOK.encode_grid(np.array([[72, -1, 64, 48]], np.int16))) == (48, 72)
    assert TOK.pitch_range(TOK.encode_grid(np.full((2, 4), -1, np.int16))) is None


def test_a_grid_has_no_clock_to_stretch():
    stream = TOK.encode_grid(np.array([[72, -1, 64, 48]], np.int16))
    assert TOK.stretch(stream, 1.0) is stream
    with pytest.raises(ConfigError, match="^stretch=1.05: chorale counts beats and has no clock"):
        TOK.stretch(stream, 1.05)


def test_an_unfinished_step_is_filled_with_rests_and_eos_ends():
    stream = np.array([TOK.vocab.bos, 40, 41, TOK.vocab.eos, 42])
    np.testing.assert_array_equal(TOK.decode_grid(stream), [[61, 62, -1, -1]])
    assert TOK.seconds(np.zeros(10, np.uint16), 0.6) == pytest.approx(0.3)
