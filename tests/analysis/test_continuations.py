"""Held-out pieces cut in two: what belongs to the seed, and what to the continuation."""

import numpy as np
import pytest
from strategies import split_of

from musictx.analysis.continuations import beginnings
from musictx.errors import UserError
from musictx.generate.primer import Primer, make_prompt
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
    prompt = make_prompt(Primer(seed, held.seed_s, Meter(seed.quarter_s)), CHORALE, None)
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
