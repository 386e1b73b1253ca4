import math

import pytest
import torch
from proofs import assert_same, learn, tokens
from small import FORMS_AND_CLOCKS, build, untrained

from musictx.model.attention.relative import reference
from musictx.model.position import FORMS
from musictx.model.position.absolute import Sines, sinusoidal
from musictx.model.position.fourier import Fourier
from musictx.model.position.rope import Rotary
from musictx.proof.kernels import results

every = pytest.mark.parametrize(("position", "clock"), FORMS_AND_CLOCKS)


@every
def test_order_counts_unless_there_is_no_position(position, clock):
    # the last token looks back at two earlier ones; one layer without positions cannot tell their order
    model = build(position=position, clock=clock, n_layers=1)
    a, b = model(torch.tensor([[3, 7, 9, 5]])), model(torch.tensor([[7, 3, 9, 5]]))
    assert torch.allclose(a[0, -1], b[0, -1], atol=1e-9) == (position == "none")


@every
@torch.inference_mode()
def test_a_rolling_cache_shows_every_layer_the_last_tokens_only(position, clock):
    """Against a cache that is cut by hand before every step."""
    model, ids, window = build(position=position, clock=clock), tokens(2, 24), 7
    rolling, plain = model.init_state(2, window, rolling=True), model.init_state(2, 64)
    memory = rolling.k.data_ptr(), rolling.k.shape
    for t in range(24):
        got = model.step(ids[:, t], rolling)
        if t >= window:  # drop the oldest: one token fewer than the window leaves room for the new one
            for x in (plain.k, plain.v):
                x[:, :, :, : window - 1] = x[:, :, :, plain.end - window + 1 : plain.end].clone()
            plain.end = window - 1
        torch.testing.assert_close(got, model.step(ids[:, t], plain))
    assert (rolling.k.data_ptr(), rolling.k.shape) == memory
    with pytest.raises(ValueError, match="8 tokens .* window of 7"):
        model.prefill(ids[:, :8], model.init_state(2, window, rolling=True))


@pytest.mark.parametrize(("position", "clock"), [("relative", "index"), ("relative_fourier", "time"), ("rope", "time")])
@torch.inference_mode()
def test_relative_forms_do_not_know_where_the_piece_began(position, clock):
    model, ids = build(position=position, clock=clock, n_layers=1), tokens(1, 20)
    rolling = model.init_state(1, 8, rolling=True)
    for t in range(20):
        torch.testing.assert_close(model.step(ids[:, t], rolling), model(ids[:, max(t - 7, 0) : t + 1])[:, -1])


@pytest.mark.parametrize("position", FORMS)
def test_each_form_learns_to_copy_at_a_lag(position):
    """The same ids come back `lag` later. Without positions these steps do not suffice; chance is 2.5 nats or more."""
    slow = position == "sinusoidal"  # its tokens are small beside the sines at first
    lag, below, lr, steps = (12, 24, 3e-3, 190) if slow else (4, 12, 8e-3, 70)
    model = untrained(d_model=32, n_heads=2, max_distance=16, n_frequencies=8, vocab_size=24, position=position)

    def batch():
        ids = torch.randint(0, below, (32, lag)).repeat(1, 2)
        return model(ids[:, :-1])[:, lag - 1 :].flatten(0, 1), ids[:, lag:].flatten()

    loss = learn(model, batch, lr, steps)
    assert loss > 1.2 if position == "none" else loss < 0.4


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


def test_the_sinusoids_of_the_paper_beside_scaled_tokens():
    out = sinusoidal(torch.tensor([[0.0, 5.0]], dtype=torch.float64), 6, torch.float64)
    expected = [f(5 / 10_000 ** (i / 6)) for i in (0, 2, 4) for f in (math.sin, math.cos)]
    torch.testing.assert_close(out[0], torch.tensor([[0, 1] * 3, expected], dtype=torch.float64))
    x, index = torch.randn(2, 5, 16, dtype=torch.float64), torch.arange(5, dtype=torch.float64)[None]
    torch.testing.assert_close(Sines()(x, index), 4 * x + sinusoidal(index, 16, torch.float64))


def test_a_model_drops_attention_weights_in_training_alone():
    ids = tokens(1, 300)
    for position in ("relative", "rope", "relative_fourier"):
        plain, model = build(position=position), build(position=position, attention_dropout=0.2)
        assert torch.equal(plain(ids), model(ids))
        assert not torch.equal(plain.train()(ids), model.train()(ids))


def test_wavelengths_begin_where_distances_are():
    for clock, expected in (("index", [2.0, 8.0, 32.0]), ("time", [0.1, 0.4, 1.6])):
        for block in untrained(position="relative_fourier", n_frequencies=3, max_distance=16, clock=clock).blocks:
            lengths = 2 * math.pi / block.attend.log_frequency.exp()
            torch.testing.assert_close(lengths, torch.tensor([expected]).repeat(3, 1))
            assert 0.01 < float(block.attend.basis.detach().std()) < 0.03  # drawn like all other weights
