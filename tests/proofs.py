"""What must hold for every model, whatever it is made of."""

import torch

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
