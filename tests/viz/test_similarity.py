import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.colors import to_rgb
from matplotlib.image import imread
from strategies import scores

from musictx.errors import ConfigError
from musictx.music.score import DRUMS, Score
from musictx.viz.piano_roll import NEW_COLOUR
from musictx.viz.similarity import draw_self_similarity, self_similarity


def score(*notes, program=0) -> Score:
    """From (onset_s, offset_s, pitch)."""
    onset, offset, pitch = zip(*notes, strict=True)
    return Score(onset, offset, pitch, [80] * len(notes), program=np.full(len(notes), program))


def test_windows_by_hand():
    # 0: C on the beat; 1: the same an octave higher; 2: D on the beat; 3: C off the beat
    music = score((0, 1, 60), (1, 2, 72), (2, 3, 62), (3.5, 4, 60))
    expected = [[1, 1, 0.5, 0.5], [1, 1, 0.5, 0.5], [0.5, 0.5, 1, 0], [0.5, 0.5, 0, 1]]
    np.testing.assert_allclose(self_similarity(music, 1.0), expected, atol=1e-12)


def test_pitch_classes_count_by_the_seconds_they_sound_in_each_window():
    # C sounds 1 s, then C 0.6 s (held) and D 0.8 s: cosine 0.6; only the first window's rhythm has a first step
    music = score((0, 1.6, 60), (1.2, 2, 62))
    assert self_similarity(music, 1.0)[0, 1] == pytest.approx(0.3)


def test_a_held_chord_is_no_silence_and_silence_is_like_silence():
    # a note over three windows, then two of silence, then a note
    result = self_similarity(score((0, 3, 60), (5, 6, 60)), 1.0)
    assert result[1, 2] == pytest.approx(1)
    assert result[0, 1] == pytest.approx(0.5)  # the same pitch, another rhythm
    assert result[3, 4] == pytest.approx(1)
    assert result[3, 5] == pytest.approx(0)


def test_an_onset_on_a_bar_line_belongs_to_the_bar_it_begins():
    bar_s = 2.4
    music = score(*((i * bar_s, i * bar_s + 0.6, 60) for i in range(50)))  # 3 * 2.4 // 2.4 is 2
    np.testing.assert_allclose(self_similarity(music, bar_s), np.ones((50, 50)))


def test_drums_are_rhythm_alone():
    music = score((0, 1, 36), (1, 2, 38), program=DRUMS)
    np.testing.assert_allclose(self_similarity(music, 1.0), np.ones((2, 2)))


@settings(deadline=None, max_examples=50)
@given(scores(), st.sampled_from([0.5, 1.0, 7.3]))
def test_it_is_a_similarity(music, window_s):
    result = self_similarity(music, window_s)
    assert len(result) * window_s >= music.duration_s - 1e-4
    np.testing.assert_allclose(result, result.T)
    np.testing.assert_allclose(np.diag(result), 1)
    assert result.min(initial=0) >= 0
    assert result.max(initial=0) <= 1 + 1e-9


def test_windows_of_no_length_and_too_many_are_refused():
    music = score((0, 50, 60), (90, 100, 62))
    with pytest.raises(ConfigError, match="window_s=0: give seconds, more than 0"):
        self_similarity(music, 0)
    with pytest.raises(ConfigError, match="10,000 spans, at most 2,000 are drawn: give 0.05 or more"):
        self_similarity(music, 0.01)
    assert self_similarity(music, 0.05).shape == (2000, 2000)
    assert self_similarity(Score.empty(), 1.0).shape == (0, 0)


def has_colour(image, colour):
    return (np.abs(image[:, :, :3] - to_rgb(colour)).max(-1) < 0.05).sum() > 100


def test_panels_and_the_line_where_new_music_begins(tmp_path):
    music = score(*((i, i + 1, 60 + i % 7) for i in range(20)))
    draw_self_similarity([("one", music)], tmp_path / "new" / "a.png", 1.0, new_from_s=10.0)
    draw_self_similarity([("x", music)] * 4 + [("silence", Score.empty())], tmp_path / "b.png", 1.0)
    a, b = imread(tmp_path / "new" / "a.png"), imread(tmp_path / "b.png")
    assert has_colour(a, NEW_COLOUR)
    assert not has_colour(b, NEW_COLOUR)
    assert b.shape[0] > 1.8 * a.shape[0]  # a second row
    assert sorted(p.name for p in tmp_path.rglob("*.*")) == ["a.png", "b.png"]


def test_silence_can_be_drawn_and_no_panel_cannot(tmp_path):
    draw_self_similarity([("silence", Score.empty())], tmp_path / "a.png", 1.0)
    assert (tmp_path / "a.png").stat().st_size > 1000
    with pytest.raises(ValueError, match="at least one panel"):
        draw_self_similarity([], tmp_path / "b.png", 1.0)
