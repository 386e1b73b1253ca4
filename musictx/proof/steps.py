"""Checks cached steps against float64: the model's own on the device, and those of one shape, which a CUDA graph holds.

The tolerance comes from data: twice the error that the model's own steps make on the CPU in the same dtype. Every form
of position steps with rows of different ages, in a rolling cache and in a fixed one, in memory left over from other
music, and again after a batch of another shape.
"""

import copy
from collections.abc import Iterator, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from musictx.generate.engine import prefill
from musictx.model.position import FORMS, timed_forms
from musictx.model.protocol import LanguageModel
from musictx.model.static_steps import StaticSteps
from musictx.model.transformer import Transformer, TransformerConfig
from musictx.proof.machine import Check, CheckConfig, Outcome, check_dtype, near_exact, worst

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
TIMED = tuple((form, "time") for form in timed_forms())
VOCAB, CYCLE, STEPS = 61, 4, 25
PROMPTS = (3, 9, 9, 1)  # tokens of each row's
BATCHES = (4, 4, 3, 4)  # rows: a graph is replayed for other music, then captured anew
ROOMS = ((9 + STEPS, False), (7, True))  # tokens in the cache, and whether it rolls


def checks(config: CheckConfig) -> Iterator[Check]:
    """Checks all steps but the model's own on a CPU, which all others are measured by."""
    on_gpu = config.device == "cuda"
    one_shape = ", graph" if on_gpu else ", one shape"
    for position, clock in (*((form, "index") for form in FORMS), *TIMED):
        form = f"steps {position}{', clock=time' if clock == 'time' else ''}"
        for dtype in DTYPES:
            own = f"{form}, {dtype}"
            measure = partial(_held, config.device, position, clock, dtype)
            if on_gpu:
                safe, proof = ("device=cpu", "") if dtype == "float32" else ("weights=float32", f"{form}, float32")
                yield Check(own, safe, partial(measure, static=False), proof)
            yield Check(own + one_shape, "graph=false", partial(measure, static=True), own if on_gpu else "")


def _held(device: str, position: str, clock: str, dtype: str, static: bool) -> Outcome:
    check_dtype(device, dtype)
    return compare(build(position, clock).to(DTYPES[dtype]), device, static)


def build(position: str, clock: str) -> Transformer:
    """A model with larger weights than at the start of training, or all tokens would look the same to it."""
    torch.manual_seed(0)
    kind = TransformerConfig(
        VOCAB, 48, 2, 3, 96, 0.0, max_distance=6, position=position, clock=clock, n_frequencies=3, cycle=CYCLE
    )
    model = Transformer(kind, torch.arange(VOCAB) / 10).eval()
    for p in model.parameters():
        if p.dim() > 1:
            nn.init.normal_(p, std=0.3)
    return model


def compare(model: Transformer, device: str, static: bool) -> Outcome:
    """The worst of all steps of this model, which is on the CPU, or of its steps of one shape."""
    exact_model, here = copy.deepcopy(model).double(), copy.deepcopy(model).to(device)
    mine = StaticSteps(here) if static else here
    g = torch.Generator().manual_seed(1)
    music = torch.randint(0, VOCAB, (max(PROMPTS),), generator=g)
    then = torch.randint(0, VOCAB, (max(BATCHES), STEPS), generator=g)
    found = []
    for room, rolling in ROOMS:
        for rows in BATCHES:
            prompts, asked = [music[-n:] for n in PROMPTS[:rows]], then[:rows]
            exact, plain = (along(m, prompts, asked, room, rolling) for m in (exact_model, model))
            got = along(mine, [p.to(device) for p in prompts], asked.to(device), room, rolling)
            where = f"{rows} rows, cache of {room}{', rolling' if rolling else ''}"
            found.append(near_exact(where, got, exact, plain))
    return worst(found)


@torch.inference_mode()
def along(model: LanguageModel, prompts: Sequence[Tensor], then: Tensor, room: int, rolling: bool) -> Tensor:
    """Logits (T, B, V) after each of the tokens `then` (B, T); row b continues prompts[b]."""
    _, state = prefill(model, prompts, range(len(prompts)), room, rolling)
    return torch.stack([model.step(then[:, t], state).clone() for t in range(then.shape[1])])  # the next overwrites it
