import math

import numpy as np
import pytest

from musictx.analysis.distance import Grid, compare, compare_all
from musictx.errors import UserError


def test_the_density_is_the_sum_of_gaussians():
    sample, other = np.array([0.0, 1.0, 5.0]), np.array([2.0, 3.0, 9.0])
    grid = Grid.over((sample, other), 9.0)
    at = grid.low + grid.step * np.arange(1024)
    bandwidth = math.sqrt((sample.var() + other.var()) / 2) * 3 ** (-1 / 5)  # Scott's rule, for both samples
    weights = np.array([2.0, 0.0, 1.0])
    kernels = np.exp(-0.5 * ((at[:, None] - sample) / bandwidth) ** 2) / (bandwidth * math.sqrt(2 * math.pi))
    density = grid.densities(sample, [weights])[0] / grid.step
    np.testing.assert_allclose(density, kernels @ weights / 3, atol=2e-3)


def test_pieces_of_one_kind_are_alike_and_of_two_kinds_are_not():
    rng = np.random.default_rng(0)
    real, same, other = rng.normal(size=60), rng.normal(size=50), rng.normal(6.0, 1.0, 50)
    alike, apart = compare(real, same, resamples=50), compare(real, other, resamples=50)
    assert alike.mean > 0.85
    assert 0 < alike.low <= alike.high <= 1
    assert apart.high < 0.2 < alike.low


def test_intervals_of_few_pieces_hold_what_many_show():
    # 1 for sets alike; the plain percentiles of these resamples end below 0.99 in every case
    rng = np.random.default_rng(1)
    found = [compare(rng.normal(size=40), rng.normal(size=40), resamples=100) for _ in range(10)]
    assert sum(figure.low <= 0.99 <= figure.high for figure in found) >= 8
    assert all(figure.mean < 0.99 for figure in found)


def test_rounding_is_no_variety():
    noisy = 0.3 + np.array([0.0, 1e-16, 2e-16, 1e-16])
    assert compare(noisy, np.full(4, 0.3), resamples=5) == pytest.approx((1, 1, 1))
    apart = compare(np.ones(4), np.full(4, 2.0), resamples=5)
    assert apart == pytest.approx((0, 0, 0))


@pytest.mark.parametrize("odd", [2.667, 4.0])
def test_one_odd_piece_of_many_is_one_of_many(odd):
    # nearly all chorales sound in four voices throughout: a rest in one piece must not make the sets unlike
    real, generated = np.array([3.75, *[4.0] * 63]), np.array([odd, *[4.0] * 63])
    result = compare(real, generated, resamples=5)
    # of all pairs within a set 1 in 32 has the odd piece, of those between the sets 1 in 64 has each of them
    assert 1 - 2 / 64 - 1e-6 <= result.mean <= 1


def test_two_pieces_are_enough_and_one_is_not():
    result = compare(np.array([0.0, 1.0]), np.array([0.5, 2.0]), resamples=50)
    assert all(map(math.isfinite, result))
    with pytest.raises(UserError, match="1 real and 2 generated pieces"):
        compare(np.zeros(1), np.zeros(2))


def test_pieces_without_a_value_are_left_out_feature_by_feature():
    nan = float("nan")
    a, b = np.array([1.0, 2.0, nan, 4.0]), np.array([1.5, nan, 3.0])
    columns = ({"x": a, "groove": np.full(4, nan), "only real": a}, {"x": b, "groove": np.full(3, nan)})
    assert compare_all(*columns, resamples=5) == {"x": compare(a[[0, 1, 3]], b[[0, 2]], resamples=5)}
    with pytest.raises(UserError, match="x: 3 real and 1 generated pieces"):
        compare_all({"x": a}, {"x": b[:2]})
