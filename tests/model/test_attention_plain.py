"""The kernels that PyTorch has, and ours on a CPU, behind one function."""

import pytest
import torch
import torch.nn.functional as F

from musictx.model.attention import relative_attention
from musictx.model.attention.plain import causal_attention


@pytest.mark.parametrize("n", [20, 300])  # in blocks on a CPU from 257 on
@pytest.mark.parametrize("widths", [(8, 8), (12, 8)], ids=["one width", "wide keys"])
def test_dropout_on_the_weights_of_plain_attention(n, widths):
    g = torch.Generator().manual_seed(n)
    k_width, v_width = widths
    q, k = (torch.randn(2, 3, n, k_width, generator=g, dtype=torch.float64) for _ in range(2))
    v = torch.ones(2, 3, n, v_width, dtype=torch.float64)
    v[..., 0] = torch.randn(2, 3, n, generator=g, dtype=torch.float64)
    tensors = q.requires_grad_(), k.requires_grad_(), v.requires_grad_()
    full, almost = (causal_attention(*tensors, p, 0.3) for p in (0.0, 1e-9))
    grads = [torch.autograd.grad(x.square().sum(), tensors) for x in (full, almost)]
    for got, expected in zip((almost, *grads[1]), (full, *grads[0]), strict=True):
        torch.testing.assert_close(got, expected)
    torch.manual_seed(4)
    dropped = torch.stack([causal_attention(*tensors, 0.25, 0.3).detach() for _ in range(60)])
    torch.testing.assert_close(dropped.mean((0, 1, 2))[-10:], full.detach().mean((0, 1))[-10:], rtol=0, atol=0.1)
    # the first row has one weight, 1: kept as 4 / 3, or dropped
    assert sorted(dropped[:, :, :, 0, 1].unique().tolist()) == [0, pytest.approx(4 / 3)]
    assert float((dropped[:, :, :, 0, 1] == 0).double().mean()) == pytest.approx(0.25, abs=0.08)


@pytest.mark.parametrize("tq", [1, 4, 7, 12])
@pytest.mark.parametrize("wide", [0, 3])
def test_hidden_keys_are_not_there(tq, wide):
    g = torch.Generator().manual_seed(tq)
    q, k, v = (torch.randn(2, 3, t, 8, generator=g, dtype=torch.float64) for t in (tq, 12, 12))
    wide_q, wide_k = (F.pad(x, (0, wide), value=0.5) for x in (q, k))
    masked = torch.zeros(2, 12, dtype=torch.bool)
    masked[1, 2:5] = True
    out = causal_attention(wide_q, wide_k, v, 0.0, 8**-0.5, masked)
    expected = relative_attention(q, k, v, torch.zeros(3, 1, 8).double(), "reference", 0.0, masked)
    torch.testing.assert_close(out, expected, rtol=1e-9, atol=1e-11)  # the wider keys add one constant to all logits
