"""The encoder sees both ways, but no padding; it finds a hidden id by an equal one on either side."""

import pytest
import torch
from proofs import learn, tokens

from musictx.model.build import build_model, model_config
from musictx.model.position import FORMS

PAD, MASK = 22, 21


def build(**settings):
    torch.manual_seed(0)
    sizes = {"d_model": 24, "n_layers": 2, "n_heads": 3, "d_ff": 48, "dropout": 0.0, "max_distance": 8}
    model = build_model(model_config("encoder", sizes | settings, vocab_size=23, pad=PAD))
    torch.nn.init.normal_(model.embed.weight, std=0.2)
    return model.eval()


@pytest.mark.parametrize("position", FORMS)
def test_each_answer_depends_on_all_ids_and_on_no_padding(position):
    model, ids = build(position=position, value_residual=True), tokens(1, 9, below=20)
    x = model.embed(ids).detach().requires_grad_()
    handle = model.embed.register_forward_hook(lambda *_: x)
    logits = model(ids)
    for t in range(9):
        (grad,) = torch.autograd.grad(logits[0, t].sum(), x, retain_graph=True)
        assert (grad != 0).any(-1).all()
    handle.remove()
    filled = torch.cat([ids, torch.full((1, 4), PAD)], 1)
    torch.testing.assert_close(model(filled)[:, :9], model(ids))
    assert torch.isfinite(model(torch.full((2, 3), PAD))).all()


@pytest.mark.parametrize(("position", "ahead"), [("relative", 6), ("relative_fourier", -6)])
def test_it_learns_to_copy_from_either_side(position, ahead):
    """A hidden id is the one six places before it, or after it."""
    model, chance = build(position=position), torch.Generator().manual_seed(3)
    model.train()

    def batch():
        ids = torch.randint(0, 12, (16, 13), generator=chance)
        target = ids[:, 6 + ahead].clone()
        ids[:, 6] = MASK
        return model(ids)[:, 6], target

    assert learn(model, batch, 1e-2, 70) < 0.3
