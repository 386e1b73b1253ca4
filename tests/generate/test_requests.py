"""What a person can ask for: impossible values are refused where the request is made, and defaults have one place."""

from math import inf, nan

import numpy as np
import pytest

from musictx.errors import ConfigError
from musictx.generate.primer import Part
from musictx.generate.requests import Accompany, Continue, Fill, Length, Own, Sampling
from musictx.tokenizers.rules import Rules


def refusal(make):
    with pytest.raises(ConfigError) as refused:
        make()
    return refused.value.field, str(refused.value.got)


@pytest.mark.parametrize(
    ("make", "field", "values"),
    [
        (lambda x: Sampling(temperature=x), "temperature", (-1.0, nan, inf, 1e-4, 1e39, None, "1")),
        (lambda x: Sampling(top_k=x), "top_k", (0,)),
        (lambda x: Sampling(top_p=x), "top_p", (1.5, "much", nan)),
        (lambda x: Sampling(min_p=x), "min_p", (0.0,)),
        (lambda x: Sampling(guard=x), "guard", (None, "no", 1)),
        (lambda x: Sampling(seed_guidance=x), "seed_guidance", (-1.0, "much", nan, inf)),
        (lambda x: Length(seconds=x), "Length.seconds", (0.0, nan, inf, "3", True, [1])),
        (lambda x: Length(bars=x), "Length.bars", (-1,)),
        (lambda x: Length(tokens=x), "Length.tokens", (2_000_000, 0)),
        (lambda x: Length(seconds=x, bars=2), "Length.seconds", (1.0,)),
        (lambda x: Part(seconds=x), "seed_seconds", (-1.0, nan)),
        (lambda x: Part(seconds=x, bars=3), "seed_seconds", (1.0,)),
        (lambda x: Part(bars=x), "seed_bars", (0, 1.5, "1")),
        (lambda x: Part(until_s=x), "from_s", (0.0, nan)),
        (lambda x: Part(side=x), "seed_from", ("middle", 3, None)),
        (lambda x: Rules(scale=x), "scale", (3,)),
        (lambda x: Continue(variations=x), "variations", (10**12, 0, 2.5, "2", True)),
        (lambda x: Continue(random_seed=x), "random_seed", (-1, 2**63)),
        (lambda x: Continue(rows_at_once=x), "rows_at_once", (0,)),
        (lambda x: Continue(rules=x), "rules", ({}, None)),
        (lambda x: Continue(rules=Rules(masks=x, lowest=30)), "masks", (False,)),
        (lambda x: Accompany(rules=Rules(grid=x)), "grid", ("1/16", "swing")),
        (lambda x: Fill(window=x), "Continue.window", (7, 0)),
        (lambda x: Fill(sampling=Sampling(seed_guidance=x)), "seed_guidance", (1.0,)),
        (lambda x: Fill(length=Length(tokens=x)), "Length.tokens", (3,)),
        (lambda x: Accompany(sampling=Sampling(guard=x)), "guard", (True,)),
        (lambda x: Accompany(transpose=x), "transpose", (30, -20, 1.5, "up")),
        (lambda x: Accompany(variations=x), "variations", (0,)),
    ],
)
def test_impossible_wishes_are_refused(make, field, values):
    for value in values:
        assert refusal(lambda value=value: make(value)) == (field, str(value))


def test_a_number_of_numpy_is_a_number():
    lengths = Length(seconds=3), Length(seconds=np.float32(3))  # type: ignore[arg-type]
    assert lengths[0] == lengths[1]
    assert Continue(variations=np.int64(2)).variations == 2  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("region", "says"),
    [
        ({}, "from_s=null: give it with to_s="),
        ({"from_s": 2.0}, "from_s=2.0: give to_s= too"),
        ({"to_s": 2.0}, "to_s=2.0: give from_s= too"),
        ({"from_bar": 3}, "from_bar=3: give to_bar= too"),
        ({"to_bar": 3}, "to_bar=3: give from_bar= too"),
        ({"from_s": 2.0, "to_s": 3.0, "to_bar": 3}, "to_bar=3: from_s= is given too: give seconds or bars"),
        ({"to_s": 3.0, "from_bar": 3}, "from_bar=3: to_s= is given too: give seconds or bars"),
    ],
)
def test_a_fill_of_one_piece_needs_one_region(region, says):
    with pytest.raises(ConfigError, match=f"^{says}"):
        Fill(**region).check_region()
    for whole in (Fill(from_s=1.0, to_s=2.0), Fill(from_bar=1, to_bar=2)):
        whole.check_region()


@pytest.mark.parametrize(
    ("bars", "says"),
    [
        ({"from_bar": 3}, "from_bar=3: give to_bar= too"),
        ({"to_bar": 3, "rewrite": "A"}, "to_bar=3: give from_bar= too"),
        ({"from_bar": 3, "to_bar": 4}, "from_bar=3: it is for bars to rewrite: give rewrite= too"),
    ],
)
def test_bars_to_rewrite_have_both_ends_and_voices(bars, says):
    with pytest.raises(ConfigError, match=f"^{says}"):
        Accompany(**bars)


MIN_P: Own = {"top_p": None, "min_p": 0.02}
NUCLEUS: Own = {"top_p": 0.9}


@pytest.mark.parametrize(
    ("given", "own", "filters"),
    [
        ({}, {}, (0.98, None)),  # a bundle that says nothing
        ({}, MIN_P, (None, 0.02)),
        ({}, NUCLEUS, (0.9, None)),
        ({"top_p": 0.95}, MIN_P, (0.95, None)),  # a person has the last word
        ({"top_p": None}, MIN_P, (None, None)),
        ({"min_p": 0.1}, MIN_P, (None, 0.1)),
        ({"min_p": 0.1}, {}, (0.98, 0.1)),
        ({"top_p": None, "min_p": 0.1}, NUCLEUS, (None, 0.1)),
    ],
)
def test_a_bundle_says_which_filters_suit_it_and_a_person_has_the_last_word(given, own, filters):
    suited = Sampling(**given).suited(own)
    assert (suited.top_p, suited.min_p) == filters
    assert suited.suited(MIN_P) == suited  # settled
