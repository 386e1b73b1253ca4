"""Rows of prompts of different lengths in one cache, also in steps of one shape: each continues as it would alone."""

import pytest
import torch
from small import CASES, build, named

from musictx.errors import ConfigError
from musictx.model.cache import KVCache
from musictx.model.static_steps import StaticSteps

LENGTHS = (3, 9, 9, 1)
N = 12  # tokens after each prompt


def ids(*shape) -> torch.Tensor:
    return torch.randint(0, 23, shape, generator=torch.Generator().manual_seed(1))


def prefilled(model, prompt, room, rolling):
    state = model.init_state(1, room, rolling)
    for start in range(0, len(prompt), 5):
        model.prefill(prompt[None, start : start + 5], state)
    return state


def prefilled_and_joined(model, rolling):
    """The states of the rows, and twice their cache."""
    prompts, room = [ids(40)[40 - n :] for n in LENGTHS], 7 if rolling else 9 + N + 1
    states, one, other = ([prefilled(model, prompt, room, rolling) for prompt in prompts] for _ in range(3))
    return states, KVCache.join(one), KVCache.join(other)


@pytest.mark.parametrize("rolling", [False, True])
@pytest.mark.parametrize("case", [*CASES, {"attention": "reference"}], ids=named)
@torch.inference_mode()
def test_each_row_of_a_ragged_batch_equals_its_solo_run_also_in_steps_of_one_shape(case, rolling):
    model, then = build(**case), ids(len(LENGTHS), N)
    static = StaticSteps(model)
    other = KVCache.join([prefilled(model, ids(9), 7 if rolling else 9 + N + 1, rolling)] * 4)
    static.step(then[:, 0], other)  # what earlier music left behind is not seen
    states, joined, mine = prefilled_and_joined(model, rolling)
    for t in range(N):
        got = model.step(then[:, t], joined)
        alone = torch.cat([model.step(then[b : b + 1, t], state) for b, state in enumerate(states)])
        torch.testing.assert_close(got, alone)
        torch.testing.assert_close(static.step(then[:, t], mine), got)
    assert mine.length == joined.length == 9 + N
    assert mine.k.untyped_storage().nbytes() == 0  # nothing is kept twice
    rows = torch.tensor([3, 0, 0])
    torch.testing.assert_close(model.step(then[rows, 0], joined.take(rows)), model.step(then[:, 0], joined)[rows])


@torch.inference_mode()
def test_several_tokens_at_once_after_joining():
    for impl in ("reference", "skew", "chunked"):
        model, then = build(attention=impl), ids(2, 4)
        states = [prefilled(model, prompt, 12, False) for prompt in (ids(8), ids(3))]
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


@torch.inference_mode()
def test_steps_of_one_shape_have_room_for_one_cache_at_a_time():
    model, static = build(), StaticSteps(build())
    for rows in (1, 3, 2):  # another shape takes other memory
        mine, theirs = (prefilled(model, ids(4), 6, False).take(torch.zeros(rows).long()) for _ in range(2))
        for t in range(2):
            torch.testing.assert_close(static.step(ids(rows, 2)[:, t], mine), model.step(ids(rows, 2)[:, t], theirs))
    first, second = (prefilled(static, ids(4), 5, False) for _ in range(2))
    static.step(ids(1), first)
    with pytest.raises(ValueError, match="6 tokens .* cache of 5:"):
        static.step(ids(1), first)
    with pytest.raises(ValueError, match="cache of 0"):  # its content has moved
        model.step(ids(1), first)
    static.step(ids(1), second)
    with pytest.raises(ValueError, match="already:"):
        static.step(ids(1), first)


@pytest.mark.parametrize("case", [{"attention": "chunked"}, {"position": "learned", "max_positions": 4}], ids=named)
@torch.inference_mode()
def test_steps_of_one_shape_refuse_a_kernel_that_reads_keys_in_order_and_places_that_end(case):
    static = StaticSteps(build(**case))
    with pytest.raises(ConfigError, match=r"^impl=chunked: |^max_positions=4: "):
        static.step(ids(1), prefilled(static, ids(4), 9, False))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("rolling", [False, True])
@pytest.mark.parametrize("case", CASES, ids=named)
@torch.inference_mode()
def test_a_graph_replays_steps_of_one_shape(case, rolling):
    model, then = build(**case).cuda(), ids(len(LENGTHS), 25).cuda()
    static, room = StaticSteps(model), 7 if rolling else 34
    for rows in (4, 4, 3, 4):  # replayed, captured again
        prompts = [ids(40)[40 - n :].cuda() for n in LENGTHS[:rows]]
        mine, theirs = (KVCache.join([prefilled(model, p, room, rolling) for p in prompts]) for _ in range(2))
        for t in range(25):
            torch.testing.assert_close(static.step(then[:rows, t], mine), model.step(then[:rows, t], theirs))
    assert static.graph is not None
