"""What a person can ask for: impossible values are refused where the request is made, and defaults have one place."""

from math import inf, nan

import numpy as np
import pytest

from musictx.errors import ConfigError
from musictx.generate.primer import Part
from musictx.generate.requests import PLAIN, Accompany, Continue, Fill, Length, Own, Sampling
from musictx.tokenizers.rules import Rules


def refusal(make):
    with pytest.raises(ConfigError) as refused:
        make()
    return refused.value.field, str(refused.value.got)


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("temperature", (-1.0, nan, inf, 1e-4, 1e39)),
        ("top_k", (0,)),
        ("top_p", (1.5, "much", nan)),
        ("min_p", (0.0,)),
        ("typical", (-1.0,)),
        ("seed_guidance", (-1.0, "much", nan, inf)),
    ],
)
def test_impossible_draws_are_refused(field, values):
    for value in values:
        assert refusal(lambda value=value: Sampling(**{field: value})) == (field, str(value))


@pytest.mark.parametrize(
    ("make", "field", "values"),
    [
        (lambda x: Continue(max_tokens=x), "max_tokens", (10**30, 0)),
        (lambda x: Fill(max_tokens=x, variations=1000), "max_tokens", (1001,)),
        (lambda x: Continue(variations=x), "variations", (10**12, 0)),
        (lambda x: Continue(draws=x, variations=3), "draws", (1001, 2)),
        (lambda x: Continue(rank=x), "rank", ("beauty",)),
        (lambda x: Continue(random_seed=x), "random_seed", (-1, 2**63)),
        (lambda x: Continue(rows_at_once=x), "rows_at_once", (0,)),
        (lambda x: Continue(rules=Rules(masks=x, lowest=30)), "masks", (False,)),
        (lambda x: Fill(window=x), "Continue.window", (7, 0)),
        (lambda x: Continue(out_of_range=x), "out_of_range", ("clamp",)),
        (lambda x: Fill(sampling=Sampling(seed_guidance=x)), "seed_guidance", (1.0,)),
        (lambda x: Fill(length=Length(notes=x)), "Length.notes", (3,)),
        (lambda x: Fill(length=Length(tokens=x)), "Length.tokens", (3,)),
        (lambda x: Accompany(sampling=Sampling(guard=x)), "guard", (True,)),
        (lambda x: Accompany(line=x), "line", ("lowest",)),
        (lambda x: Accompany(transpose=x), "transpose", (30, -20)),
        (lambda x: Accompany(variations=x), "variations", (0,)),
    ],
)
def test_impossible_requests_are_refused(make, field, values):
    for value in values:
        assert refusal(lambda value=value: make(value)) == (field, str(value))


@pytest.mark.parametrize("region", [{}, {"from_s": 2.0}, {"from_s": 2.0, "to_s": 3.0, "to_bar": 3}, {"from_bar": 2}])
def test_a_fill_of_one_piece_needs_one_region(region):
    assert refusal(Fill(**region).check_region)[0] == "from_s"
    for whole in (Fill(from_s=1.0, to_s=2.0), Fill(from_bar=1, to_bar=2)):
        whole.check_region()


MIN_P: Own = {"top_p": None, "min_p": 0.02}
NUCLEUS: Own = {"top_p": 0.9}


@pytest.mark.parametrize(
    ("given", "own", "filters"),
    [
        ({}, {}, (0.98, None)),  # a bundle that says nothing
        ({}, {"seed_guidance": 1.25}, (0.98, None)),
        ({}, MIN_P, (None, 0.02)),
        ({}, NUCLEUS, (0.9, None)),
        ({"temperature": 1.2}, MIN_P, (None, 0.02)),
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
    assert suited.temperature == given.get("temperature", 1.0)


def test_until_a_bundle_is_asked_the_usual_nucleus_is_drawn_from():
    assert [Sampling(top_p=top_p).nucleus for top_p in ("auto", 0.9, 1, None)] == [0.98, 0.9, 1.0, None]
    assert PLAIN.suited(MIN_P) == PLAIN


@pytest.mark.parametrize(
    ("make", "field", "wrong", "right"),
    [
        (lambda x: Length(seconds=x), "Length.seconds", ("3", True, [1]), (3, np.float32(3))),
        (lambda x: Part(bars=x), "seed_bars", (1.5, "1"), (1, None)),
        (lambda x: Part(side=x), "seed_from", (3, None), ("end",)),
        (lambda x: Sampling(temperature=x), "temperature", (None, "1"), (1, np.float64(0.5))),
        (lambda x: Sampling(guard=x), "guard", (None, "no", 1), (False,)),
        (lambda x: Continue(variations=x), "variations", (2.5, "2", True), (np.int64(2),)),
        (lambda x: Continue(rules=x), "rules", ({}, None), (Rules(),)),
        (lambda x: Accompany(transpose=x), "transpose", (1.5, "up"), (np.int8(-2),)),
        (lambda x: Rules(scale=x), "scale", (3,), ("C major", None)),
    ],
)
def test_a_value_of_another_type_is_refused_and_a_number_of_numpy_is_one(make, field, wrong, right):
    for value in wrong:
        assert refusal(lambda value=value: make(value)) == (field, str(value))
    for value in right:
        make(value)
