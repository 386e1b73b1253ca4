"""Held-out pieces cut in two: what belongs to the seed, and which continuation a model takes for the composer's."""

import math

import numpy as np
import pytest
from strategies import split_of
from stubs import Echo

from musictx.analysis.held_out import Beginnings, beginnings, identify
from musictx.errors import UserError
from musictx.generate.primer import Primer
from musictx.generate.prompt import make_prompt
from musictx.music.score import Meter, Score
from musictx.tokenizers.chorale import ChoraleTokenizer
from musictx.tokenizers.performance import PerformanceTokenizer

CHORALE, PERFORMANCE = ChoraleTokenizer(), PerformanceTokenizer()


def chorale(steps=24):
    """A soprano of quarters over a bass that is held from step 8 to 20; a sixteenth is 0.15 s."""
    grid = np.full((steps, 4), -1)
    grid[:, 0] = 70 + np.arange(steps) // 4
    grid[8:20, 3] = 50
    return CHORALE.encode_grid(grid)


def test_a_grid_is_cut_where_its_models_begin_and_has_what_they_hold():
    held = beginnings(split_of(chorale(), chorale()), CHORALE, 2, 1.84, 1.2)  # step 12.27: cut at 12
    assert held.seed_s == pytest.approx(1.8, abs=1e-5)
    seed, true = held.seeds[1], held.true[1]
    assert [seed.pitch.tolist(), true.pitch.tolist()] == [[70, 71, 50, 72], [50, 73, 74]]
    assert true.onset_s == pytest.approx([0, 0, 0.6], abs=1e-5)
    assert true.offset_s == pytest.approx([1.2, 0.6, 1.2], abs=1e-5)
    prompt = make_prompt(Primer(seed, held.seed_s, Meter(seed.quarter_s)), CHORALE, None, "cpu")
    assert prompt.start_s == pytest.approx(held.seed_s, abs=1e-5)


def test_a_performance_has_nothing_over_the_cut():
    score = Score([0.0, 0.5, 2.5], [4.0, 0.9, 3.0], [50, 60, 62], [80, 80, 80])
    held = beginnings(split_of(*[PERFORMANCE.encode(score)] * 2), PERFORMANCE, 2, 2.0, 2.0)
    assert held.seed_s == 2.0
    assert held.seeds[0].offset_s.max() == 2.0
    assert held.true[0].pitch.tolist() == [62]


def test_too_few_are_refused():
    split = split_of(chorale())
    with pytest.raises(UserError, match="seed_seconds= or length_seconds="):
        beginnings(split, CHORALE, 2, 1.8, 1.2)
    assert len(beginnings(split, CHORALE, 2, 1.8, 1.2, least=1).seeds) == 1
    assert len(beginnings(split, CHORALE, 2, 0.01, 1.2, least=0).seeds) == 0


STEP_S, STEPS = 0.15, 16


def tune(seed, key=0, step_s=STEP_S):
    pitch = 48 + key + np.random.default_rng(seed).choice([0, 2, 4, 5, 7, 9, 11], (STEPS, 4)) + 12 * np.arange(4)[::-1]
    onset_s = np.repeat(np.arange(STEPS) * step_s, 4)
    return Score(onset_s, onset_s + step_s, pitch.reshape(-1), np.full(4 * STEPS, 80), step_s * 4)


PIECES = Beginnings([tune(k, k % 5) for k in range(12)], [tune(k, k % 5) for k in range(12)], STEPS * STEP_S, 2.4)


def test_a_model_that_remembers_knows_the_true_continuation_and_one_that_does_not_guesses():
    lag = len(CHORALE.encode(tune(0)))
    found = identify(Echo(CHORALE.vocab, lag, 0.99), CHORALE, PIECES)
    assert found.right == (1.0, 1.0, 1.0)
    assert found.nats.shape == (12, 10)
    assert found.nats[:, 0] == pytest.approx(0.0, abs=0.05)
    blank = identify(Echo(CHORALE.vocab, 10**6), CHORALE, PIECES)
    assert blank.right.mean == pytest.approx(0.1)
    assert blank.nats == pytest.approx(math.log(CHORALE.vocab.size), rel=1e-5)


def test_what_is_offered_is_in_the_seeds_key_and_pace(monkeypatch):
    monkeypatch.setattr("musictx.analysis.held_out.OTHERS", 2)
    scale = {0, 2, 4, 5, 7, 9, 11}
    slow = Beginnings([tune(k) for k in range(3)], [tune(k + 5, 1 + k, STEP_S * 1.5) for k in range(3)], 2.4, 3.6)
    model = Echo(PERFORMANCE.vocab, 1)
    identify(model, PERFORMANCE, slow)
    begun = len(PERFORMANCE.encode(tune(0)))
    for n, ids in enumerate(model.read):
        score = PERFORMANCE.decode(np.array(ids[1 + begun :]))
        if n % 3:  # another piece's
            assert {int(p) % 12 for p in score.pitch} <= scale
            assert score.onset_s.max() == pytest.approx(15 * STEP_S, rel=0.1)
        else:
            assert score.onset_s.max() == pytest.approx(15 * STEP_S * 1.5, rel=0.1)


def test_the_others_are_other_pieces_and_a_function_of_the_seed():
    one, two, other = (identify(Echo(CHORALE.vocab, 64), CHORALE, PIECES, random_seed=s).nats for s in (0, 0, 1))
    assert one.tolist() == two.tolist() != other.tolist()
    assert (one[:, 1:] > one[:, :1] + 1).all()  # none is the piece itself
