"""Small decoders of every form and part, as ONNX graphs are held against them."""

import numpy as np
import pytest
import torch
from small import CASES, V, build, named

from musictx.model.keyboard import KeyboardState
from musictx.model.position import FORMS

ODD = [{"position": form, "d_model": 15, "n_heads": 3} for form in FORMS]
ALL = {"conv": 3, "keyboard": "head", "mlp": "swiglu", "qk_norm": True, "value_residual": True, "cycle": 4}
MORE = [{"norm": "post", "mlp": "relu", **ALL, "position": "relative_fourier", "clock": "time"}, {"conv": 9}, ALL, *ODD]
every = pytest.mark.parametrize("case", [*CASES, *MORE], ids=named)


def small(case):
    """A model in float32, whose ids do all that an id can do to the keyboard."""
    model = build(**case).float()
    dice = torch.Generator().manual_seed(3)
    for part in model.modules():
        if isinstance(part, KeyboardState):
            for table, below in ((part.key, 5), (part.act, 4), (part.wait_us, 900_000)):
                table.copy_(torch.randint(below, (V,), generator=dice))
    return model


def drawn(*shape):
    return np.random.default_rng(1).integers(0, V, shape)


@torch.inference_mode()
def full(model, ids):
    """Logits (B, T, V) of one pass through PyTorch."""
    return model(torch.from_numpy(ids)).numpy()


def close(got, expected, within=1e-4):
    np.testing.assert_allclose(got, expected, rtol=0, atol=within)
