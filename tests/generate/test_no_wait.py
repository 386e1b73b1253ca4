"""No step waits for the device: nothing is read from it, and nothing is copied to it.

On `meta` a tensor has no value, and whatever asks for one raises; what would come from the host is looked for.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from musictx.generate.control import Control
from musictx.generate.engine import BatchRow, ByChance, Stream, prefill
from musictx.generate.prompt import make_prompt
from musictx.generate.requests import PLAIN
from musictx.generate.steering import Steering
from musictx.model.recurrent import Recurrent, RecurrentConfig
from musictx.model.static_steps import StaticSteps
from musictx.model.transformer import Transformer, TransformerConfig
from musictx.tokenizers import build_tokenizer
from musictx.tokenizers.grammar import build_grammar
from musictx.tokenizers.on_grid import OnGrid
from musictx.tokenizers.rules import Rules

EVERY_FILTER = replace(PLAIN, top_k=9, top_p=0.9, min_p=0.1)


class NothingOfTheHost(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        assert func is not torch.ops.aten.detach_.default, "torch.tensor makes one of numbers on the host"
        for tensor in tree_leaves((args, kwargs, out)):
            assert not (isinstance(tensor, torch.Tensor) and tensor.device.type == "cpu"), f"{func} on the host"
        return out


def transformer(position, clock="index"):
    def build(v):
        config = TransformerConfig(v, d_model=16, n_layers=1, n_heads=2, d_ff=32, max_distance=8)
        return Transformer(replace(config, position=position, clock=clock, cycle=4))

    return build


def recurrent(v):
    return Recurrent(RecurrentConfig(v, d_model=16, n_layers=2, additive=True, d_attention=8, window=6))


@pytest.mark.parametrize(
    ("build", "static", "name"),
    [
        (recurrent, False, "performance"),
        (recurrent, False, "chorale"),
        (transformer("relative"), False, "performance"),
        (transformer("relative"), True, "performance"),
        (transformer("relative"), True, "chorale"),
        (transformer("learned"), True, "chorale"),
        (transformer("relative_fourier", "time"), True, "performance"),
    ],
)
@torch.inference_mode()
def test_no_step_waits_for_the_device(build, static, name):
    rolling, guidance = (True, 1.0) if name == "performance" else (False, None)
    tokenizer = build_tokenizer(name)
    prompt = make_prompt(None, tokenizer, None, "meta")
    rules = Rules(scale="C major", voice_order=name == "chorale", max_polyphony=4 if name == "performance" else None)
    grammar = build_grammar(tokenizer, rules, [prompt.ids] * 3, [prompt.quarter_s] * 3, "meta")
    fold = None
    if name == "performance":
        lines = np.arange(0.0, 9.0, 0.25)
        grammar = on_grid = OnGrid(grammar, tokenizer, [prompt.ids] * 3, [lines] * 3, "meta")
        fold = on_grid.fold
    model = build(tokenizer.vocab.size).eval().to("meta")
    model, rows = StaticSteps(model) if static else model, [BatchRow(0, (5, k)) for k in range(3)]
    streams, sampling = 1 + (guidance is not None), replace(EVERY_FILTER, seed_guidance=guidance)
    logits, state = prefill(model, [prompt.heard], [0] * len(rows) * streams, 4 if rolling else 8, rolling)
    control = Control(key="C", chords="C | Am F", density=4.0, loudness=80) if name == "performance" else Control("C")
    steering = Steering(control, tokenizer, [prompt] * 3, "meta")
    chance = ByChance(sampling, [row.key for row in rows], "meta", steering, fold)
    stream = Stream(model, logits, state, grammar, chance, streams)
    next(stream)  # numbers for 256 tokens are drawn on the host, and copied
    with NothingOfTheHost():
        for _ in range(8 if rolling else 5):  # past the window, and the room after which it moves
            drawn = next(stream)
    assert drawn.ids.device.type == "meta"
