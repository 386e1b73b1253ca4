"""The gain of having the seed in sight, where it can be reckoned by hand."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import split_of
from stubs import Echo

from musictx.analysis.seed_gain import END_TOKENS, Place, gains, places, seed_gain
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


def test_a_stranger_shorter_than_the_seed_begins_again():
    model = Echo(CHORALE.vocab, LAG)
    tunes = [(np.arange(80) % 40).astype(np.uint16), np.arange(40, 70, dtype=np.uint16)]
    gains(model, CHORALE, [Place(tunes[0], [72, 80]), Place(tunes[1], [20, 28])], stranger=True)
    own, strange = model.read[:2]
    assert len(own) == len(strange) == 80  # BOS and all but the last
    assert strange[1:56] == [*range(40, 70), *range(40, 65)]
    assert strange[56:] == own[56:] == [*range(15, 40), *range(39)][: 80 - 56]


class Clock:
    """Knows one thing: where it is. At place t comes token t mod 88."""

    window, cycle = None, 1

    def __call__(self, ids):
        v = CHORALE.vocab.size
        logits = torch.full((*ids.shape, v), math.log((1 - SURE) / (v - 1)))
        places = torch.arange(ids.shape[1]) % 88  # after BOS the first token is at place 0
        logits[:, torch.arange(ids.shape[1]), places] = math.log(SURE)
        return logits


def test_what_a_model_knows_by_its_place_alone_no_seed_saves():
    pieces = [np.arange(3 * LAG) % 88] * 2
    found = places(split_of(*pieces), CHORALE, 2.4, 2, 2.4, 4)
    assert (gains(Clock(), CHORALE, found)[0] > 100).all(), "read without its beginning, the music stands elsewhere"
    assert (gains(Clock(), CHORALE, found, stranger=True)[0] == 0).all()


def test_pieces_count_by_their_tokens_and_intervals_are_over_pieces():
    long = [np.concatenate([tune(k, LAG), tune(k + 9 * (k % 2), LAG)]) for k in range(20)]  # every second one repeats
    gain, _ = gain_of(long)
    assert gain.low[0] < gain.mean[0] < gain.high[0]
    assert gain.high[0] - gain.low[0] > 0.5


@settings(max_examples=30)  # of half a thousand ids
@given(st.lists(st.integers(0, 387), min_size=400, max_size=600), st.floats(0.5, 3.0))
def test_a_performance_is_cut_where_its_clock_says(ids, part_s):
    ids = np.array([*ids, *[355] * 12])  # seconds, so that it lasts
    try:
        found = places(split_of(ids, ids), PERFORMANCE, 2.0, 3, part_s, 1)
    except UserError:
        return
    for k, cut in enumerate(found[0].cuts):
        assert PERFORMANCE.seconds(ids[:cut]) >= 2.0 + k * part_s - 1e-6
        assert PERFORMANCE.seconds(ids[: cut - 1]) < 2.0 + k * part_s


def test_what_cannot_be_measured_is_said():
    short = split_of(tune(0, 64), tune(1, 64))
    with pytest.raises(UserError, match=r"^0 pieces .* 2.4 s and 4.8 s"):
        places(short, CHORALE, 2.4, 2, 2.4, 4)
