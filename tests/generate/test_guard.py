import numpy as np
import pytest

from musictx.generate.batch import LONGEST_LAG, LOOK, caught, warmed

RNG = np.random.default_rng(0)
FREE = RNG.integers(0, 388, (1, 400))


def looping(lag, other=0.0):
    row = np.tile(RNG.integers(0, 388, lag), 400 // lag + 1)[:400]
    changed = RNG.random(400) < other
    return np.where(changed, RNG.integers(0, 388, 400), row)[None]


@pytest.mark.parametrize(
    ("row", "is_loop"),
    [
        (FREE, False),
        (looping(7), True),
        (looping(LONGEST_LAG), True),
        (looping(100), False),
        (looping(16, other=0.01), True),
        (looping(16, other=0.2), False),  # a variation
        (RNG.choice([60, 188, 300, 310], (1, 400)), True),  # a stuck note: on, off, and two waits in any order
        (RNG.choice([60, 188, 300, 310, 320, 330, 62, 190], (1, 400)), False),
        (looping(7)[:, : LOOK + LONGEST_LAG - 1], False),  # too little music
        (looping(7)[:, : LOOK + LONGEST_LAG], True),
    ],
)
def test_a_loop_is_noticed_and_free_music_is_not(row, is_loop):
    assert caught(row).tolist() == [is_loop]


def test_a_row_is_warmed_until_it_has_left_its_loop():
    factor, seen = np.ones(2), []
    for rows in [np.concatenate([looping(7), FREE])] * 7 + [np.concatenate([FREE, FREE])]:
        factor = warmed(factor, rows)
        seen.append(factor.tolist())
    assert [*seen[:2], *seen[-2:]] == [[1.25, 1.0], [1.5625, 1.0], [3.0, 1.0], [1.0, 1.0]]
