from dataclasses import replace

import pytest
import torch
from proofs import BLOCKS
from torch import nn

from musictx.errors import ConfigError
from musictx.model.recurrent import Recurrent, RecurrentConfig
from musictx.model.transformer import Transformer, TransformerConfig
from musictx.model.weights import Int8Linear, describe_weights, for_steps, to_int8


@pytest.mark.parametrize("rows", [1, 16, 17, 200])  # few and many rows take two ways
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("width", [1, 7, 20, 24, 63, 64, 236])
def test_a_layer_is_the_full_one_within_its_rounding(width, rows, bias):
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


@pytest.mark.parametrize("block", BLOCKS)
def test_a_transformer_keeps_its_likelihoods_and_loses_three_quarters_of_its_layers(block):
    torch.manual_seed(0)
    config = TransformerConfig(vocab_size=50, d_model=64, n_layers=2, n_heads=2, d_ff=128)
    model = Transformer(replace(config, **block)).eval()
    ids = torch.randint(50, (2, 20))
    with torch.inference_mode():
        before = model(ids).log_softmax(-1)
        after = to_int8(model)(ids).log_softmax(-1)
    assert 0 < (before - after).abs().max() < 0.05
    assert [m.weight.element_size() for m in model.modules() if isinstance(m, Int8Linear)] == [1] * 8
    assert describe_weights(for_steps(model)) == "int8 linear layers"


def test_a_model_without_linear_layers_is_refused():
    with pytest.raises(ConfigError, match="weights=int8: "):
        to_int8(Recurrent(RecurrentConfig(vocab_size=9, d_model=8, n_layers=1)))
