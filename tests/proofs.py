"""What must hold for every model, whatever it is made of."""

import torch
import torch.nn.functional as F

OTHER_BLOCK = {"mlp": "swiglu", "qk_norm": True, "value_residual": True, "conv": 3}
BLOCKS = [{}, OTHER_BLOCK]


def assert_causal(model, ids):
    """The gradient of each row of logits with respect to later tokens is exactly zero, to earlier ones it is not.
    `ids` (1, T)."""
    x = model.embed(ids).detach().requires_grad_()
    model.embed.register_forward_hook(lambda *_: x)
    logits = model(ids)
    for t in range(ids.shape[1]):
        (grad,) = torch.autograd.grad(logits[0, t].sum(), x, retain_graph=True)
        assert (grad[0, t + 1 :] == 0).all()
        assert (grad[0, : t + 1] != 0).any(-1).all()


def assert_same(got, expected):
    """All tensors of two computations in float64, within their rounding."""
    for a, b in zip(got, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-11)


def learn(model, batch, lr, steps):
    """The loss after so many steps; `batch()` gives the model's logits (N, V) and their targets (N,)."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    for _ in range(steps):
        loss = F.cross_entropy(*batch())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(loss.detach())


def tokens(batch, t, seed=1, below=23):
    """Ids (B, T) that are the same every time."""
    return torch.randint(0, below, (batch, t), generator=torch.Generator().manual_seed(seed))


@torch.inference_mode()
def assert_cached_steps_equal_one_pass(model, ids, prefill):
    """Two blocks of the prompt, `prefill` and then four tokens, and a step for every other of `ids` (B, T)."""
    full, t = model(ids), ids.shape[1]
    state = model.init_state(len(ids), t)
    torch.testing.assert_close(model.prefill(ids[:, :prefill], state), full[:, prefill - 1])
    torch.testing.assert_close(model.prefill(ids[:, prefill : prefill + 4], state), full[:, prefill + 3])
    for n in range(prefill + 4, t):
        torch.testing.assert_close(model.step(ids[:, n], state), full[:, n])
    assert state.length == t


def assert_causal_with_a_source(model, pad):
    """No logit depends on a later id; each depends on all of the source and on all ids up to its own. All ids are below
    `pad`."""
    inputs = tokens(1, 5, below=pad), tokens(1, 15, seed=2, below=pad)
    read = [model.embed(x).detach().requires_grad_() for x in inputs]
    given = iter(read)
    model.embed.register_forward_hook(lambda *_: next(given))
    logits = model(*inputs)
    for t in range(15):
        heard, before = torch.autograd.grad(logits[0, t].sum(), read, retain_graph=True)
        assert (before[0, t + 1 :] == 0).all()
        assert (before[0, : t + 1] != 0).any(-1).all()
        assert (heard[0] != 0).any(-1).all()


@torch.inference_mode()
def assert_padding_changes_nothing(model, pad):
    """Of a source; and one of padding alone gives finite logits."""
    source, ids = tokens(2, 7, below=pad), tokens(2, 18, seed=2, below=pad)
    source[1, 5:] = pad
    full = model(source, ids)
    padded = torch.cat([source, torch.full((2, 9), pad)], 1)
    torch.testing.assert_close(model(padded, ids), full, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(full[1:], model(source[1:, :5], ids[1:]), rtol=1e-12, atol=1e-12)
    assert not torch.allclose(model(source.masked_fill(source == pad, 3), ids), full)
    assert model(torch.full((1, 4), pad), ids[:1]).isfinite().all()


@torch.inference_mode()
def assert_a_hidden_source_says_nothing(model, pad):
    """Neither what it hides nor how long it is, alone or beside another row."""
    ids = tokens(1, 18, seed=2, below=pad)
    short, long = (model(torch.full((1, s), pad), ids) for s in (1, 7))
    torch.testing.assert_close(short, long, rtol=1e-12, atol=1e-12)
    beside = tokens(2, 7, below=pad)
    beside[0] = pad
    torch.testing.assert_close(model(beside, ids.expand(2, -1))[:1], short, rtol=1e-12, atol=1e-12)
    assert not torch.allclose(model(beside[1:], ids), short)
