"""The gain of having the seed in sight, where it can be reckoned by hand."""

import math

import numpy as np
import pytest
from strategies import split_of
from stubs import Echo

from musictx.analysis.seed_gain import END_TOKENS, places, seed_gain
from musictx.errors import UserError
from musictx.tokenizers import build_tokenizer

CHORALE, PERFORMANCE = build_tokenizer("chorale"), build_tokenizer("performance")
LAG, SURE = 64, 0.9


def tune(seed, n):
    return np.random.default_rng(seed).integers(0, 88, n)


def gain_of(pieces, parts=1):
    found = places(split_of(*pieces), CHORALE, 2.4, parts, 2.4, 4)  # 16 sixteenths of four voices are 64 tokens
    return seed_gain(Echo(CHORALE.vocab, LAG, SURE), CHORALE, found, 2.4), found


def test_the_gain_is_what_the_seed_said():
    pieces = [np.concatenate([tune(k, LAG), tune(k, LAG), tune(k, LAG)]) for k in range(3)]
    gain, found = gain_of(pieces, 2)
    assert [place.cuts for place in found] == [[64, 128, 192]] * 3
    # the bare reading has the last 17 tokens of 64: of the first part it cannot foretell 47, of the second it can all
    said = (math.log(SURE) + math.log(CHORALE.vocab.size)) * (LAG - END_TOKENS) / LAG
    assert gain.mean == pytest.approx([said, 0.0], abs=1e-5)
    assert gain.low == pytest.approx(gain.mean)
    assert gain.seconds.tolist() == [2.4, 4.8]
    assert (gain.pieces, gain.tokens.tolist()) == (3, [128, 192])


def test_a_seed_that_says_nothing_of_what_follows_gains_nothing_and_one_that_misleads_loses():
    gain, _ = gain_of([np.concatenate([tune(k, LAG), tune(k + 9, LAG)]) for k in range(3)])
    assert gain.mean[0] < -1


@pytest.mark.parametrize("part_s", [0.5, 2.7])
def test_a_performance_is_cut_where_its_clock_says(part_s):
    ids = np.concatenate([np.random.default_rng(0).integers(0, 300, 500), [355] * 12])  # short waits, then seconds
    found = places(split_of(ids, ids), PERFORMANCE, 2.0, 3, part_s, 1)
    for k, cut in enumerate(found[0].cuts):
        assert PERFORMANCE.seconds(ids[:cut]) >= 2.0 + k * part_s - 1e-6
        assert PERFORMANCE.seconds(ids[: cut - 1]) < 2.0 + k * part_s


def test_what_cannot_be_measured_is_said():
    short = split_of(tune(0, 64), tune(1, 64))
    with pytest.raises(UserError, match=r"^0 pieces .* 2.4 s and 4.8 s"):
        places(short, CHORALE, 2.4, 2, 2.4, 4)
