import pytest
import small
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from proofs import assert_same, learn, tokens
from small import RECURRENT

from musictx.model.recall import Recall
from musictx.model.recurrent import Recurrent
from musictx.proof.kernels import results

all_kinds = pytest.mark.parametrize("kind", RECURRENT)


def build(kind) -> Recurrent:
    model: Recurrent = small.build("recurrent", **RECURRENT[kind])
    return model


def gradients(out, *inputs):
    weights = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view(out.shape)
    return torch.autograd.grad((out * weights).sum(), inputs)


@pytest.mark.parametrize(("t", "window"), [(1, 7), (2, 7), (9, 1), (33, 7), (33, 100)])
def test_recall_equals_the_definition_with_every_gradient(t, window):
    torch.manual_seed(t)
    recall = Recall(6, 4, window).double()
    h, x, before = (torch.randn(2, *sizes, 6, dtype=torch.float64, requires_grad=True) for sizes in ([t], [t], []))
    weights = [h, x, recall.value.weight]
    if min(t, window) > 1:  # with one to ask, these have no say
        weights += [before, recall.query.weight, recall.key.weight]

    def seen(b, t):
        return range(max(t - window + 1, 0), t + 1)

    got = results(lambda *_: recall(h, x, before), weights)
    assert_same(got, results(lambda *_: small.recall_by_definition(recall, h, x, before, seen), weights))


@settings(deadline=None, max_examples=25)
@given(
    kind=st.sampled_from(sorted(RECURRENT)),
    blocks=st.lists(st.integers(1, 12), min_size=1, max_size=6),
    trained=st.booleans(),
)
def test_carried_blocks_and_their_gradient_are_those_of_one_full_pass(kind, blocks, trained):
    model, ids = build(kind), tokens(2, sum(blocks))
    with torch.set_grad_enabled(trained):
        state, full = model.init_state(2, 1), model(ids)
        parts = torch.cat([model.carry(part, state) for part in ids.split(blocks, 1)], 1)
        torch.testing.assert_close(parts, full)
    assert state.length == sum(blocks)
    if trained and sum(blocks) > 1:  # with nothing before it, attention's queries have no say
        weights = list(model.parameters())
        for a, b in zip(gradients(parts, *weights), gradients(full, *weights), strict=True):
            torch.testing.assert_close(a, b)


@all_kinds
def test_no_gradient_flows_over_a_detach_nor_over_a_reset(kind):
    model, ids, seen = build(kind), tokens(2, 12), []
    model.embed.register_forward_hook(lambda *args: seen.append(args[2]))
    state = model.init_state(2, 12)
    first = model.carry(ids[:, :5], state)
    open_logits = model.carry(ids[:, 5:7], state)
    assert state.detach() is state
    closed = model.carry(ids[:, 7:10], state)
    assert all((g != 0).any() for g in gradients(open_logits, seen[0], seen[1]))
    assert all(g is None for g in torch.autograd.grad(closed.sum(), seen[:2], allow_unused=True, retain_graph=True))
    torch.testing.assert_close(torch.cat([first, open_logits, closed], 1), model(ids[:, :10]))  # the numbers are kept
    state.reset(torch.tensor([True, False]))
    (grad,) = gradients(model.carry(ids[:, 10:], state), seen[2])
    assert (grad[0] == 0).all()
    assert (grad[1] != 0).any(-1).all()


@all_kinds
@torch.inference_mode()
def test_joined_rows_of_unlike_prompts_and_rows_taken_continue_as_they_would_have_alone(kind):
    model, then = build(kind), tokens(4, 10, seed=2)
    prompts, order = [tokens(1, 3), tokens(2, 20), tokens(1, 8)], torch.tensor([2, 0, 0, 1])
    states = [model.init_state(len(p), 30) for p in prompts]
    for prompt, state in zip(prompts, states, strict=True):
        model.prefill(prompt, state)
    joint = type(states[0]).join(states)
    taken = joint.take(order)
    steps, of_taken = (torch.stack([model.step(then[:, t], x) for t in range(6)], 1) for x in (joint, taken))
    got = torch.cat([steps, model.carry(then[:, 6:], joint)], 1)
    whole = [torch.cat([prompt, then[rows]], 1) for prompt, rows in zip(prompts, [[0], [1, 2], [3]], strict=True)]
    for ids, rows in zip(whole, got.split([1, 2, 1]), strict=True):
        torch.testing.assert_close(rows, model(ids)[:, -10:])
    beginnings = [prompts[1][1:], prompts[0], prompts[0], prompts[1][:1]]
    for row, ids in enumerate(beginnings):
        torch.testing.assert_close(of_taken[row], model(torch.cat([ids, then[row : row + 1, :6]], 1))[0, -6:])
    assert (joint.length, taken.length) == (30, 26)
    assert model.window is None


