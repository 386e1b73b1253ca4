"""Where the ending of a finished piece begins."""

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import scores

from musictx.music.ending import ending_s
from musictx.music.score import Score


def music(*notes):
    onset, offset = zip(*notes, strict=True)
    return Score(onset, offset, [60 + k % 12 for k in range(len(notes))], [80] * len(notes))


FLOW = [(k * 0.25, k * 0.25 + 0.25) for k in range(40)]  # quavers up to 10 s


def test_music_cut_short_goes_on_and_a_long_last_chord_is_an_ending():
    assert ending_s(music(*FLOW)) is None
    assert ending_s(music(*FLOW, (10.0, 12.0), (10.01, 12.0), (10.03, 12.0))) == 10.0


def test_slow_chords_before_the_last_belong_to_the_ending():
    slower = [(10.0, 10.6), (10.6, 11.4), (11.4, 14.0)]
    assert ending_s(music(*FLOW, *slower)) == 10.0


def test_a_pause_long_before_the_end_is_not_an_ending():
    later = [(a + 20, b + 20) for a, b in FLOW]
    assert ending_s(music(*FLOW, *later)) is None


def test_a_last_chord_no_longer_than_the_notes_before_it_is_none():
    pedalled = [(k * 0.25, k // 8 * 2.0 + 3.0) for k in range(41)]  # each bar sounds until the middle of the next
    assert ending_s(music(*pedalled)) is None
    over_a_bass = [(0.0, 12.0), *FLOW]
    assert ending_s(music(*over_a_bass)) is None
    assert ending_s(music((0.0, 14.0), *FLOW, (10.0, 14.0))) == 10.0


def test_a_few_notes_say_nothing_of_the_pace():
    assert ending_s(music((0, 8))) is None
    assert ending_s(music(*FLOW[:6], (1.5, 9))) is None
    assert ending_s(Score.empty()) is None


@pytest.mark.parametrize("together", [1, 4])
def test_slow_music_is_not_finished_by_a_chord_as_long_as_its_others(together):
    slow = [(k * 2.0, k * 2.0 + 2.0) for k in range(12) for _ in range(together)]
    assert ending_s(music(*slow)) is None


@settings(max_examples=60, deadline=None)
@given(scores())
def test_an_ending_begins_with_a_note_and_is_a_third_of_the_music_at_most_before_its_last_chord(score):
    found = ending_s(score)
    assert found is None or found in score.onset_s
    if found is not None:
        last = np.unique(score.onset_s)[np.diff(np.unique(score.onset_s), prepend=-np.inf) > 0.05][-1]
        assert last - found <= max(12.0, score.duration_s / 3)
