"""studies/compute.py and timed.py: sizes that are alike, the rule that chooses, resuming, intervals, and a trial."""

import json
from dataclasses import replace
from itertools import product
from typing import Any

import compute
import compute_runs
import compute_seed
import numpy as np
import pytest
import timed
import torch
from compute import chosen, ratio
from compute_runs import KINDS, WINDOWS, Kind, Music, Training, Way, config_of
from shared import pieces_of
from trials import trial

from musictx.data.store import Store, write_store
from musictx.errors import UserError
from musictx.model.build import build_model

SMALL: dict[str, Any] = {
    "PARAMETERS": 20_000,
    "STEP_IDS": 64,
    "BLOCK": {"n_layers": 1, "d_model": 16},
    "DROPOUTS": (0.0,),
}
SMALL |= {"CELLS": {"n_layers": 1, "residual": True}, "WINDOWS": {"LSTM": (16,), "table": (32,)}}
SMALL |= {"KINDS": ("LSTM", "table"), "WARM": 2, "SCORED": dict.fromkeys(("chorales", "MAESTRO"))}
SMALL["FIRST"] = {kind: Way(windows[0], "muon", 4e-3, 0.0) for kind, windows in SMALL["WINDOWS"].items()}
SMALL["AUGMENT"] = {"chorales": {"transpose": 5}, "MAESTRO": {"transpose": 3}}
SMALL["SCORED"] = {name: {"validation": (400, 1), "test": (400, 1)} for name in ("chorales", "MAESTRO")}


@pytest.fixture
def small(monkeypatch):
    """Sizes of a second."""
    for (name, value), module in product(SMALL.items(), (compute, compute_runs, compute_seed)):
        if hasattr(module, name):
            monkeypatch.setattr(module, name, value)
    config_of.cache_clear()
    yield
    config_of.cache_clear()


@pytest.mark.parametrize("kind", KINDS)
def test_all_models_have_as_many_parameters(kind):
    for window in WINDOWS[kind]:
        count = sum(p.numel() for p in build_model(config_of(kind, window, 0.1, 95)).parameters())
        assert count == pytest.approx(compute_runs.PARAMETERS, rel=0.02)


def test_a_rate_is_taken_only_between_two_that_are_worse():
    asked = []

    def cost(rate):
        asked.append(rate)
        return abs(np.log2(rate / 1.6e-2))

    assert timed.bracketed((1e-3, 2e-3, 4e-3), cost) == pytest.approx(1.6e-2)
    assert asked == pytest.approx([1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2, 3.2e-2])


@pytest.mark.parametrize("best", [Way(1024, "adamw", 1e-3, 0.3), Way(256, "muon", 3.2e-2, 0.0)], ids=str)
def test_the_rule_ends_where_no_neighbour_is_better(best):
    def cost(way):
        off = abs(np.log2(way.rate / best.rate)) + 9 * abs(way.dropout - best.dropout)
        return off + (way.window != best.window) + (way.optimizer != best.optimizer)

    found = chosen("Fourier", Way(256, "muon", 4e-3, 0.1), True, cost)
    assert found._replace(rate=best.rate) == best
    assert found.rate == pytest.approx(best.rate)


def test_long_budgets_move_only_where_longer_trainings_ask_for_it():
    asked = set()

    def cost(way):
        asked.add(way)
        return abs(np.log2(way.rate / 1e-3)) + abs(np.log2(way.window / 1024))

    found = chosen("table", Way(256, "muon", 4e-3, 0.1), False, cost)
    assert found == Way(1024, "muon", 1e-3, 0.1)
    assert {way.optimizer for way in asked} == {"muon"}
    assert min(way.dropout for way in asked) == 0.1
    assert max(way.rate for way in asked) == 4e-3
    assert min(way.window for way in asked) == 256


@pytest.mark.parametrize(("kind", "optimizer"), [*product(("LSTM", "table"), ("adamw", "muon"))])
def test_a_training_goes_on_as_if_nothing_had_been(small, world, tmp_path, kind, optimizer):
    music = Music("chorales", Store(world.hymn_store), "cpu")
    way = Way(32, optimizer, 1e-2, 0.1)
    once = Training(music, kind, way, 0, tmp_path / "once.pt")
    once.learn(6, 3)
    Training(music, kind, way, 0, tmp_path / "twice.pt").learn(3)
    again = Training(music, kind, way, 0, tmp_path / "twice.pt")
    again.learn(6, 3)
    branch = Training(music, kind, way, 0, tmp_path / "branch.pt", tmp_path / "twice.pt")
    assert branch.step == again.step == once.step == 6
    for name, value in once.model.state_dict().items():
        assert torch.equal(again.model.state_dict()[name], value)
        assert torch.equal(branch.model.state_dict()[name], value)


