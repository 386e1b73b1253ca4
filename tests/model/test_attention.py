import math
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from torch import Tensor

from musictx.errors import ConfigError
from musictx.model import attention
from musictx.model.attention import choose, fused, relative_attention
from musictx.model.attention.chunked import DRAWS, Chunked, Dropout, chunked
from musictx.model.attention.triton_tuning import Card

FAST = ["skew", "chunked", "auto"]
IMPLEMENTATIONS = ["reference", *FAST]  # triton has its own tests

# (Tq, Tk, D, M): training, prefill behind a cache, single steps; tables shorter than, as long as, longer than T
SHAPES = [
    *((1, 1, 8, 1), (2, 2, 8, 5), (3, 3, 59, 2), (7, 7, 64, 7), (33, 33, 8, 12), (113, 113, 32, 64)),
    *((1, 9, 8, 4), (1, 9, 8, 20), (5, 12, 16, 6), (5, 12, 16, 40)),
]


def inputs(tq, tk, d, m, *, dtype=torch.float64, b=2, h=3) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    g = torch.Generator().manual_seed(tq * 1000 + tk)
    shapes = ((b, h, tq, d), (b, h, tk, d), (b, h, tk, d), (h, m, d))
    q, k, v, rel = (torch.randn(s, generator=g, dtype=torch.float64).to(dtype).requires_grad_() for s in shapes)
    return q, k, v, rel


def results(impl, tensors) -> list[Tensor]:
    """The output and the gradients of q, k, v, rel."""
    q, k, v, rel = tensors
    out = relative_attention(q, k, v, rel, impl)
    weights = torch.linspace(-1, 1, out.numel(), dtype=torch.float64).view(out.shape).to(out.dtype)
    return [out, *torch.autograd.grad((out * weights).sum(), tensors)]


def test_two_tokens_by_hand():
    q = torch.tensor([[[[1.0], [2.0]]]])
    k = torch.tensor([[[[3.0], [5.0]]]])
    v = torch.tensor([[[[10.0], [20.0]]]])
    rel = torch.tensor([[[0.5], [0.25]]])  # e_0, e_1
    # query 0 sees itself alone; query 1 weighs 2·3 + 2·0.25 = 6.5 against 2·5 + 2·0.5 = 11
    share = 1 / (1 + math.exp(6.5 - 11))
    expected = torch.tensor([[[[10.0], [10 + 10 * share]]]])
    for impl in IMPLEMENTATIONS:
        torch.testing.assert_close(relative_attention(q, k, v, rel, impl), expected)


BIG = [*SHAPES, (300, 300, 8, 37), (129, 300, 59, 64), (257, 257, 16, 300), (129, 129, 128, 129), (513, 513, 32, 128)]


@pytest.mark.parametrize("shape", BIG)
def test_each_equals_the_reference_in_float64_with_every_gradient(shape):
    tensors = inputs(*shape)
    exact = results("reference", tensors)
    for impl in FAST:
        for got, expected in zip(results(impl, tensors), exact, strict=True):
            torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-11, msg=(impl + ": {}").format)


@pytest.mark.parametrize("impl", FAST)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("shape", [*SHAPES[2:], (300, 300, 8, 37)])
def test_each_errs_at_most_twice_as_much_as_the_plain_formula_in_that_dtype(shape, dtype, impl):
    tensors = inputs(*shape, dtype=dtype)
    exact = results("reference", [t.detach().double().requires_grad_() for t in tensors])
    plain, fast = results("reference", tensors), results(impl, tensors)
    for e, p, s in zip(exact, plain, fast, strict=True):
        rounding = torch.finfo(dtype).eps * e.abs().max()
        assert (s.double() - e).abs().max() <= 2 * (p.double() - e).abs().max() + rounding


