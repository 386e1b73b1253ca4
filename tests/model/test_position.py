import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from proofs import assert_same, learn, results, tokens

from musictx.model.attention.relative import reference
from musictx.model.position import FORMS, timed_forms
from musictx.model.position.absolute import Sines, sinusoidal
from musictx.model.position.fourier import Fourier
from musictx.model.position.rope import Rotary
from musictx.model.transformer import Transformer, TransformerConfig

CONFIG = TransformerConfig(
    vocab_size=23, d_model=24, n_layers=2, n_heads=3, d_ff=48, dropout=0.0, max_distance=6, n_frequencies=4
)
PACE = torch.linspace(0, 1.5, 23)
TIMED = [(form, "time") for form in timed_forms()]
ALL = [*((form, "index") for form in FORMS), *TIMED]


def build(position="relative", clock="index", **changes) -> Transformer:
    torch.manual_seed(0)
    model = Transformer(replace(CONFIG, position=position, clock=clock, **changes), PACE).double().eval()
    with torch.no_grad():  # at the start positions hardly count: make them
        for name, p in model.named_parameters():
            if "attend" in name or "places" in name or "gain" in name or "shares" in name or "conv" in name:
                p.add_(torch.randn_like(p) * 0.3)
    return model


@pytest.mark.parametrize(("position", "clock"), ALL)
def test_order_counts_unless_there_is_no_position(position, clock):
    # the last token looks back at two earlier ones; one layer without positions cannot tell their order
    model = build(position, clock, n_layers=1)
    a, b = model(torch.tensor([[3, 7, 9, 5]])), model(torch.tensor([[7, 3, 9, 5]]))
    assert torch.allclose(a[0, -1], b[0, -1], atol=1e-9) == (position == "none")


@pytest.mark.parametrize(
    ("position", "clock"), [(p, c) for p, c in ALL if p in ("relative", "relative_fourier", "rope")]
)
def test_relative_forms_do_not_know_where_the_piece_began(position, clock):
    model, ids = build(position, clock, n_layers=1), tokens(1, 30)
    with torch.inference_mode():
        rolling = model.init_state(1, 8, rolling=True)
        for t in range(30):
            logits = model.step(ids[:, t], rolling)
            alone = model(ids[:, max(t - 7, 0) : t + 1])[:, -1]
            torch.testing.assert_close(logits, alone)
    assert rolling.length == 30


@pytest.mark.parametrize(("position", "clock"), ALL)
def test_a_rolling_cache_shows_every_layer_the_last_tokens_only(position, clock):
    """Against a cache that is cut by hand before every step."""
    model, ids, window = build(position, clock), tokens(2, 40), 7
    with torch.inference_mode():
        rolling = model.init_state(2, window, rolling=True)
        plain = model.init_state(2, 64)
        memory = rolling.k.data_ptr(), rolling.k.shape
        for t in range(40):
            got = model.step(ids[:, t], rolling)
            if t >= window:  # drop the oldest: one token fewer than the window leaves room for the new one
                for x in (plain.k, plain.v):
                    x[:, :, :, : window - 1] = x[:, :, :, plain.end - window + 1 : plain.end].clone()
                plain.end = window - 1
            torch.testing.assert_close(got, model.step(ids[:, t], plain))
        assert (rolling.k.data_ptr(), rolling.k.shape) == memory
        with pytest.raises(ValueError, match="8 tokens .* window of 7"):
            model.prefill(ids[:, :8], model.init_state(2, window, rolling=True))


@pytest.mark.parametrize("position", FORMS)
def test_each_form_learns_to_copy_at_a_lag(position):
    """The same ids come back 12 later. Without positions 190 steps do not suffice; chance is 3.2 nats."""
    torch.manual_seed(0)
    sizes: dict[str, Any] = {"vocab_size": 24, "d_model": 32, "n_layers": 2, "n_heads": 2, "d_ff": 64, "dropout": 0.0}
    model = Transformer(TransformerConfig(**sizes, position=position, max_distance=32))

    def batch():
        ids = torch.randint(0, 24, (32, 12)).repeat(1, 2)
        return model(ids[:, :-1])[:, 11:].flatten(0, 1), ids[:, 12:].flatten()

    loss = learn(model, batch, 3e-3, 190)
    assert loss > 2 if position == "none" else loss < 0.4


