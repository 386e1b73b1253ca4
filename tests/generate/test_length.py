"""How far a row has come towards the length asked for."""

import numpy as np
import pytest

from musictx.generate.batch import Progress
from musictx.generate.requests import Length
from musictx.tokenizers.chorale import ChoraleTokenizer
from musictx.tokenizers.performance import PerformanceTokenizer

TOK, HYMN = PerformanceTokenizer(), ChoraleTokenizer()


def test_lengths_in_seconds():
    lengths = Length(seconds=3.0), Length(bars=3), Length(), Length(tokens=3)
    assert [length.in_seconds(2.0) for length in lengths] == [3.0, 6.0, 20.0, None]


def test_the_clock_of_a_performance_counts_what_is_new():
    wait = TOK.silence(1.0)
    p = Progress(Length(seconds=4.0), 2.0, TOK, wait, 0.5)
    assert [p.after(np.tile(wait, n)) for n in (1, 3)] == [0.25, 0.75]


def test_only_whole_steps_of_a_grid_count():
    p = Progress(Length(seconds=0.3), 2.0, HYMN, np.zeros(0, np.uint16), 0.6)
    ids = np.full(9, HYMN.rest, np.uint16)
    assert [p.after(ids[:n]) for n in (3, 5, 7, 9)] == pytest.approx([0, 0.5, 0.5, 1.0])