@pytest.mark.parametrize("impl", IMPLEMENTATIONS)
def test_no_gradient_flows_to_the_future(impl):
    q, k, v, rel = inputs(9, 9, 8, 5)
    out = relative_attention(q, k, v, rel, impl)
    for i in range(9):
        for grad in torch.autograd.grad(out[:, :, i].sum(), (k, v), retain_graph=True):
            assert (grad[:, :, i + 1 :] == 0).all()
        assert (grad[:, :, : i + 1] != 0).all()  # v: everything up to now counts


@pytest.mark.parametrize("impl", IMPLEMENTATIONS)
@pytest.mark.parametrize("shape", [(4, 4, 3, 2), (3, 5, 2, 9)])
def test_gradcheck(impl, shape):
    assert torch.autograd.gradcheck(lambda q, k, v, rel: relative_attention(q, k, v, rel, impl), inputs(*shape))


@pytest.mark.parametrize("impl", IMPLEMENTATIONS)
def test_the_last_queries_alone_equal_the_last_rows_of_all(impl):
    q, k, v, rel = inputs(12, 12, 8, 5)
    full = relative_attention(q, k, v, rel, impl)
    torch.testing.assert_close(relative_attention(q[:, :, 7:], k, v, rel, impl), full[:, :, 7:])


@pytest.mark.parametrize("impl", IMPLEMENTATIONS)
def test_dropout_keeps_the_mean_and_drops_something(impl):
    q, k, v, rel = inputs(6, 6, 8, 5)
    torch.manual_seed(0)
    full = relative_attention(q, k, v, rel, impl)
    dropped = torch.stack([relative_attention(q, k, v, rel, impl, 0.2) for _ in range(2000)])
    torch.testing.assert_close(dropped.mean(0), full, atol=0.1, rtol=0)
    assert (dropped[0] != full).any()


