"""Rows of prompts of different lengths in one cache: each continues as it would have alone."""

import pytest
import torch
from proofs import BLOCKS

from musictx.model.cache import KVCache
from musictx.model.position import FORMS, timed_forms
from musictx.model.transformer import Transformer, TransformerConfig

ALL = [*((form, "index") for form in FORMS), *((form, "time") for form in timed_forms())]
CASES = [{"position": form, "clock": clock, **block} for form, clock in ALL for block in BLOCKS] + [{"cycle": 4}]
LENGTHS = (3, 9, 9, 1)
N = 9  # tokens after each prompt


def build(**changes) -> Transformer:
    torch.manual_seed(0)
    sizes = {"d_model": 24, "n_layers": 2, "n_heads": 3, "d_ff": 48, "dropout": 0.0, "max_distance": 6}
    config = TransformerConfig(23, n_frequencies=3, **(sizes | changes))
    net = Transformer(config, torch.arange(23) / 10).double().eval()
    for p in net.parameters():  # as small as they start, no token would be said from another
        if p.dim() > 1:
            torch.nn.init.normal_(p, std=0.3)
    return net


def ids(*shape) -> torch.Tensor:
    return torch.randint(0, 23, shape, generator=torch.Generator().manual_seed(1))


def prefilled(model, prompt, room, rolling):
    state = model.init_state(1, room, rolling)
    for start in range(0, len(prompt), 5):
        model.prefill(prompt[None, start : start + 5], state)
    return state


@pytest.mark.parametrize("rolling", [False, True])
@pytest.mark.parametrize("case", CASES)
@torch.inference_mode()
def test_each_row_of_a_ragged_batch_equals_its_solo_run(case, rolling):
    model, then = build(**case), ids(len(LENGTHS), N)
    prompts = [ids(40)[40 - n :] for n in LENGTHS]
    room = 7 if rolling else 9 + N + 1
    states = [prefilled(model, prompt, room, rolling) for prompt in prompts]
    joined = KVCache.join([prefilled(model, prompt, room, rolling) for prompt in prompts])
    assert joined.length == 9
    for t in range(N):
        got = model.step(then[:, t], joined)
        alone = torch.cat([model.step(then[b : b + 1, t], state) for b, state in enumerate(states)])
        torch.testing.assert_close(got, alone)
    rows = torch.tensor([3, 0, 0])
    torch.testing.assert_close(model.step(then[rows, 0], joined.take(rows)), model.step(then[:, 0], joined)[rows])


@torch.inference_mode()
def test_several_tokens_at_once_after_joining():
    for impl in ("reference", "skew", "chunked"):
        model, then = build(attention=impl), ids(2, 4)
        prompts = ids(8), ids(3)
        states = [prefilled(model, prompt, 12, False) for prompt in prompts]
        got = model.prefill(then, KVCache.join(states))
        alone = torch.cat([model.prefill(then[b : b + 1], state) for b, state in enumerate(states)])
        torch.testing.assert_close(got, alone)


@torch.inference_mode()
def test_rows_of_one_age_need_no_mask():
    model = build()
    states = [prefilled(model, ids(4), 12, False) for _ in range(2)]
    assert KVCache.join(states).behind is None
    ragged = KVCache.join([prefilled(model, ids(n), 5, True) for n in (4, 1)])
    ragged.begin(1)
    assert ragged.masked is not None
    assert ragged.masked.tolist() == [[False] * 5, [True, True, True, False, False]]
    for _ in range(3):
        model.step(ids(2), ragged)
    ragged.begin(1)
    assert ragged.masked is None  # the window has rolled past where the younger row begins
