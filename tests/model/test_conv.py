"""The convolution before attention: its definition, and that a model can learn by it."""

from typing import Any

import torch
import torch.nn.functional as F
from proofs import learn

from musictx.model.build import build_model, model_config
from musictx.model.conv import ShortConv

SIZES: dict[str, Any] = {"vocab_size": 11, "d_model": 32, "n_layers": 1, "n_heads": 2, "d_ff": 64, "dropout": 0.0}


def test_it_is_a_causal_convolution_of_each_channel():
    torch.manual_seed(0)
    conv, x, before = ShortConv(3, 5), torch.randn(2, 7, 5), torch.randn(2, 2, 5)
    torch.nn.init.normal_(conv.weight)
    kernel = conv.weight.T[:, None]  # (C, 1, W)
    for start in (before, None):
        padded = torch.cat([before if start is not None else torch.zeros(2, 2, 5), x], 1)
        want = x + F.conv1d(padded.mT, kernel, groups=5).mT
        torch.testing.assert_close(conv(x, start), want)


def trained_nll(conv):
    """Nats a token of a copy at a lag of 1, where attention alone cannot tell which of the tokens came last."""
    torch.manual_seed(0)
    model = build_model(model_config("transformer", SIZES | {"position": "none", "conv": conv}))

    def batch():
        ids = torch.randint(0, 11, (32, 12))
        return model(ids)[:, 1:].flatten(0, 1), ids[:, :-1].flatten()

    return learn(model, batch, 1e-2, 60)


def test_it_learns_what_attention_without_order_cannot():
    assert trained_nll(2) < 0.1
    assert trained_nll(1) > 1.5
