"""Plain causal attention: our blocks on a CPU equal the definition, and PyTorch's kernels hide what they should."""

import math

import pytest
import torch
import torch.nn.functional as F
from proofs import assert_same

from musictx.model.attention import relative_attention
from musictx.model.attention.plain import causal_attention, causal_blocks
from musictx.model.attention.relative import reference
from musictx.proof.kernels import random_inputs, results

# (Tq, Tk, E, D): training, prefill behind a cache; queries wider than values; odd sizes, less and more than a block
SHAPES = [(1, 1, 8, 8), (2, 2, 59, 3), (5, 12, 16, 6), (129, 129, 12, 8), (130, 170, 24, 16)]


def inputs(tq, tk, e, d) -> list[torch.Tensor]:
    return [*random_inputs(tq, tk, d, 1, n_heads=3, wider=e - d)[:3]]


def definition(q, k, v, masked=None):
    return reference(q, k, v, q.new_zeros(q.shape[1], 1, q.shape[3]), 0.0, masked)


def blocks(q, k, v, dropout_p=0.0):
    return causal_blocks(q, k, v, 1 / math.sqrt(q.shape[-1]), dropout_p)


@pytest.mark.parametrize("block", [128, 3])
@pytest.mark.parametrize("shape", SHAPES)
def test_blocks_equal_the_definition_in_float64_with_every_gradient(shape, block, monkeypatch):
    monkeypatch.setattr("musictx.model.attention.plain.BLOCK", block)
    tensors = inputs(*shape)
    assert_same(results(blocks, tensors), results(definition, tensors))


def test_no_gradient_flows_to_the_future():
    q, k, v = inputs(130, 130, 8, 8)
    out = blocks(q, k, v)
    for t in (0, 127, 128, 129):
        d_k, d_v = torch.autograd.grad(out[:, :, t].sum(), (k, v), retain_graph=True)
        for d in (d_k, d_v):
            assert (d[:, :, t + 1 :] == 0).all()
        assert (d_v[:, :, : t + 1] != 0).all()


def test_dropout_has_the_gradients_of_the_mask_drawn(monkeypatch):
    monkeypatch.setattr("musictx.model.attention.plain.BLOCK", 3)
    tensors = [x[:1, :2].detach().requires_grad_() for x in inputs(7, 9, 4, 3)]

    def attention(q, k, v):
        torch.manual_seed(3)
        return blocks(q, k, v, dropout_p=0.4)

    assert torch.autograd.gradcheck(attention, tensors)
    assert not torch.equal(attention(*tensors), blocks(*tensors))


@pytest.mark.parametrize(("n", "widths"), [(20, (8, 8)), (150, (12, 8))])  # less and more than a block; wide keys
def test_dropout_keeps_the_mean_and_drops_its_share(n, widths):
    q, k, v = (x.detach() for x in inputs(n, n, *widths))
    v[..., 1:] = 1
    full = causal_attention(q, k, v, 0.0, 0.3)
    torch.manual_seed(4)
    dropped = torch.stack([causal_attention(q, k, v, 0.25, 0.3) for _ in range(60)])
    torch.testing.assert_close(dropped.mean((0, 1, 2))[-10:], full.mean((0, 1))[-10:], rtol=0, atol=0.1)
    # the first row has one weight, 1: kept as 4 / 3, or dropped
    assert sorted(dropped[:, :, :, 0, 1].unique().tolist()) == [0, pytest.approx(4 / 3)]
    assert float((dropped[:, :, :, 0, 1] == 0).double().mean()) == pytest.approx(0.25, abs=0.08)


@pytest.mark.parametrize(("tq", "wide"), [(1, 0), (1, 3), (7, 0), (12, 3)])
def test_hidden_keys_are_not_there(tq, wide):
    q, k, v = (x.detach() for x in inputs(tq, 12, 8, 8))
    wide_q, wide_k = (F.pad(x, (0, wide), value=0.5) for x in (q, k))  # adds one constant to all logits
    masked = torch.zeros(2, 12, dtype=torch.bool)
    masked[1, 2:5] = True
    out = causal_attention(wide_q, wide_k, v, 0.0, 8**-0.5, masked)
    torch.testing.assert_close(out, definition(q, k, v, masked), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("form", ["plain", "relative"])
@pytest.mark.parametrize("autocast", [False, True])
def test_emulated_numbers_are_multiplied_in_float32(monkeypatch, form, autocast):
    """As exact as float32, but for the rounding of what comes in and out; gradients have the inputs' type."""
    monkeypatch.setattr("musictx.model.attention.relative.EMULATES", True)
    q, k, v = tensors = [x.detach().bfloat16().requires_grad_() for x in inputs(40, 40, 8, 8)]
    rel = torch.randn(3, 40, 8).bfloat16()
    exact = [x.detach().double() for x in (*tensors, rel)]
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        if form == "plain":
            got = causal_attention(q, k, v, 0.0, 8**-0.5)
        else:
            got = relative_attention(q, k, v, rel, "auto")
    a, b, c, e = exact
    known = reference(a, b, c, e) if form == "relative" else definition(a, b, c)
    assert got.dtype == torch.bfloat16
    assert (got.double() - known).abs().max() <= 2**-8 * known.abs().max()  # one rounding, of the result
    got.sum().backward()
    assert all(x.grad is not None and x.grad.isfinite().all() for x in tensors)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_kernels_of_a_processor_hide_the_future_exactly(dtype):
    q, k, v = (x.detach().to(dtype).requires_grad_() for x in inputs(130, 130, 8, 8))
    out = causal_attention(q, k, v, 0.0, 8**-0.5)
    for t in (0, 64, 129):
        for d in torch.autograd.grad(out[:, :, t].float().sum(), (k, v), retain_graph=True):
            assert (d[:, :, t + 1 :] == 0).all()
