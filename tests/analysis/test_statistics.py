import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import score_of

from musictx.analysis.statistics import MEASURES, NAN, features, statistics
from musictx.music.score import DRUMS, Score


def test_a_piece_by_hand():
    # C and E together for 2 s, 1 s of silence, C again for 1 s, an F# that sounds for half of it
    figures = statistics(score_of((1, 3, 60), (1, 3, 64), (4, 5, 72), (4.5, 5, 66)))
    assert figures["pitch_class_entropy"] == pytest.approx(1.5)  # shares 1/2, 1/4, 1/4
    assert figures["pitch_range"] == 12
    assert figures["pitches_used"] == 4
    assert figures["scale_consistency"] == 1.0  # G major has C, E and F#
    assert figures["polyphony"] == pytest.approx(5.5 / 3)
    assert figures["note_density"] == 1.0  # 4 notes from second 1 to 5
    assert figures["mean_interonset_s"] == 1.75  # 3 s and 0.5 s
    assert figures["mean_duration_s"] == 1.375
    assert np.isnan(figures["groove_consistency"])
    assert figures["silence"] == pytest.approx(0.25)
    assert figures["longest_note_s"] == 2.0
    assert figures["longest_repeat"] == 1


def test_scale_consistency_counts_notes_and_takes_the_best_scale():
    chromatic = score_of(*((i, i + 1, 60 + i) for i in range(12)))
    assert statistics(chromatic)["scale_consistency"] == pytest.approx(7 / 12)
    a_minor = score_of(*((i, i + 1, 57 + p) for i, p in enumerate((0, 2, 3, 5, 7, 8, 10))))
    assert statistics(a_minor)["scale_consistency"] == 1.0


def bars(*onsets, step_s=0.125):
    """A note at each step of each bar."""
    steps = [16 * bar + step for bar, steps in enumerate(onsets) for step in steps]
    return score_of(*((i * step_s, (i + 1) * step_s, 60) for i in steps))


def test_groove_consistency_needs_a_second_bar():
    assert statistics(bars([0, 4, 8], [0, 4, 8], [0, 4, 8]), metrical=True)["groove_consistency"] == 1.0
    assert np.isnan(statistics(bars([0, 4]), metrical=True)["groove_consistency"])


@given(st.lists(st.sets(st.integers(0, 15)), min_size=1, max_size=6))
def test_groove_consistency_is_the_obvious_one(onsets):
    onsets = [{0}, *onsets, {3, 5}]
    grid = np.array([[step in bar for step in range(16)] for bar in onsets])
    expected = 1 - (grid[1:] != grid[:-1]).mean()
    assert statistics(bars(*map(sorted, onsets)), metrical=True)["groove_consistency"] == pytest.approx(expected)


def test_a_stuck_pitch_shows_through_what_moves_above_it():
    stuck = score_of(*((i, i + 1, 60) for i in range(5)), (2, 3, 64), (3, 4, 65), (7, 8, 60))
    assert statistics(stuck)["longest_repeat"] == 6  # nothing else is struck between second 4 and 7
    moving = score_of((0, 1, 60), (1, 2, 62), (2, 3, 60), (3, 9, 60))
    assert statistics(moving)["longest_repeat"] == 2
    assert statistics(moving)["longest_note_s"] == 6.0


def test_one_note_no_length_and_no_notes():
    one = statistics(score_of((2, 3, 60)), metrical=True)
    assert list(one.values()) == pytest.approx([0, 0, 1, 1, 1, 1, NAN, 1, NAN, 0, 1, 1], nan_ok=True)
    assert str(one["pitch_class_entropy"]) == "0.0"
    instant = statistics(score_of((2, 2, 60)))
    assert list(instant.values()) == pytest.approx([0, 0, 1, 1, NAN, NAN, NAN, 0, NAN, NAN, 0, 1], nan_ok=True)
    assert np.isnan([*statistics(Score.empty(), metrical=True).values()]).all()


def test_drums_are_left_out():
    both = Score([0, 0, 1], [1, 1, 2], [60, 36, 38], [80] * 3, program=np.array([0, DRUMS, DRUMS]))
    assert statistics(both) == pytest.approx(statistics(score_of((0, 1, 60))), nan_ok=True)


def test_features_are_columns():
    columns = features([score_of((0, 1, 60), (2, 3, 67)), Score.empty()], metrical=False)
    np.testing.assert_array_equal(columns["mean_interonset_s"], [2.0, np.nan])
    np.testing.assert_array_equal(columns["pitch_range"], [7, np.nan])
    assert [*columns] == [*MEASURES]
