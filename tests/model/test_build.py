import pytest
import torch

from musictx.errors import ConfigError
from musictx.model.build import build_model, describe_model, kind_of, model_config, settings_of


def test_each_kind_is_built_and_described():
    sizes = {"vocab_size": 11, "d_model": 16, "n_layers": 2}
    transformer = build_model(model_config("transformer", sizes | {"n_heads": 2, "d_ff": 8, "max_distance": 4}))
    recurrent = build_model(model_config("recurrent", sizes | {"additive": True, "window": 5}))
    assert (kind_of(transformer), kind_of(recurrent)) == ("transformer", "recurrent")
    for model in (transformer, recurrent):
        assert model(torch.zeros(1, 3, dtype=torch.long)).shape == (1, 3, 11)
    assert describe_model(transformer).startswith("model: 2 layers, 3,")
    assert "; attention: relative, impl=skew" in describe_model(transformer)
    assert "2 layers of lstm cells, additive attention over 5 past states" in describe_model(recurrent)
    assert "n_heads" in settings_of("transformer")
    assert "n_heads" not in settings_of("recurrent")


def test_an_unknown_kind():
    with pytest.raises(ConfigError, match="^model.kind=mamba: choose one of transformer, recurrent"):
        model_config("mamba", {"vocab_size": 3})
