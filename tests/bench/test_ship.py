"""benchmarks/ship.py: the one temperature that validation likes best."""

import sys

import pytest
import torch
from conftest import ROOT

from musictx.data.store import Store
from musictx.evaluation.likelihood import negative_log_likelihood
from musictx.model.bundle import load_bundle, read_header

sys.path.insert(0, str(ROOT / "benchmarks"))
import ship


@pytest.fixture
def opened(world):
    model, header = load_bundle(world.hymn_bundle)
    return model, Store(world.hymn_store, header.tokenizer)


def nll(model, store):
    return negative_log_likelihood(model, store.split("validation"), store.tokenizer, None).nll


@torch.no_grad()
def test_a_model_too_sure_of_itself_is_brought_back(opened):
    model, store = opened
    for _ in range(40):  # the tiny model is far from calibrated: first to where nothing is left to do
        if (temperature := ship.calibrate(model, store)) == 1.0:
            break
    assert temperature == 1.0
    best = nll(model, store)
    model.norm.weight *= 1.2
    model.norm.bias *= 1.2
    assert nll(model, store) > best
    assert ship.calibrate(model, store) == pytest.approx(1.2, abs=0.011)
    assert nll(model, store) == pytest.approx(best, abs=1e-4)


def test_what_is_shipped_says_how_it_was_made(world, tmp_path):
    ship.main(str(world.hymn_bundle), str(tmp_path / "chorale.safetensors"), str(world.hymn_store))
    header = read_header(tmp_path / "chorale.safetensors")
    assert header.notes["made_by"] == "benchmarks/ship.py"
    assert header.model["trained_length"] == 32  # its windows, which are shorter than 512
    model, _ = load_bundle(tmp_path / "chorale.safetensors")
    store = Store(world.hymn_store, header.tokenizer)
    assert header.val_nll == pytest.approx(nll(model, store), abs=1e-6)
    assert (tmp_path / "chorale.mid").read_bytes().startswith(b"MThd")
