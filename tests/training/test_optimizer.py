from functools import partial

import pytest
import torch
from proofs import OTHER_BLOCK
from torch import nn

from musictx.model.build import build_model, model_config
from musictx.model.position import FORMS
from musictx.training.optimizer import Joint, Muon, build_optimizer


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Embedding(7, 6), nn.Linear(6, 5), nn.LayerNorm(5), nn.Linear(5, 4))


def test_a_step_of_muon_turns_each_matrix_by_the_size_adamw_would():
    model = net()
    before = model[1].weight.detach().clone()
    model(torch.arange(7)).square().sum().backward()
    build_optimizer(model, "muon", 0.01, 0.0).step()
    # orthogonal rows of length 0.2 sqrt(6) lr (Liu et al. 2025): the iteration reaches them within a third
    rms = (model[1].weight - before).square().mean().sqrt()
    assert 0.01 * 0.2 * 0.66 < rms < 0.01 * 0.2 * 1.34


def test_a_schedule_sets_the_rate_of_every_part():
    optimizer = build_optimizer(net(), "muon", 0.5, 0.0)
    assert isinstance(optimizer, Joint)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5**step)
    optimizer.step()
    schedule.step()
    assert [g["lr"] for part in optimizer.parts for g in part.param_groups] == [0.25, 0.25, 0.25]


LINEAR = {f"blocks.{n}.{m}.weight" for n in range(2) for m in ("qkv", "project", "up", "down")}
LSTM = {f"cells.weight_{kind}_l{n}" for kind in ("ih", "hh") for n in range(2)}
RESIDUAL = {f"cells.layers.{n}.weight_{kind}_l0" for kind in ("ih", "hh") for n in range(2)}
RECALL = {f"recall.{m}.weight" for m in ("query", "key", "value")}
SIZES = {"vocab_size": 11, "d_model": 8, "n_layers": 2}


def names(model, parameters):
    wanted = {id(p) for p in parameters}
    return {name for name, p in model.named_parameters() if id(p) in wanted}


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize(
    ("kind", "settings", "expected"),
    [
        *(("transformer", {"position": form}, LINEAR) for form in FORMS),
        *(("transformer", {"position": form, "clock": "time"}, LINEAR) for form in ("relative_fourier", "rope")),
        ("transformer", {"position": "relative_fourier", "cycle": 4}, LINEAR),
        ("transformer", {"position": "relative_fourier", **OTHER_BLOCK}, LINEAR),
        ("recurrent", {}, LSTM),
        ("recurrent", {"recall": True}, LSTM | RECALL),
        ("recurrent", {"residual": True}, RESIDUAL),
        ("recurrent", {"residual": True, "recall": True}, RESIDUAL | RECALL),
    ],
)
def test_weight_decay_is_for_matrices_of_linear_layers_and_cells_alone(optimizer, kind, settings, expected):
    sizes = SIZES | settings | ({"n_heads": 2, "d_ff": 12, "max_distance": 5} if kind == "transformer" else {})
    model = build_model(model_config(kind, sizes))
    groups = build_optimizer(model, optimizer, 0.01, 0.1).param_groups
    assert names(model, [p for g in groups if g["weight_decay"] == 0.1 for p in g["params"]]) == expected
    rest = {name for name, _ in model.named_parameters()} - expected
    assert names(model, [p for g in groups if g["weight_decay"] == 0.0 for p in g["params"]]) == rest
    assert "embed.weight" in rest


@pytest.mark.parametrize("shape", [(5, 12), (12, 5), (6, 6)])
def test_muon_makes_the_steps_of_pytorch_in_the_numbers_of_either_processor(monkeypatch, shape):
    torch.manual_seed(1)
    start, grads = torch.randn(shape), torch.randn(3, *shape)

    def learned(make, dtype):
        monkeypatch.setattr("musictx.training.optimizer.iteration_dtype", lambda p: dtype)
        p = nn.Parameter(start.clone())
        optimizer = make([p], lr=0.1, weight_decay=0.01)
        for grad in grads:
            p.grad = grad.clone()
            optimizer.step()
        return p.detach()

    known = learned(partial(torch.optim.Muon, adjust_lr_fn="match_rms_adamw"), None)
    assert torch.equal(learned(Muon, torch.bfloat16), known)
    exact = learned(Muon, torch.float64)
    size = (exact - start).abs().max()
    assert (learned(Muon, torch.float32) - exact).abs().max() < 1e-5 * size
    assert (known - exact).abs().max() < 0.1 * size  # of three steps, with 8 bits


def test_a_matrix_of_zeros_stays_and_one_without_a_gradient_too():
    still, zero = nn.Parameter(torch.ones(3, 4)), nn.Parameter(torch.ones(3, 4))
    zero.grad = torch.zeros(3, 4)
    Muon([still, zero], lr=0.1, weight_decay=0.0).step()
    assert torch.equal(still, torch.ones(3, 4))
    assert torch.equal(zero, torch.ones(3, 4))
