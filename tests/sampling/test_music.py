import pytest
import torch

from musictx.errors import ConfigError, UserError
from musictx.model.transformer import Transformer, TransformerConfig
from musictx.notes.score import Score
from musictx.sampling.engine import Sampling
from musictx.sampling.music import check_lengths, continue_score
from musictx.tokenizers import build_tokenizer

SEED = Score([0, 0.6], [0.6, 1.2], [60, 64], [80, 80], quarter_s=0.6)


def go(name, seed=SEED, **settings):
    tokenizer = build_tokenizer(name)
    torch.manual_seed(0)
    config = TransformerConfig(tokenizer.vocab.size, d_model=16, n_layers=1, n_heads=2, d_ff=16, max_distance=8)
    settings = {"length_seconds": 2.0} | settings
    return continue_score(seed, Transformer(config).eval(), tokenizer, Sampling(), **settings)


@pytest.mark.parametrize("name", ["performance", "chorale"])
def test_exactly_the_asked_length_is_added_after_the_seed(name):
    for result in go(name, variations=3):
        assert result.complete
        assert result.new_from_s == pytest.approx(1.2)
        assert 1.2 < result.score.duration_s <= 3.2 + 1e-9
        assert result.score.quarter_s == 0.6


def test_a_token_limit_that_comes_first_is_told():
    (result,) = go("performance", max_tokens=3, length_seconds=60.0)
    assert not result.complete
    assert result.score.duration_s < 10


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"length_seconds": float("nan")}, "length_seconds=nan: give more than 0 and at most 86400"),
        ({"length_seconds": float("inf")}, "length_seconds=inf: give more than 0 and at most 86400"),
        ({"max_tokens": 10**30}, "max_tokens=10{30}: give more than 0 and at most 1000000"),
        ({"variations": 10**12}, "variations=10{12}: give more than 0 and at most 1000"),
        (
            {"variations": 1000, "max_tokens": 1001},
            "max_tokens=1001 for variations=1000: give at most 1000000 tokens in all",
        ),
        ({"seed": -1}, "seed=-1: give 0 to 9223372036854775807"),
        ({"seed": 2**63}, "seed=9223372036854775808: give 0 to 9223372036854775807"),
    ],
)
def test_absurd_amounts_and_seeds_are_refused(settings, text):
    possible = {"length_seconds": 2.0, "max_tokens": 10, "variations": 1, "seed": 0}
    check_lengths(**possible)
    with pytest.raises(ConfigError, match=text):
        check_lengths(**(possible | settings))


def test_a_silent_seed_and_impossible_lengths_are_refused():
    with pytest.raises(UserError, match="the seed has no notes"):
        go("performance", seed=Score.empty())
    with pytest.raises(ConfigError, match="length_seconds=-1: give more than 0"):
        go("performance", length_seconds=-1)
    with pytest.raises(ConfigError, match="max_tokens=0: give more than 0"):
        go("performance", max_tokens=0)
