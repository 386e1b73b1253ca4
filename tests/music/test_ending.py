"""Where the ending of a finished piece begins."""

import numpy as np
import pytest
from hypothesis import given
from strategies import scores

from musictx.music.ending import ending_s
from musictx.music.score import Score


def music(*notes):
    onset, offset = zip(*notes, strict=True)
    return Score(onset, offset, [60 + k % 12 for k in range(len(notes))], [80] * len(notes))


FLOW = [(k * 0.25, k * 0.25 + 0.25) for k in range(40)]  # quavers up to 10 s


@pytest.mark.parametrize(
    ("notes", "found"),
    [
        (FLOW, None),  # cut short
        ([*FLOW, (10.0, 12.0), (10.01, 12.0), (10.03, 12.0)], 10.0),
        ([*FLOW, (10.0, 10.6), (10.6, 11.4), (11.4, 14.0)], 10.0),  # slow chords before the last
        ([*FLOW, *((a + 20, b + 20) for a, b in FLOW)], None),  # a pause long before the end
        ([(k * 0.25, k // 8 * 2.0 + 3.0) for k in range(41)], None),  # under a pedal all notes are long
        ([(0.0, 12.0), *FLOW], None),  # over a long bass
        ([(0.0, 14.0), *FLOW, (10.0, 14.0)], 10.0),
        # a slow broken chord that rings to the end, and moves meanwhile
        ([*FLOW, *((10 + k / 2, 18.0) for k in range(16)), (17.6, 17.9), (17.9, 18.0)], 12.0),
        ([*FLOW, *((10 + k / 4, 12.0) for k in range(8))], None),  # too short
        ([*((0.0, 18.0) for _ in range(9)), *((k / 4, k / 4 + 0.25) for k in range(71))], None),  # over a long chord
        ([(k * 2.0, k * 2.0 + 2.0) for k in range(12) for _ in range(8)], None),
        ([(k / 4, (k // 16 + 1) * 4.0) for k in range(64)], None),  # under a pedal up to the bar line
        ([(20 + k / 2, 27.0) for k in range(10)], None),  # nothing comes before
        ([(0, 8)], None),  # so few say nothing of the pace
        ([*FLOW[:6], (1.5, 9)], None),
        ([(k * 2.0, k * 2.0 + 2.0) for k in range(12)], None),  # slow music
    ],
)
def test_where_the_ending_begins(notes, found):
    assert ending_s(music(*notes)) == found


@given(scores())
def test_an_ending_begins_with_a_note_and_is_a_third_of_the_music_at_most_before_its_last_chord(score):
    found = ending_s(score)
    assert found is None or found in score.onset_s
    if found is not None:
        last = np.unique(score.onset_s)[np.diff(np.unique(score.onset_s), prepend=-np.inf) > 0.05][-1]
        assert last - found <= max(12.0, score.duration_s / 3)
