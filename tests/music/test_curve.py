"""Numbers that change over time, as text."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from musictx.errors import ConfigError
from musictx.music.curve import Curve, parse_curve


def parsed(text):
    return parse_curve("density", text, 1.0, 30.0, "notes a second")


@given(steps=st.lists(st.tuples(st.integers(1, 50), st.integers(10, 300)), min_size=1, max_size=6))
def test_a_curve_has_the_values_that_are_written_at_the_moments_that_are_written(steps):
    at_s = [0.0, *np.cumsum([step for step, _ in steps[1:]]).tolist()]
    values = [value / 10 for _, value in steps]
    text = ", ".join(f"{at} {value}" for at, value in zip(at_s, values, strict=True))
    assert parsed(text) == Curve(tuple(at_s), tuple(values))


def test_a_number_is_a_curve_that_never_changes():
    for given_as in (6, 6.0, "6", " 6.0 ", np.float64(6), "0 6"):
        assert parsed(given_as) == Curve((0.0,), (6.0,))


@pytest.mark.parametrize(
    "text",
    ["", "1 3", "0 3, 10", "0 3, 10 40", "0 3, 0 4", "0 3; 10 8", "0 3, 9999 8", True, [3]],
)
def test_what_is_no_curve_is_refused_in_a_line(text):
    with pytest.raises(ConfigError) as refused:
        parsed(text)
    assert refused.value.field == "density"
    assert "'0 1, 10 30'" in str(refused.value)
