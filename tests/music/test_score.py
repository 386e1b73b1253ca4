import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import scores

from musictx.music.score import Score


def two_notes(onset_s=(1.0, 0.0), offset_s=(2.0, 0.5), pitch=(60, 72), velocity=(80, 90)) -> Score:
    return Score(onset_s, offset_s, pitch, velocity)


def test_notes_are_sorted_by_onset_then_pitch():
    score = Score([1, 0, 1], [2, 2, 3], [64, 60, 50], [10, 20, 30])
    assert score.pitch.tolist() == [60, 50, 64]
    assert score.velocity.tolist() == [20, 30, 10]
    assert score.duration_s == 3.0
    assert (str(score.onset_s.dtype), str(score.pitch.dtype)) == ("float64", "uint8")


def test_a_score_cannot_be_changed():
    mine = np.array([0.0, 1.0])
    score = Score(mine, mine + 1, [60, 61], [80, 80])
    mine[0] = 5.0
    assert score.onset_s.tolist() == [0.0, 1.0]
    with pytest.raises(ValueError, match="read-only"):
        score.pitch[0] = 1
    with pytest.raises(AttributeError):
        score.pitch = np.zeros(2)  # type: ignore[misc]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"onset_s": [np.nan, 0]}, r"onset_s .*; note 0 is \(nan"),
        ({"offset_s": [0.9, 0.5]}, "offset_s .*; note 0 is"),
        ({"pitch": [128, 0]}, r"pitch .* 0 … 127; note 0 is \(1.0, 2.0, 128, 80\)"),
        ({"velocity": [0, 1]}, "velocity .* 1 … 127; note 0"),
        ({"velocity": [1]}, ": 2, 2, 2, 1"),
    ],
)
def test_arrays_that_are_no_music_are_refused(changes, text):
    with pytest.raises(ValueError, match=text):
        two_notes(**changes)


def test_clip_keeps_what_begins_inside_and_cuts_its_end():
    score = Score([0, 1, 2, 3], [1, 9, 2.5, 4], [60, 61, 62, 63], [80] * 4, quarter_s=0.7)
    assert score.clip(1, 3) == Score([0, 1], [2, 1.5], [61, 62], [80, 80])
    assert score.clip(1, 3).quarter_s == 0.7


def test_transpose_moves_pitches_and_stretch_all_times():
    assert two_notes().transpose(-12) == two_notes(pitch=(48, 60)) != two_notes()
    with pytest.raises(ValueError, match="pitch .* 0 … 127"):
        two_notes().transpose(60)
    slow = two_notes().stretch(2.0)
    assert slow == two_notes((2.0, 0.0), (4.0, 1.0))
    assert slow.quarter_s == 1.0


def test_merge_is_all_notes_together():
    assert Score.merge([two_notes(), Score.empty(), two_notes().transpose(1)]).pitch.tolist() == [72, 73, 60, 61]
    assert Score.merge([], 0.3) == Score.empty()


@given(scores(), st.floats(0, 40), st.floats(0, 40))
def test_clip_loses_no_note_between_its_borders(score, a, b):
    start, end = min(a, b), max(a, b)
    inside = ((score.onset_s >= start) & (score.onset_s < end)).sum()
    assert len(score.clip(start, end)) == inside
    assert score.clip(start, end).duration_s <= end - start + 1e-9
