import pytest

from musictx.errors import ConfigError
from musictx.sampling.settings import Sampling


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"temperature": -1.0}, r"sampler.temperature=-1.0: give 0 \(greedy\) or 0.001 to 1000"),
        ({"temperature": float("nan")}, "sampler.temperature=nan"),
        ({"temperature": float("inf")}, "sampler.temperature=inf"),
        ({"temperature": 1e-4}, "sampler.temperature=0.0001"),
        ({"temperature": 1e39}, "sampler.temperature=1e\\+39"),
        ({"temperature_end": 0.0}, "sampler.temperature_end=0.0: give 0.001 to 1000, or null for no change"),
        ({"temperature_end": float("nan")}, "sampler.temperature_end=nan"),
        ({"temperature": 0.0, "temperature_end": 1.0}, "temperature=0 is greedy throughout; begin with 0.001"),
        ({"top_k": 0}, "sampler.top_k=0: give 1 or more, or null for no limit"),
        ({"beams": 0}, "sampler.beams=0: give 1 or more, or null for drawing"),
        ({"top_p": 1.5}, "sampler.top_p=1.5: give a share above 0 up to 1"),
        ({"min_p": 0.0}, "sampler.min_p=0.0: give a share above 0 up to 1"),
        ({"typical": -1.0}, "sampler.typical=-1.0: give a share above 0 up to 1"),
    ],
)
def test_impossible_settings_are_refused(settings, text):
    with pytest.raises(ConfigError, match=text):
        Sampling(**settings)


def test_a_schedule_is_a_line_over_the_asked_length():
    sampling = Sampling(temperature=1.0, temperature_end=0.5)
    assert [sampling.temperature_at(share) for share in (0, 0.5, 1, 1.3)] == [1.0, 0.75, 0.5, 0.5]
    assert Sampling(temperature=0.9).temperature_at(0.7) == 0.9
