import numpy as np
import pytest

from musictx.analysis.key import key_of, tonics
from musictx.music.grid import REST, grid_to_score
from musictx.music.score import Score

C_MAJOR = [(72, 67, 64, 48), (72, 69, 65, 53), (71, 67, 62, 55), (72, 67, 64, 48)]
A_MINOR = [(69, 64, 60, 45), (69, 65, 62, 50), (68, 64, 59, 52), (69, 64, 60, 45)]


def beats(chords):
    return np.repeat(np.array(chords), 4, axis=0).astype(np.int16)


@pytest.mark.parametrize(("chords", "tonic"), [(C_MAJOR, 0), (A_MINOR, 9)])
def test_the_tonic_of_a_cadence(chords, tonic):
    assert tonics(beats(chords)).tolist() == [tonic] * 16


def test_the_tonic_follows_the_music_around_a_beat():
    grid = np.concatenate([beats(4 * C_MAJOR), beats(4 * C_MAJOR) + 6])
    found = tonics(grid)
    assert found[0] == 0
    assert found[-1] == 6


@pytest.mark.parametrize("chord", [(REST,) * 4, (69, 66, 63, 60)])
def test_where_no_tonic_fits_best_there_is_none(chord):
    assert tonics(beats([chord])).tolist() == [-1] * 4


@pytest.mark.parametrize(("chords", "key"), [(C_MAJOR, (0, "major")), (A_MINOR, (9, "minor"))])
def test_the_key_of_a_score_moves_with_it(chords, key):
    score = grid_to_score(beats(chords))
    assert [key_of(score.transpose(k)) for k in (0, 5)] == [key, ((key[0] + 5) % 12, key[1])]


def test_no_music_has_no_key_and_drums_have_none():
    assert key_of(Score.empty()) is None
    assert key_of(Score([0], [1], [60], [80], program=128)) is None
