from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from proofs import assert_same, results, tokens
from torch.utils._python_dispatch import TorchDispatchMode

from musictx.model.recurrent import AdditiveAttention, Recurrent, RecurrentConfig

CONFIG = RecurrentConfig(vocab_size=23, d_model=12, n_layers=2, d_attention=5, window=7, dropout=0.0)
KINDS: dict[str, dict[str, Any]] = {
    "lstm": {},
    "rnn": {"cell": "rnn"},
    "additive": {"additive": True},
    "additive rnn": {"additive": True, "cell": "rnn"},
    "window of 1": {"additive": True, "window": 1},
    "window of all": {"additive": True, "window": 80},  # longer than two blocks of queries
}
all_kinds = pytest.mark.parametrize("kind", KINDS)


def build(kind, **changes) -> Recurrent:
    torch.manual_seed(0)
    return Recurrent(replace(CONFIG, **KINDS[kind], **changes)).double().eval()


def oracle(attention, h):
    """The definition, one query and one past state at a time."""
    rows = []
    for b in range(h.shape[0]):
        keys = [attention.key.weight @ state for state in h[b]]
        for t in range(h.shape[1]):
            past = range(max(t - attention.window, 0), t)
            context = torch.zeros_like(h[b, t])
            if past:
                q = attention.query.weight @ h[b, t]
                scores = [attention.score.weight[0] @ torch.tanh(q + keys[s]) for s in past]
                weights = torch.stack(scores).softmax(0)
                context = sum(w * h[b, s] for w, s in zip(weights, past, strict=True))
            rows.append(torch.tanh(attention.join(torch.cat([context, h[b, t]]))))
    return torch.stack(rows).view(h.shape)


def gradients(out, *inputs):
    weights = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view(out.shape)
    return torch.autograd.grad((out * weights).sum(), inputs)


@pytest.mark.parametrize("t", [1, 2, 31, 32, 33, 70])
@pytest.mark.parametrize("window", [1, 7, 32, 70, 100])
def test_attention_equals_the_definition_with_every_gradient(t, window):
    torch.manual_seed(t)
    attention = AdditiveAttention(6, 4, window).double()
    h = torch.randn(2 if t < 70 else 1, t, 6, dtype=torch.float64, requires_grad=True)
    weights = [attention.join.weight, attention.join.bias, h]
    if t > 1:  # with no one to ask, these have no say
        weights += [attention.query.weight, attention.key.weight, attention.score.weight]
    got = results(lambda *_: attention(h), weights)
    assert_same(got, results(lambda *_: oracle(attention, h), weights))


class Largest(TorchDispatchMode):
    """The size of the largest tensor that any operation makes."""

    numel = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for x in out if isinstance(out, tuple | list) else (out,):
            self.numel = max(self.numel, x.numel() if isinstance(x, torch.Tensor) else 0)
        return out


def memory(t):
    """The largest tensor of both passes, and how many numbers the forward pass keeps for the backward pass."""
    attention, kept = AdditiveAttention(4, 16, 8), []
    h = torch.randn(1, t, 4, requires_grad=True)

    def keep(x):
        kept.append(x.numel())
        return x

    with Largest() as largest, torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
        out = attention(h)
    with largest:
        out.sum().backward()
    return largest.numel, sum(kept)


def test_attention_takes_no_memory_that_grows_as_the_square():
    (largest, kept), (largest_of_twice, kept_of_twice) = memory(256), memory(512)
    assert largest == 32 * (32 + 7) * 16  # a block of queries, all they see
    assert largest_of_twice == max(largest, 512 * (16 + 4))
    assert kept_of_twice <= 2.1 * kept


@settings(deadline=None, max_examples=30)
@given(
    kind=st.sampled_from(sorted(KINDS)),
    blocks=st.lists(st.integers(1, 12), min_size=1, max_size=6),
    trained=st.booleans(),
)
def test_carried_blocks_equal_one_full_pass(kind, blocks, trained):
    model, ids = build(kind), tokens(2, sum(blocks))
    with torch.set_grad_enabled(trained):
        state = model.init_state(2, 1)
        parts = [model.carry(part, state) for part in ids.split(blocks, 1)]
        torch.testing.assert_close(torch.cat(parts, 1), model(ids))
    assert state.length == sum(blocks)


@all_kinds
def test_without_detach_the_gradient_of_carried_blocks_is_that_of_a_full_pass(kind):
    model, ids = build(kind), tokens(2, 20)
    state = model.init_state(2, 20)
    parts = [model.carry(part, state) for part in ids.split([6, 1, 9, 4], 1)]
    weights = list(model.parameters())
    for a, b in zip(gradients(torch.cat(parts, 1), *weights), gradients(model(ids), *weights), strict=True):
        torch.testing.assert_close(a, b)


