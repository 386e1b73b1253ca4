"""No step waits for the device: on `meta`, where a tensor has no value, whatever asks for one raises."""

import pytest
import torch

from musictx.model.recurrent import Recurrent, RecurrentConfig
from musictx.model.static_steps import StaticSteps
from musictx.model.transformer import Transformer, TransformerConfig
from musictx.sampling.engine import Row, Stream
from musictx.sampling.grammar import build_grammar
from musictx.sampling.prompt import make_prompt
from musictx.sampling.rules import Rules
from musictx.sampling.settings import Sampling
from musictx.tokenizers import build_tokenizer

EVERY_FILTER = Sampling(top_k=9, top_p=0.9, min_p=0.1, typical=0.9)


def transformer(position, clock="index"):
    def build(v):
        sizes = {"d_model": 16, "n_layers": 2, "n_heads": 2, "d_ff": 32, "max_distance": 8}
        return Transformer(TransformerConfig(v, position=position, clock=clock, cycle=4, **sizes))

    return build


def recurrent(v):
    return Recurrent(RecurrentConfig(v, d_model=16, n_layers=2, additive=True, d_attention=8, window=6))


@pytest.mark.parametrize("rolling", [False, True])
@pytest.mark.parametrize("name", ["performance", "chorale"])
@pytest.mark.parametrize(
    ("build", "static"),
    [
        (recurrent, False),
        *((transformer(p), static) for p in ("relative", "relative_fourier", "rope", "learned") for static in (0, 1)),
        *((transformer("relative_fourier", "time"), static) for static in (0, 1)),
    ],
)
@torch.inference_mode()
def test_no_step_waits_for_the_device(build, static, name, rolling):
    tokenizer = build_tokenizer(name)
    prompt = make_prompt(None, tokenizer, None, "meta")
    rules = Rules(scale="C major", voice_order=name == "chorale", max_polyphony=4 if name == "performance" else None)
    grammar = build_grammar(tokenizer, rules, [prompt.ids] * 3, [prompt.quarter_s] * 3, "meta")
    model = build(tokenizer.vocab.size).eval().to("meta")
    model, rows = StaticSteps(model) if static else model, [Row(0, (5, k)) for k in range(3)]
    stream = Stream(model, [prompt.heard], rows, EVERY_FILTER, grammar, tokenizer.vocab.eos, 40, rolling)
    for _ in range(50 if rolling else 39):
        drawn = stream.step()
    assert drawn.ids.device.type == "meta"
    with pytest.raises(RuntimeError, match="meta"):
        drawn.ids[0].item()
