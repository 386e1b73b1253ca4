import math

import numpy as np
import pytest

from musictx.analysis.bootstrap import interval, interval_of, percentiles
from musictx.errors import UserError


def test_two_pieces_by_hand():
    # resamples have the means 0, 1/2 and 1 with chances 1/4, 1/2, 1/4
    assert interval([0.0, 1.0]) == (0.5, 0.0, 1.0)


def test_nats_per_token_is_a_ratio_of_sums():
    # not (2 + 1) / 2, the mean of the pieces' own rates
    result = interval([20.0, 100.0], [10, 100])
    assert result.mean == pytest.approx(120 / 110)
    assert (result.low, result.high) == pytest.approx((1.0, 2.0))
    assert interval([4.0, 0.0], [2.0, 0.0]) == (2.0, 2.0, 2.0)  # resamples of the empty piece alone have no rate


def test_many_pieces_agree_with_the_normal_interval():
    values = np.random.default_rng(1).normal(3.0, 2.0, 400)
    result = interval(values)
    half = 1.96 * values.std() / math.sqrt(400)
    assert result.mean == pytest.approx(values.mean())
    assert (result.low, result.high) == pytest.approx((values.mean() - half, values.mean() + half), abs=0.1 * half)


def test_a_statistic_over_several_columns_keeps_pieces_together():
    a = np.random.default_rng(0).exponential(size=200)
    ratio = interval_of(lambda x, w: x.sum(-1) / w.sum(-1), 3 * a, a)
    assert ratio == pytest.approx((3.0, 3.0, 3.0))
    assert interval_of(lambda x: x.mean(-1), a) == pytest.approx(interval(a), rel=0.03)


def test_percentiles_leave_out_what_is_not_finite():
    figures = np.array([np.nan, 1.0, 2.0, 3.0, np.inf])
    assert percentiles(2.0, figures) == pytest.approx((2.0, 1.05, 2.95))
    assert percentiles(2.0, np.array([np.nan])) == (2.0, 2.0, 2.0)


def test_what_makes_no_interval_is_said():
    with pytest.raises(UserError, match="0 pieces"):
        interval([])
    with pytest.raises(UserError, match="^2 pieces "):
        interval([1.0, 2.0], [0.0, 0.0])
