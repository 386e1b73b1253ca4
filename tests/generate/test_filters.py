from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from musictx.generate.filters import draw, filter_logits
from musictx.generate.requests import PLAIN

P = [0.5, 0.3, 0.15, 0.05]
LOGITS = np.log([P])


# a filter -> its values -> how many of the four stay
STAY: dict[str, dict[float | None, int]] = {
    "top_k": {2: 2, 9: 4},
    "top_p": {0.5: 1, 0.51: 2, 0.84: 3, 0.9: 3, 1e-9: 1, 1e-300: 1, 1.0: 4, None: 4},
    "min_p": {0.2: 3, 0.31: 2, 1.0: 1},
}


@pytest.mark.parametrize("name", STAY)
def test_what_a_filter_keeps(name):
    for value, n in STAY[name].items():
        assert kept(LOGITS, **{name: value}) == [k < n for k in range(4)]
    assert kept(LOGITS, top_k=3, top_p=0.84) == [True, True, False, False]  # 0.8 of the 0.95 that top_k left


def kept(logits, **settings):
    return np.isfinite(filter_logits(logits, replace(PLAIN, **settings), 1.0))[0].tolist()


def test_temperature_divides_the_logits():
    np.testing.assert_allclose(filter_logits(LOGITS, PLAIN, 2.0), LOGITS / 2)
    rows = filter_logits(LOGITS.repeat(2, 0), PLAIN, np.array([[2.0], [4.0]]))
    np.testing.assert_allclose(rows, np.concatenate([LOGITS / 2, LOGITS / 4]))


@pytest.mark.parametrize(
    ("uniform", "id"), [(0.0, 0), (0.4999, 0), (0.5001, 1), (0.7999, 1), (0.8001, 2), (0.9501, 3), (1 - 2**-53, 3)]
)
def test_a_draw_is_where_the_distribution_function_exceeds_the_uniform(uniform, id):
    chance = np.array([[uniform]])
    assert draw(LOGITS, PLAIN, 1.0, chance).tolist() == [id]
    assert draw(LOGITS[:, ::-1], replace(PLAIN, temperature=0.0), 0.0, chance).tolist() == [3]  # always the likeliest


@given(
    st.lists(st.one_of(st.floats(-200, 200), st.just(-float("inf"))), min_size=1, max_size=12),
    st.floats(0, 1, exclude_max=True),
    st.sampled_from([1e-3, 0.5, 1.0, 1e3]),
    st.sampled_from([{}, {"top_k": 2}, {"top_p": 0.5}, {"min_p": 0.3}, {"top_p": 1e-300}]),
)
def test_what_is_forbidden_is_never_drawn(values, uniform, temperature, settings):
    logits = np.array([[*values, 0.0]])
    drawn = draw(logits, replace(PLAIN, **settings), temperature, np.array([[uniform]]))
    assert np.isfinite(logits[0, drawn[0]])
