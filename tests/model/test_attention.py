"""Relative attention: every implementation equals the definition, output and gradients; none looks ahead.

What is right in float32 and bfloat16 is `musictx check`'s: tests/commands/test_check.py runs it.
"""

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from proofs import assert_same
from torch import Tensor

from musictx.errors import ConfigError
from musictx.model.attention import choose, fused, relative_attention
from musictx.model.attention.chunked import DRAWS, Chunked, Dropout, chunked
from musictx.model.attention.relative import reference, skew
from musictx.model.attention.triton_tuning import Card
from musictx.proof.kernels import random_inputs, results

FAST = ["skew", "chunked", "auto"]
impls = pytest.mark.parametrize("impl", ["reference", *FAST])  # triton has its own tests

# (Tq, Tk, D, M): training, prefill behind a cache, single steps; tables shorter than, as long as, longer than T
SHAPES = [(1, 1, 8, 1), (3, 3, 59, 2), (33, 33, 8, 12), (1, 9, 8, 4), (5, 12, 16, 6), (5, 12, 16, 40)]
BIG = [*SHAPES, (7, 7, 64, 7), (1, 9, 8, 20), (129, 300, 59, 64), (257, 257, 16, 300)]
HIDDEN = torch.tensor([[False] * 12, [True] * 5 + [False] * 7])  # the second row began five tokens later


def inputs(tq, tk, d, m) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return random_inputs(tq, tk, d, m, n_heads=3)


def together(q, k, v, rel, masked, block):
    """Chunked attention with all rows of a batch at once, as on a GPU; on a CPU each row is computed alone."""
    return Chunked.apply(q, k, v, rel, masked, Dropout(0, 0), block)


def test_two_tokens_by_hand():
    q = torch.tensor([[[[1.0], [2.0]]]])
    k = torch.tensor([[[[3.0], [5.0]]]])
    v = torch.tensor([[[[10.0], [20.0]]]])
    rel = torch.tensor([[[0.5], [0.25]]])  # e_0, e_1
    # query 0 sees itself alone; query 1 weighs 2·3 + 2·0.25 = 6.5 against 2·5 + 2·0.5 = 11
    share = 1 / (1 + math.exp(6.5 - 11))
    torch.testing.assert_close(reference(q, k, v, rel), torch.tensor([[[[10.0], [10 + 10 * share]]]]))


def test_the_last_queries_alone_equal_the_last_rows_of_all():
    q, k, v, rel = inputs(12, 12, 8, 5)
    torch.testing.assert_close(reference(q[:, :, 7:], k, v, rel), reference(q, k, v, rel)[:, :, 7:])


@pytest.mark.parametrize("shape", BIG)
def test_each_equals_the_reference_in_float64_with_every_gradient(shape):
    tensors = inputs(*shape)
    exact = results(reference, tensors)
    for impl in FAST:
        assert_same(results(relative_attention, tensors, impl=impl), exact)


@impls
def test_no_gradient_flows_to_the_future(impl):
    q, k, v, rel = inputs(9, 9, 8, 5)
    out = relative_attention(q, k, v, rel, impl)
    for i in range(9):
        for grad in torch.autograd.grad(out[:, :, i].sum(), (k, v), retain_graph=True):
            assert (grad[:, :, i + 1 :] == 0).all()
        assert (grad[:, :, : i + 1] != 0).all()  # v: everything up to now counts


@pytest.mark.parametrize("block", [1, 7])
@pytest.mark.parametrize("shape", [*SHAPES, (30, 45, 4, 9)])
def test_chunked_gives_the_same_for_every_size_of_block(shape, block):
    tensors = inputs(*shape)
    expected = results(reference, tensors)
    assert_same(results(chunked, tensors, block=block), expected)
    assert_same(results(together, tensors, masked=None, block=block), expected)


@pytest.mark.parametrize("tq", [1, 7])
def test_a_row_that_hides_its_beginning_is_the_row_without_it(tq):
    def alone(q, k, v, rel):
        whole, short = reference(q[:1], k[:1], v[:1], rel), reference(q[1:], k[1:, :, 5:], v[1:, :, 5:], rel)
        return torch.cat([whole, short])

    tensors = inputs(tq, 12, 8, 5)
    expected = results(alone, tensors)
    for impl in ("reference", *FAST):
        assert_same(results(relative_attention, tensors, impl=impl, masked=HIDDEN), expected)
    assert_same(results(together, tensors, masked=HIDDEN, block=3), expected)


