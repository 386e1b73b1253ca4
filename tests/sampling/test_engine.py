import pytest
import torch

from musictx.errors import ConfigError
from musictx.model.transformer import Transformer, TransformerConfig
from musictx.sampling.engine import MAX_SEED, Sampling, draw, filter_logits, sample

LOGITS = torch.log(torch.tensor([[0.5, 0.3, 0.15, 0.05]]))


def kept(**settings):
    return torch.isfinite(filter_logits(LOGITS, Sampling(**settings)))[0].tolist()


def test_top_k_keeps_the_k_likeliest():
    assert kept(top_k=2) == [True, True, False, False]
    assert kept(top_k=9) == [True] * 4


def test_top_p_keeps_the_smallest_set_that_reaches_p():
    assert kept(top_p=0.5) == [True, False, False, False]
    assert kept(top_p=0.51) == [True, True, False, False]
    assert kept(top_p=0.9) == [True, True, True, False]
    assert kept(top_p=1e-9) == kept(top_p=1e-300) == [True, False, False, False]
    assert kept(top_p=1.0) == [True] * 4


def test_temperature_divides_the_logits():
    torch.testing.assert_close(filter_logits(LOGITS, Sampling(temperature=2.0)), LOGITS / 2)


def test_drawn_frequencies_follow_the_filtered_distribution():
    sampling = Sampling(top_k=2)
    generators = [torch.Generator().manual_seed(k) for k in range(4000)]
    drawn = draw(LOGITS.expand(4000, -1), sampling, generators)
    shares = torch.bincount(drawn, minlength=4) / 4000
    torch.testing.assert_close(shares, torch.tensor([0.625, 0.375, 0.0, 0.0]), atol=0.03, rtol=0)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"temperature": -1.0}, r"sampler.temperature=-1.0: give 0 \(greedy\) or 0.001 to 1000"),
        ({"temperature": float("nan")}, "sampler.temperature=nan"),
        ({"temperature": float("inf")}, "sampler.temperature=inf"),
        ({"temperature": 1e-4}, "sampler.temperature=0.0001"),
        ({"temperature": 1e39}, "sampler.temperature=1e\\+39"),
        ({"top_k": 0}, "sampler.top_k=0: give 1 or more"),
        ({"top_p": 1.5}, "sampler.top_p=1.5: give a share above 0 up to 1"),
    ],
)
def test_impossible_settings_are_refused(settings, text):
    with pytest.raises(ConfigError, match=text):
        Sampling(**settings)


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    config = TransformerConfig(vocab_size=11, d_model=16, n_layers=2, n_heads=2, d_ff=32, max_distance=8)
    net = Transformer(config).eval()
    torch.nn.init.normal_(net.embed.weight, std=0.2)
    return net


LEGAL = torch.arange(11) < 8
PROMPT = torch.tensor([9, 1, 2, 3])


def run(model, n=20, rows=3, seed=5, **settings):
    return torch.stack(list(sample(model, PROMPT, n, rows, Sampling(**settings), seed, LEGAL)), 1)


def test_the_same_seed_gives_the_same_ids_and_another_seed_others(model):
    assert torch.equal(run(model), run(model))
    assert not torch.equal(run(model), run(model, seed=6))


def test_variation_k_does_not_depend_on_how_many_there_are(model):
    assert torch.equal(run(model, rows=1)[0], run(model, rows=4)[0])


@pytest.mark.parametrize("temperature", [1e-3, 1e3])
def test_the_extreme_temperatures_draw_legal_ids(model, temperature):
    assert run(model, temperature=temperature).max() < 8


def test_huge_seeds_are_seeds_too(model):
    drawn = [run(model, seed=seed) for seed in (MAX_SEED, MAX_SEED - 1, 0)]
    assert not torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


@pytest.mark.parametrize(("length", "blocks"), [(1, [1]), (5, [5]), (6, [5, 1]), (13, [5, 5, 3])])
def test_a_long_prompt_is_read_in_blocks_to_the_same_effect(model, monkeypatch, length, blocks):
    prompt, seen, logits = torch.arange(length) % 8, [], []

    def prefill(ids, state):
        seen.append(ids.shape[1])
        logits.append(Transformer.prefill(model, ids, state))
        return logits[-1]

    monkeypatch.setattr(model, "prefill", prefill)
    drawn = {}
    for size in (512, 5):
        seen.clear()
        monkeypatch.setattr("musictx.sampling.engine.PREFILL_BLOCK", size)
        drawn[size] = torch.stack(list(sample(model, prompt, 20, 2, Sampling(), 5, LEGAL)), 1)
        torch.testing.assert_close(logits[-1], model(prompt[None])[:, -1])
    assert seen == blocks
    assert torch.equal(drawn[5], drawn[512])


def test_variations_differ(model):
    assert len({tuple(row.tolist()) for row in run(model)}) == 3


def test_only_legal_ids_are_drawn(model):
    assert run(model, n=200).max() < 8


def test_greedy_equals_the_uncached_argmax_loop(model):
    ids = PROMPT
    with torch.inference_mode():
        for _ in range(20):
            logits = model(ids[None])[0, -1].masked_fill(~LEGAL, -torch.inf)
            ids = torch.cat([ids, logits.argmax()[None]])
    assert run(model, rows=1, temperature=0.0)[0].tolist() == ids[len(PROMPT) :].tolist()
