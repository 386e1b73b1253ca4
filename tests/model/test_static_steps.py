"""Steps of one shape are the model's own."""

import pytest
import torch
from test_cache import CASES, LENGTHS, build, ids, prefilled

from musictx.errors import ConfigError
from musictx.model.cache import KVCache
from musictx.model.static_steps import StaticSteps


@pytest.mark.parametrize("rolling", [False, True])
@pytest.mark.parametrize("case", [*CASES, {"attention": "reference"}])
@torch.inference_mode()
def test_rows_of_any_age_rolling_or_not_step_as_the_model_does(case, rolling):
    model, then = build(**case), ids(len(LENGTHS), 13)
    static, room = StaticSteps(model), 7 if rolling else 22
    for prompts in ([ids(40)[40 - n :] for n in LENGTHS], [ids(9)] * 4):  # what earlier music left behind is not seen
        mine, theirs = (KVCache.join([prefilled(model, p, room, rolling) for p in prompts]) for _ in range(2))
        for t in range(13):
            torch.testing.assert_close(static.step(then[:, t], mine), model.step(then[:, t], theirs))
        assert mine.length == theirs.length
        assert mine.k.untyped_storage().nbytes() == 0  # nothing is kept twice


@torch.inference_mode()
def test_a_batch_of_another_shape_takes_other_memory():
    model = build()
    static = StaticSteps(model)
    for rows in (1, 3, 2):
        mine, theirs = (prefilled(model, ids(4), 6, False).take(torch.zeros(rows).long()) for _ in range(2))
        for t in range(2):
            torch.testing.assert_close(static.step(ids(rows, 2)[:, t], mine), model.step(ids(rows, 2)[:, t], theirs))


@torch.inference_mode()
def test_where_it_ends():
    static = StaticSteps(build())
    state = prefilled(static, ids(4), 5, False)
    static.step(ids(1), state)
    with pytest.raises(ValueError, match="6 tokens .* cache of 5:"):
        static.step(ids(1), state)
    with pytest.raises(ValueError, match="cache of 0"):  # its content has moved
        static.model.step(ids(1), state)


@pytest.mark.parametrize("rolling", [False, True])
@torch.inference_mode()
def test_it_has_room_for_one_cache_at_a_time(rolling):
    static = StaticSteps(build())
    first, second = (prefilled(static, ids(4), 9, rolling) for _ in range(2))
    static.step(ids(1), first)
    rows = first.take(torch.tensor([0]))
    static.step(ids(1), second)
    for moved in (first, rows):
        with pytest.raises(ValueError, match="already:"):
            static.step(ids(1), moved)


@torch.inference_mode()
def test_a_kernel_that_reads_keys_in_their_order_alone_is_refused():
    static = StaticSteps(build(attention="chunked"))
    with pytest.raises(ConfigError, match="^impl=chunked: "):
        static.step(ids(1), prefilled(static, ids(4), 9, False))


@torch.inference_mode()
def test_learned_positions_end():
    learned = StaticSteps(build(position="learned", max_positions=4))
    with pytest.raises(ConfigError, match="^max_positions=4: "):
        learned.step(ids(1), prefilled(learned, ids(4), 9, False))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("rolling", [False, True])
@pytest.mark.parametrize("case", CASES)
@torch.inference_mode()
def test_a_graph_replays_them(case, rolling):
    model, then = build(**case).cuda(), ids(len(LENGTHS), 25).cuda()
    static, room = StaticSteps(model), 7 if rolling else 34
    for rows in (4, 4, 3, 4):  # replayed, captured again
        prompts = [ids(40)[40 - n :].cuda() for n in LENGTHS[:rows]]
        mine, theirs = (KVCache.join([prefilled(model, p, room, rolling) for p in prompts]) for _ in range(2))
        for t in range(25):
            torch.testing.assert_close(static.step(then[:rows, t], mine), model.step(then[:rows, t], theirs))
    assert static.graph is not None
