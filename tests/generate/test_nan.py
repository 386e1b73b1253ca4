import torch
from stubs import noise

from musictx.generate.filters import first_bad_module, nan_error
from musictx.model.transformer import Transformer, TransformerConfig

IDS = torch.tensor([1, 2, 3])


def build():
    torch.manual_seed(0)
    return Transformer(TransformerConfig(11, d_model=16, n_layers=2, n_heads=2, d_ff=16, max_distance=8)).eval()


def test_the_first_layer_with_broken_weights_is_named():
    model = build()
    model.blocks[1].up.weight.data[0, 0] = torch.nan
    assert first_bad_module(model, IDS) == "blocks.1.up"
    assert "(blocks.1.up.weight)" in str(nan_error(model, IDS))


def test_a_layer_that_overflows_is_named_without_blaming_its_weights():
    model = build()
    model.blocks[0].up.weight.data.fill_(1e38)
    model.blocks[0].down.weight.data.fill_(1e38)
    assert first_bad_module(model, IDS) in ("blocks.0.up", "blocks.0.down")
    assert ".weight)" not in str(nan_error(model, IDS))


def test_one_that_is_no_module_names_nothing():
    assert "(NaN): " in str(nan_error(noise(5), IDS))
