"""No step of a model waits for the device: its graph holds all of it.

On `meta` a tensor has no value, and whatever asks for one raises; what would come from the host is looked for.
"""

from dataclasses import replace

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from musictx.model.recurrent import Recurrent, RecurrentConfig
from musictx.model.static_steps import StaticSteps
from musictx.model.transformer import Transformer, TransformerConfig

V = 11


class NothingOfTheHost(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        assert func is not torch.ops.aten.detach_.default, "torch.tensor makes one of numbers on the host"
        for tensor in tree_leaves((args, kwargs, out)):
            assert not (isinstance(tensor, torch.Tensor) and tensor.device.type == "cpu"), f"{func} on the host"
        return out


def transformer(position, clock="index"):
    config = TransformerConfig(V, d_model=16, n_layers=1, n_heads=2, d_ff=32, max_distance=8, n_frequencies=2)
    return Transformer(replace(config, position=position, clock=clock, cycle=4))


def recurrent():
    return Recurrent(RecurrentConfig(V, d_model=16, n_layers=2, recall=True, d_attention=8, window=6))


@pytest.mark.parametrize(
    ("build", "static", "rolling"),
    [
        (recurrent, False, True),
        (recurrent, False, False),
        (lambda: transformer("relative"), False, True),
        (lambda: transformer("relative"), True, True),
        (lambda: transformer("learned"), True, False),
        (lambda: transformer("relative_fourier", "time"), True, True),
    ],
)
@torch.inference_mode()
def test_no_step_waits_for_the_device(build, static, rolling):
    model = build().eval().to("meta")
    model = StaticSteps(model) if static else model
    state = model.init_state(1, 4 if rolling else 8, rolling)
    model.prefill(torch.zeros(1, 2, dtype=torch.long, device="meta"), state)
    ids = torch.zeros(1, dtype=torch.long, device="meta")
    model.step(ids, state)
    with NothingOfTheHost():
        for _ in range(8 if rolling else 5):  # past the window, and the room after which it moves
            logits = model.step(ids, state)
    assert logits.device.type == "meta"
