import numpy as np

from musictx.generate.batch import LONGEST_LAG, LOOK, in_loop, next_warmth

RNG = np.random.default_rng(0)
FREE = RNG.integers(0, 388, (1, 400))


def looping(lag, other=0.0):
    row = np.tile(RNG.integers(0, 388, lag), 400 // lag + 1)[:400]
    changed = RNG.random(400) < other
    return np.where(changed, RNG.integers(0, 388, 400), row)[None]


def test_a_loop_is_noticed_and_free_music_is_not():
    short, few = LOOK + LONGEST_LAG, [60, 188, 300, 310]  # on, off, and two waits
    stuck = [RNG.choice(few, (1, 400)), RNG.choice([*few, 320, 330, 62, 190], (1, 400))]
    rows = [FREE, looping(7), looping(LONGEST_LAG), looping(100), looping(16, other=0.01), looping(16, other=0.2)]
    assert in_loop(np.concatenate(rows + stuck)).tolist() == [False, True, True, False, True, False, True, False]
    assert [in_loop(looping(7)[:, :n]).tolist() for n in (short - 1, short)] == [[False], [True]]


def test_a_row_is_warmed_until_it_has_left_its_loop():
    factor, seen = np.ones(2), []
    for rows in [np.concatenate([looping(7), FREE])] * 7 + [np.concatenate([FREE, FREE])]:
        factor = next_warmth(factor, rows)
        seen.append(factor.tolist())
    assert [*seen[:2], *seen[-2:]] == [[1.25, 1.0], [1.5625, 1.0], [3.0, 1.0], [1.0, 1.0]]
