import pytest

from musictx.errors import ConfigError
from musictx.generate.requests import PLAIN, Own, Sampling


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"temperature": -1.0}, r"^temperature=-1.0: give 0 \(greedy\) or 0.001 to 1000"),
        ({"temperature": float("nan")}, "^temperature=nan"),
        ({"temperature": float("inf")}, "^temperature=inf"),
        ({"temperature": 1e-4}, "^temperature=0.0001"),
        ({"temperature": 1e39}, "^temperature=1e\\+39"),
        ({"temperature_end": 0.0}, "^temperature_end=0.0: give 0.001 to 1000, or null for no change"),
        ({"temperature_end": float("nan")}, "^temperature_end=nan"),
        ({"temperature": 0.0, "temperature_end": 1.0}, "temperature=0 is greedy throughout; begin with 0.001"),
        ({"top_k": 0}, "^top_k=0: give 1 or more, or null for no limit"),
        ({"beams": 0}, "^beams=0: give 1 or more, or null for drawing"),
        (
            {"top_p": 1.5},
            "^top_p=1.5: give a share above 0 up to 1, or null for no limit, or auto for the bu",
        ),
        ({"top_p": "much"}, "^top_p=much: give a share above 0"),
        ({"top_p": float("nan")}, "^top_p=nan: give a share above 0"),
        ({"min_p": 0.0}, "^min_p=0.0: give a share above 0 up to 1, or null for no limit$"),
        ({"typical": -1.0}, "^typical=-1.0: give a share above 0 up to 1"),
    ],
)
def test_impossible_settings_are_refused(settings, text):
    with pytest.raises(ConfigError, match=text):
        Sampling(**settings)


def test_a_schedule_is_a_line_over_the_asked_length():
    sampling = Sampling(temperature=1.0, temperature_end=0.5)
    assert [sampling.temperature_at(share) for share in (0, 0.5, 1, 1.3)] == [1.0, 0.75, 0.5, 0.5]
    assert Sampling(temperature=0.9).temperature_at(0.7) == 0.9


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
