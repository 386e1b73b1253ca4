import math

import pytest
import torch
from torch import Tensor

from musictx.model.attention.plain import causal_blocks

# (Tq, Tk, E, D): training, prefill behind a cache; queries wider than values; odd sizes, less and more than a block
SHAPES = [(1, 1, 8, 8), (2, 2, 59, 3), (33, 33, 8, 8), (5, 12, 16, 6), (129, 129, 12, 8), (257, 300, 24, 16)]


def inputs(tq, tk, e, d, *, dtype=torch.float64):
    g = torch.Generator().manual_seed(tq * 1000 + tk)
    shapes = ((2, 3, tq, e), (2, 3, tk, e), (2, 3, tk, d))
    return [torch.randn(s, generator=g, dtype=torch.float64).to(dtype).requires_grad_() for s in shapes]


def plain(q, k, v, scale):
    tq, tk = q.shape[2], k.shape[2]
    future = torch.ones(tq, tk, dtype=torch.bool).triu(tk - tq + 1)
    return ((q * scale) @ k.mT).masked_fill(future, -torch.inf).softmax(-1) @ v


def results(attention, tensors) -> list[Tensor]:
    """The output and the gradients of q, k, v."""
    out = attention(*tensors, 1 / math.sqrt(7))
    weights = torch.linspace(-1, 1, out.numel(), dtype=torch.float64).view(out.shape).to(out.dtype)
    return [out, *torch.autograd.grad((out * weights).sum(), tensors)]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_definition_in_float64_with_every_gradient(shape):
    tensors = inputs(*shape)
    for got, expected in zip(results(causal_blocks, tensors), results(plain, tensors), strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("shape", SHAPES[1:])
def test_it_errs_at_most_twice_as_much_as_the_plain_formula_in_that_dtype(shape, dtype):
    tensors = inputs(*shape, dtype=dtype)
    exact = results(plain, [x.detach().double().requires_grad_() for x in tensors])
    for got, same_dtype, true in zip(results(causal_blocks, tensors), results(plain, tensors), exact, strict=True):
        assert (got - true).norm() <= 2 * (same_dtype - true).norm() + 1e-6 * true.norm()


def test_no_gradient_flows_to_the_future():
    q, k, v = inputs(140, 140, 8, 8)
    out = causal_blocks(q, k, v, 0.3)
    for t in (0, 5, 127, 128, 139):
        d_k, d_v = torch.autograd.grad(out[:, :, t].sum(), (k, v), retain_graph=True)
        for d in (d_k, d_v):
            assert (d[:, :, t + 1 :] == 0).all()
        assert (d_v[:, :, : t + 1] != 0).all()


@pytest.mark.parametrize("block", [1, 3, 50, 1000])
def test_the_same_for_every_size_of_block(block):
    tensors = inputs(50, 61, 8, 5)
    got = results(lambda q, k, v, scale: causal_blocks(q, k, v, scale, block=block), tensors)
    for a, b in zip(got, results(causal_blocks, tensors), strict=True):
        torch.testing.assert_close(a, b)


def test_gradcheck():
    assert torch.autograd.gradcheck(lambda q, k, v: causal_blocks(q, k, v, 0.5, block=2), inputs(5, 7, 3, 2))


def test_without_gradients_nothing_is_kept():
    q, k, v = (x.detach() for x in inputs(5, 5, 3, 3))
    assert not causal_blocks(q, k, v, 0.5).requires_grad


def test_dropout_has_the_gradients_its_own_mask():
    q, k, v = inputs(7, 9, 4, 3)

    def attention(q, k, v):
        torch.manual_seed(3)
        return causal_blocks(q, k, v, 0.5, 0.4, block=3)

    assert torch.autograd.gradcheck(attention, (q, k, v))
    assert not torch.equal(attention(q, k, v), causal_blocks(q, k, v, 0.5))