def test_an_interval_is_over_pieces_and_random_seeds():
    rng = np.random.default_rng(0)
    tokens = np.full((3, 40), 100.0)
    pieces, seeds = 100 + rng.normal(0, 50, (1, 40)) + np.zeros((3, 1)), 100 + np.array([[0.0], [10], [20]])
    of_pieces, of_seeds = ratio(pieces, tokens), ratio(seeds + np.zeros((1, 40)), tokens)
    assert of_pieces.mean == pytest.approx(pieces.mean() / 100)
    assert of_pieces.high - of_pieces.low == pytest.approx(4 * 0.5 / 40**0.5, rel=0.3)
    assert tuple(of_seeds) == pytest.approx((1.1, 1.0, 1.2))


def test_a_trial_from_the_command(small, world, tmp_path, monkeypatch):
    """On tiny hymns; budgets of a few steps."""
    monkeypatch.setattr(Kind, "cost", lambda self, window, optimizer: 1.0)
    monkeypatch.setattr(compute, "measure_costs", list)
    monkeypatch.setattr(
        compute, "chosen", lambda kind, first, wide, cost: min(first, first._replace(rate=8e-3), key=cost)
    )
    monkeypatch.chdir(tmp_path)
    hymns = Store(world.hymn_store)
    pieces = [replace(piece, ids=np.tile(piece.ids, 2)) for piece in pieces_of(hymns, "train")]  # what returns is known
    cuts = dict.fromkeys(compute_runs.AUGMENT, compute_seed.Cut(pieces[0].seconds, 2.0, 2, 3))
    monkeypatch.setattr(compute_seed, "CUTS", cuts)
    splits = {"train": pieces, "validation": pieces, "test": pieces[1:]}
    write_store(tmp_path / "hymns", hymns.tokenizer, hymns.manifest.corpus, splits, [])
    stores = ("--stores", "hymns", "hymns", "--kinds", "LSTM", "table", "--seeds", "2")

    def rows(split, *words):
        trial(compute, *stores, "--out", "o", *words)
        return json.loads((tmp_path / "o" / f"compute-{split}.json").read_text())

    found = rows("validation", "--minutes", "0.1", "0.2")
    names = [
        f"{corpus}, {kind}, {minutes}"
        for corpus in compute_runs.AUGMENT
        for kind in SMALL["KINDS"]
        for minutes in (0.1, 0.2)
    ]
    assert set(found) == set(names)
    assert [found[f"chorales, table, {m}"]["steps"] for m in (0.1, 0.2)] == [6, 12]
    assert all(row["per_note"][0] > row["per_token"][0] > 1 for row in found.values())
    assert (tmp_path / "o" / "compute-validation.png").stat().st_size > 5000
    assert rows("validation", "--minutes", "0.1", "0.2") == found  # all is known
    kept = json.loads((tmp_path / "o" / "seed-validation.json").read_text())
    assert set(kept) == {"chorales-LSTM", "chorales-table", "MAESTRO-LSTM", "MAESTRO-table"}
    for row in kept.values():
        assert np.shape(row["seed gain"]) == np.shape(row["KV reset"]) == np.shape(row["retention"]) == (2, 3)
    test = rows("test", "--minutes", "0.1", "0.2", "--test")["chorales, LSTM, 0.2"]
    assert (test["steps"], test["per_note"] != found["chorales, LSTM, 0.2"]["per_note"]) == (12, True)


def test_shorter_budgets_after_longer_ones_are_refused(small, world, tmp_path, monkeypatch):
    monkeypatch.setattr(Kind, "cost", lambda self, window, optimizer: 1.0)
    (tmp_path / "models").mkdir()
    kind = Kind(Music("chorales", Store(world.hymn_store), "cpu"), "table", tmp_path)
    kind.run(0.2, Way(32, "muon", 1e-2, 0.0))
    with pytest.raises(UserError, match=r"longer than 0\.1 minutes"):
        kind.run(0.1, Way(32, "muon", 1e-2, 0.0))


def test_costs_are_the_fastest_turns_and_are_measured_once(small, world, tmp_path, monkeypatch):
    monkeypatch.setattr(compute_runs, "TURNS", 3)
    music = Music("chorales", Store(world.hymn_store), "cpu")
    kinds = [Kind(music, name, tmp_path) for name in SMALL["KINDS"]]
    compute_runs.measure_costs(kinds)
    for kind, window in zip(kinds, (16, 32), strict=True):
        turns = kind.costs.known[f"{window}, muon"]["turns"]
        assert kind.cost(window, "muon") == min(turns) > 0
        assert len(turns) == 3
        assert kind.steps(1.0, Way(window, "muon", 1e-3, 0.0)) == round(60 / min(turns))
    monkeypatch.setattr(Kind, "clocked", None)
    compute_runs.measure_costs(kinds)  # all is known
    assert not list(tmp_path.glob("models/*"))
