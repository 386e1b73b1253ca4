from copy import deepcopy

import pytest
import torch
from torch import nn

from musictx.training.optimizer import Joint, build_optimizer


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Embedding(7, 6), nn.Linear(6, 5), nn.LayerNorm(5), nn.Linear(5, 4))


def train(model, optimizer, steps):
    ids = torch.arange(7)
    for _ in range(steps):
        optimizer.zero_grad()
        model(ids).square().sum().backward()
        optimizer.step()


def test_muon_takes_the_matrices_of_linear_layers_and_adamw_the_rest():
    model = net()
    optimizer = build_optimizer(model, "muon", 0.01, 0.1)
    muon, adamw = optimizer.parts
    assert [tuple(p.shape) for g in muon.param_groups for p in g["params"]] == [(5, 6), (4, 5)]
    assert [tuple(p.shape) for p in adamw.param_groups[0]["params"]] == [(7, 6)]
    assert all(p.dim() == 1 for p in adamw.param_groups[1]["params"])
    assert [g["weight_decay"] for g in adamw.param_groups] == [0.1, 0.0]
    assert sum(len(g["params"]) for g in optimizer.param_groups) == len(list(model.parameters()))


def test_a_step_of_muon_turns_each_matrix_by_the_size_adamw_would():
    model = net()
    before = model[1].weight.detach().clone()
    train(model, build_optimizer(model, "muon", 0.01, 0.0), 1)
    # orthogonal rows of length 0.2 sqrt(6) lr (Liu et al. 2025): the iteration reaches them within a third
    rms = (model[1].weight - before).square().mean().sqrt()
    assert 0.01 * 0.2 * 0.66 < rms < 0.01 * 0.2 * 1.34


def test_a_schedule_sets_the_rate_of_every_part():
    optimizer = build_optimizer(net(), "muon", 0.5, 0.0)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5**step)
    optimizer.step()
    schedule.step()
    assert [g["lr"] for part in optimizer.parts for g in part.param_groups] == [0.25, 0.25, 0.25]


@pytest.mark.parametrize("name", ["adamw", "muon"])
def test_stopped_and_restored_goes_on_bit_for_bit(name):
    model, twin = net(), net()
    optimizer = build_optimizer(model, name, 0.02, 0.1)
    train(model, optimizer, 3)
    weights, state = {k: v.clone() for k, v in model.state_dict().items()}, deepcopy(optimizer.state_dict())
    twin.load_state_dict(weights)
    restored = build_optimizer(twin, name, 0.5, 0.0)
    restored.load_state_dict(state)
    assert isinstance(restored, Joint) == (name == "muon")
    train(model, optimizer, 3)
    train(twin, restored, 3)
    for a, b in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("name", ["adamw", "muon"])
def test_a_scaled_loss_is_unscaled_before_the_step_so_that_it_can_be_clipped(name):
    steps = {}
    for scale in (1.0, 2.0**16):
        model = net()
        optimizer = build_optimizer(model, name, 0.01, 0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=scale)
        for _ in range(2):
            optimizer.zero_grad()
            scaler.scale(model(torch.arange(7)).square().sum()).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
            scaler.step(optimizer)
            scaler.update()
        steps[scale] = torch.cat([p.detach().flatten() for p in model.parameters()])
    torch.testing.assert_close(*steps.values())
    assert not getattr(optimizer, "_step_supports_amp_scaling", False)  # what Lightning asks before it clips


def test_what_does_not_learn_is_left_alone():
    model = net()
    model[1].requires_grad_(False)
    before = model[1].weight.clone()
    for name in ("adamw", "muon"):
        optimizer = build_optimizer(model, name, 0.01, 0.1)
        assert sum(len(g["params"]) for g in optimizer.param_groups) == len(list(model.parameters())) - 2
        train(model, optimizer, 2)
    assert torch.equal(model[1].weight, before)
