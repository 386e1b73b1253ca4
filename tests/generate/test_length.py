"""How far a row has come towards the length asked for."""

import numpy as np
import pytest

from musictx.generate.batch import Progress
from musictx.generate.requests import Length
from musictx.music.score import Meter
from musictx.tokenizers.chorale import ChoraleTokenizer
from musictx.tokenizers.performance import PerformanceTokenizer

TOK, HYMN = PerformanceTokenizer(), ChoraleTokenizer()


def test_lengths_in_seconds():
    lengths = Length(seconds=3.0), Length(bars=3), Length(), Length(tokens=3)
    assert [length.in_seconds(Meter(0.5)) for length in lengths] == [3.0, 6.0, 20.0, None]


def test_bars_are_as_long_as_the_file_has_them_there():
    meter = Meter(0.2, (1, 8), np.array([0.0, 0.1, 1.3, 2.5]), 0.1)  # an upbeat of an eighth, then 6/8
    assert Length(bars=4).in_seconds(meter, 2.5) == pytest.approx(4.8)
    assert Length(bars=1).in_seconds(meter, 0.1) == pytest.approx(1.2)
    assert Length(bars=1.5).in_seconds(meter, 0.7) == pytest.approx(1.8)


def test_the_clock_of_a_performance_counts_what_is_new():
    wait = TOK.silence(1.0)
    p = Progress(Length(seconds=4.0), Meter(0.5), TOK, wait, 0.5)
    assert [p.after(np.tile(wait, n)) for n in (1, 3)] == [0.25, 0.75]


def test_only_whole_steps_of_a_grid_count():
    p = Progress(Length(seconds=0.3), Meter(0.6), HYMN, np.zeros(0, np.uint16), 0.6)
    ids = np.full(9, HYMN.rest, np.uint16)
    assert [p.after(ids[:n]) for n in (3, 5, 7, 9)] == pytest.approx([0, 0.5, 0.5, 1.0])
