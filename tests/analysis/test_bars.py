import numpy as np
from hypothesis import given
from hypothesis import strategies as st

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


NOTES = st.lists(st.tuples(st.integers(0, 11), st.integers(50, 70), st.integers(1, 4)), min_size=1, max_size=6)


@given(st.lists(NOTES, min_size=2, max_size=6), st.integers(-12, 12))
def test_key_does_not_count_and_a_piece_said_twice_repeats_every_bar(pieces, semitones):
    score = music(*pieces)
    assert repeated_share(score.transpose(semitones)) == repeated_share(score)
    twice = music(*pieces, *pieces)
    assert repeated_share(twice, from_bar=len(pieces)) == 1