def attended(form, q, k, v, at):
    phase = form.phase(at, q.dtype)
    return form(q, form.keys(k, phase), v, phase, 0.0)


def test_fourier_equals_the_definition_with_a_table_of_its_basis():
    """e_d = sum a_f cos(d w_f) + b_f sin(d w_f) as a table for the reference, output and every gradient."""
    torch.manual_seed(0)
    form = Fourier(2, 8, 3, waves=(2.0, 40.0)).double()
    torch.nn.init.normal_(form.basis)
    q, k, v = (torch.randn(2, 2, 13, 8, dtype=torch.float64, requires_grad=True) for _ in range(3))
    at = torch.arange(13, dtype=torch.float64)[None]
    angle = torch.arange(13)[None, :, None] * form.log_frequency.exp()[:, None]  # (H, M, F)
    table = torch.cat([angle.cos(), angle.sin()], -1) @ form.basis.transpose(1, 2)  # (H, M, D)
    leaves = [q, k, v, form.basis, form.log_frequency]
    got = results(lambda *_: attended(form, q, k, v, at), leaves)
    assert_same(got, results(lambda *_: reference(q, k, v, table), leaves))


@pytest.mark.parametrize("make", [lambda: Fourier(2, 16, 4, (2.0, 100.0)), lambda: Rotary(16)])
def test_phases_stay_accurate_after_a_million_steps(make):
    torch.manual_seed(0)
    form = make()
    if isinstance(form, Fourier):
        torch.nn.init.normal_(form.basis)
    q, k, v = torch.randn(3, 1, 2, 9, 16)
    near, far = (torch.arange(s, s + 9, dtype=torch.float64)[None] for s in (0, 10**6))
    at_start = attended(form, q, k, v, near)
    after = attended(form, q, k, v, far)
    torch.testing.assert_close(after, at_start, atol=3e-6, rtol=0)


def test_the_sinusoids_of_the_paper():
    out = sinusoidal(torch.tensor([[0.0, 5.0]], dtype=torch.float64), 6, torch.float64)
    expected = [f(5 / 10_000 ** (i / 6)) for i in (0, 2, 4) for f in (math.sin, math.cos)]
    torch.testing.assert_close(out[0], torch.tensor([[0, 1] * 3, expected], dtype=torch.float64))


def test_tokens_are_scaled_beside_the_sines():
    x, index = torch.randn(2, 5, 16, dtype=torch.float64), torch.arange(5, dtype=torch.float64)[None]
    torch.testing.assert_close(Sines()(x, index), 4 * x + sinusoidal(index, 16, torch.float64))


def test_a_model_drops_attention_weights_in_training_alone():
    ids = tokens(1, 300)
    for position in ("relative", "rope", "relative_fourier"):
        plain, model = build(position), build(position, attention_dropout=0.2)
        assert torch.equal(plain(ids), model(ids))
        assert not torch.equal(plain.train()(ids), model.train()(ids))


def test_wavelengths_begin_where_distances_are():
    config = replace(CONFIG, position="relative_fourier", n_frequencies=3, max_distance=16)
    for clock, expected in (("index", [2.0, 8.0, 32.0]), ("time", [0.1, 0.4, 1.6])):
        for block in Transformer(replace(config, clock=clock)).blocks:
            assert isinstance(block.attend, Fourier)
            lengths = 2 * math.pi / block.attend.log_frequency.exp()
            torch.testing.assert_close(lengths, torch.tensor([expected]).repeat(3, 1))
            assert 0.01 < float(block.attend.basis.detach().std()) < 0.03  # drawn like all other weights
