import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from musictx.errors import TokenError
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


@given(GRIDS, st.integers(-10, 10))
def test_transposing_ids_moves_every_pitch_and_no_rest(grid, semitones):
    moved = TOK.decode_grid(TOK.transpose(TOK.encode_grid(grid), semitones))
    np.testing.assert_array_equal(moved, np.where(grid == -1, -1, grid + semitones))


def test_an_unfinished_step_is_filled_with_rests_and_eos_ends():
    stream = np.array([TOK.vocab.bos, 40, 41, TOK.vocab.eos, 42])
    np.testing.assert_array_equal(TOK.decode_grid(stream), [[61, 62, -1, -1]])
    assert TOK.seconds(np.zeros(10, np.uint16), 0.6) == pytest.approx(0.3)
    assert TOK.silence(0.31, 0.6).tolist() == [TOK.rest] * 8


@pytest.mark.parametrize("pitch", [20, 109])
def test_a_pitch_outside_the_vocabulary_is_refused(pitch):
    with pytest.raises(TokenError, match=f"^pitch {pitch} .* 21 … 108"):
        TOK.encode_grid(np.array([[60, pitch, -1, -1]]))
