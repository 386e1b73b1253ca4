import pytest

from musictx.errors import ConfigError
from musictx.sampling.settings import Sampling


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
        ({"top_p": 1.5}, "^top_p=1.5: give a share above 0 up to 1"),
        ({"min_p": 0.0}, "^min_p=0.0: give a share above 0 up to 1"),
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
