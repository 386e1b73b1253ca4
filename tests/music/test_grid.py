import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import SHARED_DATA, rows, score_of

from musictx.errors import TokenError
from musictx.music.grid import grid_to_score, score_to_grid, thin_to_voices
from musictx.music.score import Score


def any_notes(low, high, most):
    notes = st.lists(st.tuples(st.floats(0, 3), st.floats(3, 4), st.integers(low, high)), max_size=most)
    return notes.map(lambda notes: score_of(*notes, quarter_s=0.6))  # a sixteenth is 0.15 s


def heard(score):
    return grid_to_score(score_to_grid(score), score.quarter_s)


def test_notes_find_their_voices():
    grid = np.array([[72, 67, 60, 48], [72, 67, 59, 48], [74, 67, -1, 50]], np.int16)
    score = grid_to_score(grid, quarter_s=0.4)
    assert {(note[2], round(note[0], 6), round(note[1], 6)) for note in rows(score)} == {
        *((72, 0, 0.2), (74, 0.2, 0.3), (67, 0, 0.3), (60, 0, 0.1), (59, 0.1, 0.2), (48, 0, 0.2), (50, 0.2, 0.3))
    }
    np.testing.assert_array_equal(score_to_grid(score), grid)
    alone = Score([0, 0.6], [0.6, 1.2], [76, 40], [80, 80], quarter_s=0.6)  # a soprano, a bass
    assert score_to_grid(alone)[::4].tolist() == [[76, -1, -1, -1], [-1, -1, -1, 40]]
    unison = np.array([[60, 60, -1, -1], [60, 60, -1, -1]], np.int16)
    assert len(grid_to_score(unison)) == 2
    assert (score_to_grid(grid_to_score(unison)) == 60).sum() == 4


def test_five_notes_at_once_are_too_many():
    score = Score([0, 0, 0.6, 0.6, 0.6], [2, 2, 2, 2, 2], [50, 55, 60, 65, 70], [80] * 5, quarter_s=0.6)
    with pytest.raises(TokenError, match=r"step 4 \(quarter 1\) has 5 notes sounding"):
        score_to_grid(score)


@given(any_notes(58, 61, 4))
def test_snapping_is_what_the_grid_hears_and_happens_once(score):
    assert heard(heard(score)) == heard(score)


def test_of_more_than_four_the_oldest_inside_ends():
    thin, lost = thin_to_voices(Score([0, 0, 0, 0, 0.6], [1.2] * 5, [48, 55, 64, 72, 67], [90] * 5, 0.6, np.array(40)))
    assert lost == 1
    assert {(note[2], note[0], round(note[1], 6), note[4]) for note in rows(thin)} == {
        *((48, 0, 1.2, 40), (55, 0, 0.6, 40), (64, 0, 1.2, 40), (67, 0.6, 1.2, 40), (72, 0, 1.2, 40))
    }
    thin, lost = thin_to_voices(Score([0] * 6, [0.6] * 6, [40, 47, 52, 56, 59, 64], [90] * 6, 0.6))
    assert (len(thin), lost) == (4, 2)
    assert {40, 64} <= set(thin.pitch.tolist())


@given(any_notes(40, 90, 14))
def test_any_music_fits_the_grid_when_thinned_and_what_fits_already_is_only_snapped(score):
    thin, lost = thin_to_voices(score)
    score_to_grid(thin)
    if not lost:
        assert thin == heard(score)


def test_real_chorales_keep_all_their_notes_and_most_of_their_voices():
    path = SHARED_DATA / "jsb-chorales-16th" / "Jsb16thSeparated.json"
    if not path.is_file():
        pytest.skip(f"no {path.name} in {SHARED_DATA}")
    same = cells = 0
    for piece in json.loads(path.read_text())["valid"][::8]:
        grid = np.array(piece, np.int16)
        back = score_to_grid(grid_to_score(grid))
        assert heard(grid_to_score(grid)) == grid_to_score(back)
        same += (back == grid).sum()
        cells += grid.size
    # where one voice takes over the pitch another leaves, notes alone do not show who sings on
    assert same / cells > 0.85