@all_kinds
def test_no_gradient_flows_over_a_detach(kind):
    model, ids, seen = build(kind), tokens(1, 10), []
    model.embed.register_forward_hook(lambda *args: seen.append(args[2]))
    state = model.init_state(1, 10)
    first = model.carry(ids[:, :5], state)
    open_logits = model.carry(ids[:, 5:7], state)
    assert state.detach() is state
    closed = model.carry(ids[:, 7:], state)
    assert all((g != 0).any() for g in gradients(open_logits, seen[0], seen[1]))
    assert all(g is None for g in torch.autograd.grad(closed.sum(), seen[:2], allow_unused=True, retain_graph=True))
    torch.testing.assert_close(torch.cat([first, open_logits, closed], 1), model(ids))  # the numbers go on


@all_kinds
@torch.inference_mode()
def test_rows_taken_continue_as_themselves_and_alter_no_other(kind):
    model, then = build(kind), tokens(4, 3, seed=2)
    for ids, order in ((tokens(3, 9), [2, 0, 0, 1]), (tokens(1, 9), [0] * 4)):
        state = model.init_state(len(ids), 12)
        model.prefill(ids, state)
        taken = state.take(torch.tensor(order))
        got = torch.stack([model.step(then[:, t], taken) for t in range(3)], 1)
        torch.testing.assert_close(got, model(torch.cat([ids[order], then], 1))[:, 9:])
        own = then[: len(ids), :1]
        torch.testing.assert_close(model.step(own[:, 0], state), model(torch.cat([ids, own], 1))[:, -1])
        assert (taken.length, state.length) == (12, 10)


@all_kinds
def test_joined_rows_of_unlike_prompts_continue_as_they_would_have_alone(kind):
    model, then = build(kind), tokens(4, 10, seed=2)
    prompts = [tokens(1, 3), tokens(2, 20), tokens(1, 8)]
    with torch.inference_mode():
        states = [model.init_state(len(p), 30) for p in prompts]
        for prompt, state in zip(prompts, states, strict=True):
            model.prefill(prompt, state)
        joint = type(states[0]).join(states)
        steps = [model.step(then[:, t], joint) for t in range(6)]
        got = torch.cat([torch.stack(steps, 1), model.carry(then[:, 6:], joint)], 1)
        for prompt, rows in zip(prompts, [[0], [1, 2], [3]], strict=True):
            full = model(torch.cat([prompt, then[rows]], 1))
            torch.testing.assert_close(got[rows], full[:, prompt.shape[1] :])
    assert joint.length == 30
    assert model.window is None


@all_kinds
@pytest.mark.parametrize("before", [1, 3, 9, 40])
def test_reset_rows_start_afresh_and_the_others_continue(kind, before):
    model, ids, then = build(kind), tokens(3, before), tokens(3, 10, seed=2)
    with torch.inference_mode():
        state = model.init_state(3, 1)
        model.prefill(ids, state)
        assert state.reset(torch.tensor([False, True, False])) is state
        block = model.carry(then[:, :4], state)
        steps = [model.step(then[:, t], state) for t in range(4, 10)]
        got = torch.cat([block, torch.stack(steps, 1)], 1)
        torch.testing.assert_close(got[1:2], model(then[1:2]))
        torch.testing.assert_close(got[::2], model(torch.cat([ids, then], 1)[::2])[:, before:])


@all_kinds
def test_no_gradient_flows_over_a_reset(kind):
    model, ids = build(kind), tokens(2, 6)
    seen = []
    model.embed.register_forward_hook(lambda *args: seen.append(args[2]))
    state = model.init_state(2, 6)
    model.carry(ids, state)
    state.reset(torch.tensor([True, False]))
    (grad,) = gradients(model.carry(ids, state), seen[0])
    assert (grad[0] == 0).all()
    assert (grad[1] != 0).any(-1).all()


def test_the_state_never_grows():
    model = build("additive")
    with torch.inference_mode():
        state = model.init_state(2, 1, rolling=True)
        assert state.past is not None
        place = state.past.rows.data_ptr()
        for _ in range(20):
            model.step(tokens(2, 1)[:, 0], state)
    assert state.past.rows.data_ptr() == place  # written in place
    assert state.past.rows.shape == (2, 7, 5 + 12)
    assert [x.shape for x in state.hidden] == [(2, 2, 12), (2, 2, 12)]


def test_the_forget_gates_begin_open():
    model = Recurrent(CONFIG)
    for layer in range(2):
        bias = getattr(model.cells, f"bias_ih_l{layer}") + getattr(model.cells, f"bias_hh_l{layer}")
        assert bias.tolist() == [0.0] * 12 + [1.0] * 12 + [0.0] * 24  # input, forget, cell, output


@pytest.mark.parametrize("kind", ["lstm", "additive"])
def test_in_bfloat16_the_state_keeps_its_precision(kind):
    model, ids = build(kind).float(), tokens(2, 12)
    state = model.init_state(2, 12)
    with torch.autocast("cpu", torch.bfloat16):
        parts = [model.carry(part, state) for part in ids.split([5, 1, 6], 1)]
        torch.cat(parts, 1).float().square().mean().backward()
    assert {x.dtype for x in state.hidden} == {torch.float32}
    torch.testing.assert_close(torch.cat(parts, 1).float(), model(ids), rtol=0.05, atol=0.05)
