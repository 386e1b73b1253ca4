import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from strategies import scores

from musictx.music.score import Score
from musictx.music.ticks import apply_sustain


def held(notes, pedal):
    onset, offset, pitch = np.array(notes, dtype=float).reshape(-1, 3).T
    times, values = np.array(pedal, dtype=float).reshape(-1, 2).T
    score = apply_sustain(Score(onset, offset, pitch, np.full(len(pitch), 80)), times, values)
    return score.offset_s.tolist()


def test_a_note_let_go_under_the_pedal_sounds_until_it_comes_up():
    assert held([(0, 1, 60)], [(0.5, 127), (3, 0)]) == [3]


def test_or_until_its_pitch_is_struck_again():
    assert held([(0, 1, 60), (2, 2.5, 60), (1.5, 1.7, 61)], [(0.5, 64), (3, 63)]) == [2, 3, 3]


def test_a_note_that_ends_before_or_after_the_pedal_is_left_alone():
    assert held([(0, 0.4, 60), (0, 4, 61)], [(0.5, 127), (3, 0)]) == [0.4, 4]


def test_a_half_pressed_pedal_is_up():
    assert held([(0, 1, 60)], [(0.5, 63), (3, 0)]) == [1]


def test_a_pedal_that_never_comes_up_lifts_at_the_end_of_the_music():
    assert held([(0, 1, 60), (0, 5, 64)], [(0.5, 127)]) == [5, 5]
    assert held([(0, 1, 60)], [(0.5, 127), (7, 100)]) == [7]


def test_a_pedal_forgotten_for_more_than_a_minute_is_not_heard():
    for let_go in ([], [(64.5, 0)]):  # to the end of the music, or before it
        assert held([(0, 1, 60), (70, 71, 64)], [(0.5, 127), *let_go]) == [1, 71]
    assert held([(0, 1, 60), (70, 71, 64)], [(0.5, 127), (60.5, 0)]) == [60.5, 71]  # a minute is a long rest for a foot
    assert held([(0, 1, 60), (80, 81, 64)], [(0.5, 127), (70, 0), (80.5, 127), (83, 0)]) == [1, 83]  # the others are


def test_without_notes_or_pedal_nothing_happens():
    assert held([], [(0, 127)]) == []
    assert held([(0, 1, 60)], []) == [1]


def slow(score, pedal):
    """The obvious loops."""
    spans, down = [], None
    for time, value in pedal:
        if value >= 64 and down is None:
            down = time
        elif value < 64 and down is not None:
            spans.append((down, time))
            down = None
    if down is not None:
        spans.append((down, max(score.duration_s, pedal[-1][0])))
    ends = []
    spans = [(start, stop) for start, stop in spans if stop - start <= 60]
    for onset, offset, pitch in zip(score.onset_s, score.offset_s, score.pitch, strict=True):
        end = offset
        for start, stop in spans:
            if start <= offset < stop:
                again = [o for o, p in zip(score.onset_s, score.pitch, strict=True) if p == pitch and o > onset]
                end = max(offset, min([stop, *again]))
        ends.append(end)
    return Score(score.onset_s, ends, score.pitch, score.velocity)


@given(
    scores(max_notes=15, max_onset_s=8),
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 127)), max_size=8),
    st.sampled_from([0.5, 10]),  # seconds a step: the slow pedals are forgotten ones too
)
def test_it_equals_the_slow_obvious_loops(score, pedal, step_s):
    pedal = sorted((t * step_s, v) for t, v in pedal)
    times, values = np.array(pedal, dtype=float).reshape(-1, 2).T
    assert apply_sustain(score, times, values) == slow(score, pedal)
