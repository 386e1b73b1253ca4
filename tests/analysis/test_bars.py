import numpy as np

from musictx.analysis.repeats import bars, repeated_share
from musictx.music.score import DRUMS, Score


def music(*bars_of_notes, quarter_s=0.5, program=0):
    """A bar is a list of (sixteenth, pitch, sixteenths)."""
    notes = [(16 * n + at, pitch, long) for n, bar in enumerate(bars_of_notes) for at, pitch, long in bar]
    at, pitch, long = np.array(notes).reshape(-1, 3).T
    step_s = quarter_s / 4
    count = np.full(len(notes), 80)
    return Score(at * step_s, (at + long) * step_s, pitch, count, quarter_s, np.full(len(notes), program))


A, B = [(0, 60, 4), (4, 64, 4), (8, 67, 8)], [(0, 60, 4), (4, 64, 2), (6, 65, 10)]


def test_bars_hold_places_pitches_and_lengths():
    assert bars(music(A, [], B)) == [frozenset(A), frozenset(), frozenset(B)]
    assert bars(music(A, [], B, quarter_s=0.7)) == bars(music(A, [], B))
    assert bars(music(A, program=DRUMS)) == bars(Score.empty()) == []


def test_repeated_bars_are_those_that_came_before_note_for_note():
    assert repeated_share(music(A, B, A, A, [])) == 0.5
    assert repeated_share(music(A, B, A, A), from_bar=2) == 1.0
    assert repeated_share(music(A, [], [], B)) == 0.0  # silence repeats nothing
    assert np.isnan(repeated_share(Score.empty()))
