import numpy as np

from musictx.generate.batch import LONGEST_LAG, LOOK, caught, warmed

RNG = np.random.default_rng(0)
FREE = RNG.integers(0, 388, (1, 400))


def looping(lag, other=0.0):
    row = np.tile(RNG.integers(0, 388, lag), 400 // lag + 1)[:400]
    changed = RNG.random(400) < other
    return np.where(changed, RNG.integers(0, 388, 400), row)[None]


def test_a_loop_is_noticed_and_free_music_is_not():
    assert caught(np.concatenate([FREE, looping(7), looping(LONGEST_LAG), looping(100)])).tolist() == [
        *(False, True, True, False)
    ]


def test_a_loop_with_little_mistakes_is_one_and_a_variation_is_not():
    assert caught(looping(16, other=0.01)).tolist() == [True]
    assert caught(looping(16, other=0.2)).tolist() == [False]


def test_a_stuck_note_is_noticed():
    drummed = RNG.choice([60, 188, 300, 310], (1, 400))  # on, off, and two waits in any order
    assert caught(drummed).tolist() == [True]
    assert caught(RNG.choice([60, 188, 300, 310, 320, 330, 62, 190], (1, 400))).tolist() == [False]


def test_too_little_music_is_no_loop():
    assert caught(looping(7)[:, : LOOK + LONGEST_LAG - 1]).tolist() == [False]
    assert caught(looping(7)[:, : LOOK + LONGEST_LAG]).tolist() == [True]


def test_a_row_is_warmed_until_it_has_left_its_loop():
    factor, rows = np.ones(2), np.concatenate([looping(7), FREE])
    seen = []
    for _ in range(7):
        factor = warmed(factor, rows)
        seen.append(factor.tolist())
    assert seen[0] == [1.25, 1.0]
    assert seen[1] == [1.5625, 1.0]
    assert seen[-1] == [3.0, 1.0]
    assert warmed(factor, np.concatenate([FREE, FREE])).tolist() == [1.0, 1.0]
