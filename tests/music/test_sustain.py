from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import score_of, scores

from musictx.music.score import Score
from musictx.music.ticks import pedal_spans, sustain


def sounding(score, pedal_s, values):
    spans = pedal_spans(pedal_s, values, score.duration_s)
    return replace(score, offset_s=sustain(score.onset_s, score.offset_s, score.pitch, spans))


def held(notes, pedal):
    times, values = np.array(pedal, dtype=float).reshape(-1, 2).T
    score = score_of(*notes)
    return sounding(score, times, values).offset_s.tolist()


@pytest.mark.parametrize(
    ("notes", "pedal", "ends"),
    [
        ([(0, 1, 60)], [(0.5, 127), (3, 0)], [3]),
        ([(0, 1, 60), (2, 2.5, 60), (1.5, 1.7, 61)], [(0.5, 64), (3, 63)], [2, 3, 3]),  # struck again
        ([(0, 0.4, 60), (0, 4, 61)], [(0.5, 127), (3, 0)], [0.4, 4]),  # before and after the pedal
        ([(0, 1, 60)], [(0.5, 63), (3, 0)], [1]),  # half pressed
        ([(0, 1, 60), (0, 5, 64)], [(0.5, 127)], [5, 5]),  # it never comes up
        ([(0, 1, 60)], [(0.5, 127), (7, 100)], [7]),
        ([(0, 1, 60), (70, 71, 64)], [(0.5, 127)], [1, 71]),  # forgotten to the end of the music
        ([(0, 1, 60), (70, 71, 64)], [(0.5, 127), (64.5, 0)], [1, 71]),
        ([(0, 1, 60), (70, 71, 64)], [(0.5, 127), (60.5, 0)], [60.5, 71]),  # a minute is a long rest for a foot
        ([(0, 1, 60), (80, 81, 64)], [(0.5, 127), (70, 0), (80.5, 127), (83, 0)], [1, 83]),  # one of two
        ([], [(0, 127)], []),
        ([(0, 1, 60)], [], [1]),
    ],
)
def test_what_the_pedal_does(notes, pedal, ends):
    assert held(notes, pedal) == ends


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
    assert sounding(score, times, values) == slow(score, pedal)
