import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from musictx.analysis.bootstrap import draw, interval, interval_of, percentiles
from musictx.errors import UserError


def test_two_pieces_by_hand():
    # resamples have the means 0, 1/2 and 1 with chances 1/4, 1/2, 1/4
    assert interval([0.0, 1.0]) == (0.5, 0.0, 1.0)
    assert interval([0.0, 1.0], confidence=0.4) == (0.5, 0.5, 0.5)


def test_nats_per_token_is_a_ratio_of_sums():
    # not (2 + 1) / 2, the mean of the pieces' own rates
    result = interval([20.0, 100.0], [10, 100])
    assert result.mean == pytest.approx(120 / 110)
    assert (result.low, result.high) == pytest.approx((1.0, 2.0))


def test_many_pieces_agree_with_the_normal_interval():
    values = np.random.default_rng(1).normal(3.0, 2.0, 400)
    result = interval(values)
    half = 1.96 * values.std() / math.sqrt(400)
    assert result.mean == pytest.approx(values.mean())
    assert (result.low, result.high) == pytest.approx((values.mean() - half, values.mean() + half), abs=0.1 * half)


def test_the_same_seed_gives_the_same_interval():
    values = np.arange(20.0) ** 2
    assert interval(values, random_seed=3) == interval(values, random_seed=3)
    assert interval(values, random_seed=3) != interval(values, random_seed=4)


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=30))
def test_the_interval_lies_within_the_values(values):
    result = interval(values, resamples=100)
    assert min(values) - 1e-9 <= result.low <= result.high <= max(values) + 1e-9


def test_one_piece_and_equal_pieces_have_no_width():
    assert interval([2.5]) == (2.5, 2.5, 2.5)
    assert interval([3.0, 6.0, 9.0], [1, 2, 3]) == pytest.approx((3.0, 3.0, 3.0))


def test_a_piece_without_tokens_changes_nothing_it_should_not():
    result = interval([4.0, 0.0], [2.0, 0.0])  # resamples of the empty piece alone have no rate
    assert result == (2.0, 2.0, 2.0)


def test_a_statistic_over_several_columns_keeps_pieces_together():
    a = np.array([1.0, 5.0, 2.0, 8.0])
    assert interval_of(lambda x, y: (x - y).mean(-1), a + 1, a) == pytest.approx((1.0, 1.0, 1.0))
    ratio = interval_of(lambda x, w: x.sum(-1) / w.sum(-1), 3 * a, a)
    assert ratio == pytest.approx((3.0, 3.0, 3.0))
    median = interval_of(lambda x: np.median(x, axis=-1), a)
    assert median.mean == 3.5
    assert 1.0 <= median.low < median.high <= 8.0


def test_both_forms_agree():
    values = np.random.default_rng(0).exponential(size=200)
    one, other = interval(values), interval_of(lambda x: x.mean(-1), values)
    assert one == pytest.approx(other, rel=0.03)


def test_a_resample_has_as_many_pieces_as_there_are():
    drawn = draw(7, 50, np.random.default_rng(0))
    assert drawn.shape == (50, 7)
    assert (drawn.sum(1) == 7).all()


def test_percentiles_leave_out_what_is_not_finite():
    figures = np.array([np.nan, 1.0, 2.0, 3.0, np.inf])
    assert percentiles(2.0, figures, 0.5) == (2.0, 1.5, 2.5)
    assert percentiles(2.0, np.array([np.nan]), 0.5) == (2.0, 2.0, 2.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"values": []}, "0 pieces: an interval needs at least 1"),
        ({"values": [1.0], "confidence": 95}, "confidence=95: "),
        ({"values": [1.0], "resamples": 0}, "resamples=0: "),
        ({"values": [1.0, 2.0], "weights": [1.0]}, "1 weights for 2 pieces"),
        ({"values": [1.0, 2.0], "weights": [0.0, 0.0]}, "not all 0"),
        ({"values": [1.0, 2.0], "weights": [3.0, -1.0]}, "0 or more"),
    ],
)
def test_what_makes_no_interval_is_told(arguments, message):
    with pytest.raises(UserError, match=message):
        interval(**arguments)


def test_columns_of_different_length_are_refused():
    with pytest.raises(UserError, match="columns of 2, 3 pieces"):
        interval_of(lambda x, y: x.sum(-1), np.zeros(2), np.zeros(3))