@all_kinds
@pytest.mark.parametrize("before", [1, 40])
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
    model = build("recall")
    with torch.inference_mode():
        state = model.init_state(2, 1, rolling=True)
        assert state.past is not None
        place = state.past.rows.data_ptr()
        for _ in range(20):
            model.step(tokens(2, 1)[:, 0], state)
    assert state.past.rows.data_ptr() == place  # written in place
    assert state.past.rows.shape == (2, 7, 5 + 24)
    assert [x.shape for x in state.hidden] == [(2, 2, 24), (2, 2, 24)]


def test_the_forget_gates_begin_open():
    model = small.untrained("recurrent")
    for layer in range(2):
        bias = getattr(model.cells, f"bias_ih_l{layer}") + getattr(model.cells, f"bias_hh_l{layer}")
        assert bias.tolist() == [0.0] * 24 + [1.0] * 24 + [0.0] * 48  # input, forget, cell, output


def test_the_forget_gates_of_residual_layers_begin_open_too():
    model = small.untrained("recurrent", residual=True)
    for cells in model.cells.layers:
        assert (cells.bias_ih_l0 + cells.bias_hh_l0).tolist() == [0.0] * 24 + [1.0] * 24 + [0.0] * 48


@pytest.mark.parametrize("kind", ["lstm", "residual", "residual, recall"])
def test_dropped_weights_are_those_from_state_to_state_for_all_of_a_window(kind):
    model = small.build("recurrent", **RECURRENT[kind], weight_dropout=0.5)
    ids, exact = tokens(2, 30), model(tokens(2, 30))
    torch.testing.assert_close(exact, build(kind)(ids))
    outs, masks = [], []
    for _ in range(2):
        model.train().zero_grad()
        outs.append(model(ids))
        outs[-1].square().sum().backward()
        unused = {name: p.grad == 0 for name, p in model.cells.named_parameters() if p.dim() > 1}
        masks.append(torch.cat([zero.flatten() for name, zero in unused.items() if "weight_hh" in name]))
        assert 0.4 < masks[-1].double().mean() < 0.6
        assert not any(zero.any() for name, zero in unused.items() if "weight_hh" not in name)
    assert not torch.equal(masks[0], masks[1])  # other ones for the next window
    assert not torch.equal(outs[0], outs[1])
    torch.testing.assert_close(model.eval()(ids), exact)  # the weights themselves are as before


def copies(lag, n, seed):
    """Ids (n, 2 · lag + 1) of which the second half repeats the first."""
    half = torch.randint(1, 23, (n, lag), generator=torch.Generator().manual_seed(seed))
    return torch.cat([torch.zeros(n, 1, dtype=torch.long), half, half], 1)


def test_residual_layers_with_recall_copy_at_lags_that_training_never_had():
    model = small.untrained("recurrent", residual=True, recall=True, d_model=32, d_attention=16, window=64)
    seeds = iter(range(10_000))

    def batch():
        seed = next(seeds)
        lag = (5, 6, 8, 10, 12, 14)[seed % 6]
        ids = copies(lag, 16, seed)
        return model(ids[:, :-1])[:, lag + 2 :].flatten(0, 1), ids[:, lag + 3 :].flatten()

    learn(model, batch, 1e-2, 200)
    for lag in (9, 24):  # between those of training, and beyond
        ids = copies(lag, 64, 77)
        right = model(ids[:, :-1])[:, lag + 2 :].argmax(-1) == ids[:, lag + 3 :]
        assert right.double().mean() > 0.6  # 0.05 by chance


@pytest.mark.parametrize("kind", ["lstm", "recall", "residual", "residual, recall"])
def test_in_bfloat16_the_state_keeps_its_precision(kind):
    model, ids = build(kind).float(), tokens(2, 12)
    state = model.init_state(2, 12)
    with torch.autocast("cpu", torch.bfloat16):
        parts = [model.carry(part, state) for part in ids.split([5, 1, 6], 1)]
        torch.cat(parts, 1).float().square().mean().backward()
    assert {x.dtype for x in state.hidden} == {torch.float32}
    torch.testing.assert_close(torch.cat(parts, 1).float(), model(ids), rtol=0.05, atol=0.05)