@pytest.mark.parametrize("block", [1, 2, 3, 7])
@pytest.mark.parametrize("shape", [*SHAPES, (30, 45, 4, 9)])
def test_chunked_gives_the_same_for_every_size_of_block(shape, block):
    tensors = inputs(*shape)
    out = chunked(*tensors, block=block)
    grads = torch.autograd.grad(out.square().sum(), tensors)
    whole = relative_attention(*tensors, "reference")
    for got, expected in zip([out, *grads], [whole, *torch.autograd.grad(whole.square().sum(), tensors)], strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("shape", [(33, 33, 8, 12), (5, 12, 16, 6), (30, 45, 4, 9)])
def test_rows_of_a_batch_taken_together_as_on_a_gpu(shape):
    tensors = inputs(*shape)
    out = Chunked.apply(*tensors, None, Dropout(0, 0), 7)
    grads = torch.autograd.grad(out.square().sum(), tensors)
    whole = relative_attention(*tensors, "reference")
    for got, expected in zip([out, *grads], [whole, *torch.autograd.grad(whole.square().sum(), tensors)], strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("together", [False, True])
def test_chunked_dropout_has_the_gradients_its_own_mask(together):
    tensors = inputs(7, 7, 4, 3, h=1 + together)  # on a CPU each row of a batch draws alone

    def f(q, k, v, rel):
        torch.manual_seed(5)
        return (
            Chunked.apply(q, k, v, rel, None, Dropout(2 * DRAWS // 5, 5), 3)
            if together
            else chunked(q, k, v, rel, 0.4, block=3)
        )

    assert torch.autograd.gradcheck(f, tensors)


def dropped_weights(q, k, rel, p, block) -> Tensor:
    """Chunked attention's weights after dropout, (B, H, T, T): values that are the identity show them."""
    t = q.shape[2]
    shown = torch.eye(t, dtype=q.dtype).expand(len(q), 3, t, t)
    wide = [torch.cat([x, x.new_zeros(*x.shape[:-1], t - x.shape[-1])], -1) for x in (q, k, rel)]
    wide[0] = wide[0] * math.sqrt(t / q.shape[-1])
    return chunked(wide[0], wide[1], shown, wide[2], p, block=block)


@pytest.mark.parametrize("p", [0.004, 0.1, 0.5, 0.97])
def test_chunked_dropout_drops_its_share_and_scales_up_the_others(p):
    q, k, _, rel = (x.detach() for x in inputs(150, 150, 4, 20))
    torch.manual_seed(2)
    full, some, others = (dropped_weights(q, k, rel, x, 64) for x in (0, p, p))
    past = full > 0
    kept = some[past] > 0
    torch.testing.assert_close(some[past][kept] * (1 - p), full[past][kept], rtol=1e-3, atol=0)
    assert (some[~past] == 0).all()
    n = len(kept)
    near = 4 * math.sqrt(p * (1 - p) / n)  # deviations of the mean of n independent draws
    assert float((~kept).double().mean()) == pytest.approx(p, abs=near + 1 / DRAWS)
    both = (others[past] == 0) & ~kept
    assert float(both.double().mean()) == pytest.approx(p * p, abs=4 * p * math.sqrt((1 - p * p) / n) + 1 / DRAWS)
    beside = past[..., 1:] & past[..., :-1]  # four draws share one number of 64 bits
    pairs = (some[..., 1:] == 0) & (some[..., :-1] == 0)
    assert float(pairs[beside].double().mean()) == pytest.approx(p * p, abs=6 * p / math.sqrt(n) + 1 / DRAWS)


@pytest.mark.parametrize("block", [7, 64])
def test_chunked_dropout_is_the_plain_formula_with_its_mask(block):
    tensors = q, k, v, rel = inputs(40, 40, 8, 9)
    torch.manual_seed(3)
    full, some = (dropped_weights(q, k, rel, p, block).detach() for p in (0, 0.3))
    mask = torch.where(full > 0, some / full, 0)  # 1 / (1 - p) or 0
    torch.manual_seed(3)
    got = chunked(*tensors, 0.3, block=block)
    i, j = torch.arange(40)[:, None], torch.arange(40)
    logits = q @ k.mT + torch.einsum("bhid,hijd->bhij", q, rel[:, (i - j).clamp(0, 8)])
    weights = (logits / math.sqrt(8)).masked_fill(j > i, -torch.inf).softmax(-1)
    expected = (weights * mask) @ v
    grads = (torch.autograd.grad(out.square().sum(), tensors) for out in (got, expected))
    for a, b in zip((got, *next(grads)), (expected, *next(grads)), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-11)


def test_both_passes_drop_alike_and_two_blocks_do_not():
    like = torch.zeros(1, 2, 50, 50)
    one, again, next_block = (Dropout(DRAWS // 2, 5).kept(like, block) for block in (0, 0, 50))
    assert torch.equal(one, again)
    assert float((one == next_block).double().mean()) == pytest.approx(0.5, abs=0.03)


def test_auto_is_documented_by_what_it_chooses():
    x = torch.zeros(1, 1, 257, 4)
    assert [choose(x, x), choose(x[:, :, :1], x), choose(x[:, :, 1:], x[:, :, 1:])] == ["chunked", "skew", "skew"]


@pytest.mark.parametrize(
    ("changes", "chosen"),
    [
        ({}, "triton"),
        ({"dtype": torch.float32}, "chunked"),
        ({"dtype": torch.float64}, "chunked"),
        ({"age": torch.arange(257)}, "chunked"),
        ({"is_cuda": False}, "chunked"),
        ({"card": Card("T4", 75, 65536)}, "chunked"),
        ({"shape": (1, 1, 257, 129)}, "chunked"),
        ({"dropout_p": 0.1}, "chunked"),
        ({"masked": torch.zeros(1, 257, dtype=torch.bool)}, "chunked"),
        ({"triton": False}, "chunked"),
        ({"hip": "6.0"}, "chunked"),
        ({"shape": (1, 1, 256, 64)}, "skew"),
    ],
)
def test_auto_means_triton_where_it_can_run_and_was_measured(changes, chosen, monkeypatch):
    there: dict[str, Any] = {
        "is_cuda": True,
        "dtype": torch.bfloat16,
        "shape": (1, 1, 257, 64),
        "card": Card("H100", 90, 232448),
        "dropout_p": 0.0,
        "masked": None,
        "age": None,
        "triton": True,
        "hip": None,
        **changes,
    }
    monkeypatch.setattr(fused, "HAS_TRITON", there["triton"])
    monkeypatch.setattr(torch.version, "hip", there["hip"])
    monkeypatch.setattr(Card, "of", lambda q: there["card"])
    q: Any = SimpleNamespace(**{name: there[name] for name in ("is_cuda", "dtype", "shape")})
    assert choose(q, q, there["dropout_p"], there["masked"], there["age"]) == chosen


def test_an_unknown_implementation_is_refused_with_the_known_ones():
    with pytest.raises(ConfigError, match="^impl=flash: "):
        relative_attention(*inputs(2, 2, 4, 2), "flash")


HIDDEN = torch.tensor([[False] * 12, [True] * 5 + [False] * 7])  # the second row began five tokens later


@pytest.mark.parametrize("impl", IMPLEMENTATIONS)
@pytest.mark.parametrize("tq", [1, 4, 7])
def test_a_row_that_hides_its_beginning_is_the_row_without_it(impl, tq):
    tensors = q, k, v, rel = inputs(tq, 12, 8, 5)
    out = relative_attention(*tensors, impl, 0.0, HIDDEN)
    short = relative_attention(q[1:], k[1:, :, 5:], v[1:, :, 5:], rel, "reference")
    whole = relative_attention(q[:1], k[:1], v[:1], rel, "reference")
    alone = torch.cat([whole, short])
    grads = (torch.autograd.grad(x.square().sum(), tensors) for x in (out, alone))
    for a, b in zip((out, *next(grads)), (alone, *next(grads)), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-11)


def test_chunked_hides_keys_of_rows_taken_together_as_on_a_gpu():
    tensors = inputs(7, 12, 8, 5)
    out = Chunked.apply(*tensors, HIDDEN, Dropout(0, 0), 3)
    expected = relative_attention(*tensors, "reference", 0.0, HIDDEN)
    grads = (torch.autograd.grad(x.square().sum(), tensors) for x in (out, expected))
    for a, b in zip((out, *next(grads)), (expected, *next(grads)), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("impl", ["reference", "skew", "auto"])
def test_keys_in_any_order_are_said_by_their_age(impl):
    q, k, v, rel = inputs(1, 12, 8, 5)
    age = torch.randperm(12, generator=torch.Generator().manual_seed(2))
    in_order = relative_attention(q, k, v, rel, "reference", 0.0, HIDDEN)
    place = 11 - age  # which key is so old
    shuffled = relative_attention(q, k[:, :, place], v[:, :, place], rel, impl, 0.0, HIDDEN[:, place], age)
    torch.testing.assert_close(shuffled, in_order, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("impl", IMPLEMENTATIONS)
def test_the_chosen_kernel_is_used_with_a_mask_too(impl, monkeypatch):
    kernels = {name: Mock(side_effect=kernel) for name, kernel in attention.IMPLEMENTATIONS.items()}
    for name, kernel in kernels.items():
        monkeypatch.setitem(attention.IMPLEMENTATIONS, name, kernel)
    relative_attention(*inputs(4, 12, 8, 5), impl, 0.0, HIDDEN)
    used = {name: kernel.call_count for name, kernel in kernels.items() if kernel.called}
    assert used == {"skew" if impl == "auto" else impl: 1}  # of at most 256 tokens auto chooses it, masked or not


@pytest.mark.parametrize(
    ("impl", "sight", "text"),
    [
        ("chunked", {"age": torch.arange(12)}, "graph=true"),
        ("triton", {"age": torch.arange(12)}, "graph=true"),
        ("triton", {"masked": HIDDEN}, "prompts of different"),
    ],
)
def test_what_a_kernel_cannot_read_is_refused_and_others_are_named(impl, sight, text):
    with pytest.raises(ConfigError, match=f"^impl={impl}: .*{text}.*: give auto, skew"):
        relative_attention(*inputs(1, 12, 8, 5), impl, **sight)