@pytest.mark.parametrize("impl", ["reference", "skew", "auto"])
def test_age_gives_the_order_of_keys(impl):
    q, k, v, rel = inputs(1, 12, 8, 5)
    age = torch.randperm(12, generator=torch.Generator().manual_seed(2))
    in_order = relative_attention(q, k, v, rel, "reference", 0.0, HIDDEN)
    place = 11 - age  # which key is so old
    shuffled = relative_attention(q, k[:, :, place], v[:, :, place], rel, impl, 0.0, HIDDEN[:, place], age)
    torch.testing.assert_close(shuffled, in_order, rtol=1e-9, atol=1e-11)


def dropped_weights(q, k, rel, p, block) -> Tensor:
    """Chunked attention's weights after dropout, (B, H, T, T): values that are the identity show them."""
    t = q.shape[2]
    shown = torch.eye(t, dtype=q.dtype).expand(len(q), 3, t, t)
    wide = [torch.cat([x, x.new_zeros(*x.shape[:-1], t - x.shape[-1])], -1) for x in (q, k, rel)]
    wide[0] = wide[0] * math.sqrt(t / q.shape[-1])
    return chunked(wide[0], wide[1], shown, wide[2], p, block=block)


@pytest.mark.parametrize("p", [0.004, 0.5])
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


def test_chunked_dropout_is_the_plain_formula_with_its_mask_in_both_passes():
    tensors = q, k, _, rel = inputs(40, 40, 8, 9)
    torch.manual_seed(3)
    full, some = (dropped_weights(q, k, rel, p, 7).detach() for p in (0, 0.3))
    mask = torch.where(full > 0, some / full, 0)  # 1 / (1 - p) or 0
    i, j = torch.arange(40)[:, None], torch.arange(40)

    def plain(q, k, v, rel):
        logits = q @ k.mT + torch.einsum("bhid,hijd->bhij", q, rel[:, (i - j).clamp(0, 8)])
        return ((logits / math.sqrt(8)).masked_fill(j > i, -torch.inf).softmax(-1) * mask) @ v

    torch.manual_seed(3)
    assert_same(results(chunked, tensors, dropout_p=0.3, block=7), results(plain, tensors))


@pytest.mark.parametrize(
    ("changes", "chosen"),
    [
        ({}, "triton"),
        ({"dtype": torch.float32}, "chunked"),
        ({"age": torch.arange(257)}, "chunked"),
        ({"is_cuda": False}, "chunked"),
        ({"card": Card("T4", 75, 65536)}, "chunked"),
        ({"masked": torch.zeros(1, 257, dtype=torch.bool)}, "chunked"),
        ({"triton": False}, "chunked"),
        ({"shape": (1, 1, 256, 64)}, "skew"),
        ({"shape": (1, 1, 1, 64)}, "skew"),
    ],
)
def test_auto_means_triton_where_it_can_run_and_was_measured(changes, chosen, monkeypatch):
    there: dict[str, Any] = {"is_cuda": True, "dtype": torch.bfloat16, "shape": (1, 1, 257, 64), "dropout_p": 0.0}
    there |= {"card": Card("H100", 90, 232448), "masked": None, "age": None, "triton": True, **changes}
    monkeypatch.setattr(fused, "HAS_TRITON", there["triton"])
    monkeypatch.setattr(Card, "of", lambda q: there["card"])
    q: Any = SimpleNamespace(device=torch.device("cuda"), **{x: there[x] for x in ("is_cuda", "dtype", "shape")})
    assert choose(q, q, there["dropout_p"], there["masked"], there["age"]) == chosen


@pytest.mark.parametrize(
    ("impl", "sight", "text"),
    [
        ("flash", {}, "impl=flash: "),
        ("chunked", {"age": torch.arange(12)}, "impl=chunked: .*graph=true.*skew"),
        ("triton", {"age": torch.arange(12)}, "impl=triton: .*graph=true.*skew"),
        ("triton", {"masked": HIDDEN}, "impl=triton: .*prompts.*chunked"),
    ],
)
def test_an_unknown_kernel_and_what_a_kernel_cannot_read_are_refused(impl, sight, text):
    with pytest.raises(ConfigError, match=f"^{text}"):
        relative_attention(*inputs(1, 12, 8, 5), impl, **sight)


def test_dropout_keeps_the_mean_and_drops_something():
    q, k, v, rel = inputs(6, 6, 8, 5)
    torch.manual_seed(0)
    full = skew(q, k, v, rel)
    dropped = torch.stack([skew(q, k, v, rel, 0.2) for _ in range(2000)])
    torch.testing.assert_close(dropped.mean(0), full, atol=0.1, rtol=0)
    assert (dropped[0] != full).any()


def test_two_blocks_do_not_drop_alike():
    one, next_block = (Dropout(DRAWS // 2, 5).mask(torch.zeros(1, 2, 50, 50), block) for block in (0, 50))
    assert float((one == next_block).double().mean()) == pytest.approx(0.5, abs=0.03)
