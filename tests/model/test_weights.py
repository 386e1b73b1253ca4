"""Weights for generating: in 8 bits, in 16, or in a matrix kernel's own order, beside the plain layers."""

import copy
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from proofs import BLOCKS, OTHER_BLOCK
from torch import nn

from musictx.errors import ConfigError
from musictx.model.recurrent import Recurrent, RecurrentConfig
from musictx.model.settings import AUTO
from musictx.model.transformer import Transformer, TransformerConfig
from musictx.model.weights import (
    Int8Linear,
    PackedLinear,
    can_pack,
    choose_weights,
    describe_weights,
    for_steps,
)
from musictx.system import processor

needs_onednn = pytest.mark.skipif(not can_pack(torch.float32), reason="this PyTorch has no oneDNN")
CONFIG = TransformerConfig(vocab_size=50, d_model=64, n_layers=2, n_heads=2, d_ff=128)


@pytest.mark.parametrize("rows", [1, 17, 200])  # few and many rows take two ways
@pytest.mark.parametrize(("width", "bias"), [(1, True), (20, False), (63, True), (64, False), (236, True)])
def test_a_layer_of_int8_is_the_full_one_within_its_rounding(width, rows, bias):
    """The kernel reads past the end of a row whose width is no multiple of 16: numbers from anywhere, or a crash."""
    torch.manual_seed(rows)
    linear, x = nn.Linear(width, 48, bias=bias), torch.randn(2, rows, width)
    with torch.inference_mode():
        exact, got = linear(x), Int8Linear(linear)(x)
    assert got.shape == exact.shape
    assert got.dtype == torch.float32
    # weights: half a step of 1/127 of the largest, all of them at random; activations and output: 8 bits
    step = linear.weight.abs().amax(1) / 127
    allowed = 5 * (0.29 * step * width**0.5 + 2**-8 * exact.abs() + 2**-8 * linear.weight.norm(dim=1))
    assert ((got - exact).abs() <= allowed).all()


@pytest.mark.parametrize(("weights", "block"), [("int8", {}), ("int8", OTHER_BLOCK), ("bfloat16", {})])
def test_a_transformer_keeps_its_likelihoods_with_fewer_bits(weights, block):
    if weights == "bfloat16" and not can_pack(torch.bfloat16):
        pytest.skip("this processor only emulates bfloat16")
    torch.manual_seed(0)
    model = Transformer(replace(CONFIG, **block)).eval()
    ids = torch.randint(50, (2, 20))
    with torch.inference_mode():
        before = model(ids).log_softmax(-1)
        after = for_steps(model, weights)(ids).log_softmax(-1)
    assert 0 < (before - after).abs().max() < 0.05
    assert after.dtype == model.embed.weight.dtype == torch.float32
    smaller = [m for m in model.modules() if isinstance(m, Int8Linear | PackedLinear)]
    assert [m.weight.dtype if isinstance(m, Int8Linear) else m.dtype for m in smaller] == [getattr(torch, weights)] * 8
    assert describe_weights(model) == f"{weights} linear layers"


def layers(model) -> list[PackedLinear]:
    return [m for m in model.modules() if isinstance(m, PackedLinear)]


@needs_onednn
@pytest.mark.parametrize("rows", [1, 17, 300])
@pytest.mark.parametrize(("shape", "bias"), [((64, 48), True), ((59, 113), False), ((1, 7), True)])
def test_a_packed_layer_errs_no_more_than_twice_the_plain_one(rows, bias, shape):
    torch.manual_seed(rows)
    linear, x = nn.Linear(shape[0], shape[1], bias=bias), torch.randn(3, rows, shape[0])
    with torch.inference_mode():
        plain, packed = linear(x), PackedLinear(linear, torch.float32)(x)
        exact = copy.deepcopy(linear).double()(x.double())
    assert packed.shape == plain.shape
    assert packed.dtype == torch.float32
    assert (packed - exact).abs().max() <= max(2 * (plain - exact).abs().max(), 1e-6)


@needs_onednn
@pytest.mark.parametrize(("position", "block"), zip(["relative", "relative_fourier"], BLOCKS, strict=True))
def test_steps_of_a_packed_model_are_those_of_the_plain_one(position, block):
    torch.manual_seed(0)
    model = Transformer(replace(CONFIG, position=position, **block)).eval()
    ids = torch.randint(50, (3, 12))
    with torch.inference_mode():
        exact = model(ids)
        packed = for_steps(model)
        state = packed.init_state(3, 12)
        got = [packed.prefill(ids[:, :5], state), *(packed.step(ids[:, t], state) for t in range(5, 12))]
    assert len(layers(packed)) == 8
    torch.testing.assert_close(torch.stack(got, 1), exact[:, 4:], rtol=1e-4, atol=1e-5)


@needs_onednn
def test_gelu_in_the_same_kernel_is_the_exact_one():
    torch.manual_seed(0)
    linear, x = nn.Linear(64, 96), 3 * torch.randn(5, 64)
    with torch.inference_mode():
        exact = F.gelu(copy.deepcopy(linear).double()(x.double()))
        fused, apart = PackedLinear(linear, torch.float32, gelu=True)(x), F.gelu(linear(x))
    assert (fused - exact).abs().max() <= 2 * (apart - exact).abs().max()
    assert (F.gelu(linear(x), approximate="tanh") - exact).abs().max() > 2 * (apart - exact).abs().max()


@needs_onednn
def test_a_packed_model_can_be_copied_but_not_saved_trained_or_given_other_weights():
    model = for_steps(Transformer(CONFIG).eval())
    ids = torch.randint(50, (2, 9))
    with torch.inference_mode():
        assert (copy.deepcopy(model)(ids) == model(ids)).all()
    with pytest.raises(RuntimeError, match=" saved: "):
        model.state_dict()
    with pytest.raises(RuntimeError, match=" trained: "):
        model(ids)
    with pytest.raises(ConfigError, match="weights=int8: "):
        for_steps(model, "int8")
    assert for_steps(model) is model


def test_recurrent_weights_of_16_bits_are_so_everywhere_and_8_bits_are_refused():
    model = Recurrent(RecurrentConfig(vocab_size=9, d_model=8, n_layers=1)).eval()
    with pytest.raises(ConfigError, match="weights=int8: "):
        for_steps(model, "int8")
    if not processor().bfloat16:  # PyTorch has no such cells there, and would fail at the first token
        with pytest.raises(ConfigError, match="weights=bfloat16: "):
            for_steps(model, "bfloat16")
        return
    assert {p.dtype for p in for_steps(model, "bfloat16").parameters()} == {torch.bfloat16}
    assert describe_weights(model) == "bfloat16"


@pytest.mark.parametrize(
    ("int8", "device", "recurrent", "chosen"),
    [
        *((True, "cpu", False, "int8"), (False, "cpu", False, "float32")),
        *((True, "meta", False, "float32"), (True, "cpu", True, "float32")),
    ],
)
def test_weights_are_chosen_by_model_and_processor_alone(int8, device, recurrent, chosen, monkeypatch):
    monkeypatch.setattr("musictx.model.weights.processor", lambda: processor()._replace(int8=int8))
    model = Recurrent(RecurrentConfig(9, d_model=8)) if recurrent else Transformer(CONFIG)
    assert choose_weights(AUTO, model.to(device)) == chosen
    assert choose_weights("bfloat16", model) == "bfloat16"
