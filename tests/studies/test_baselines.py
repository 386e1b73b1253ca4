"""studies/baselines.py and timed.py: sizes that are alike, the rules that choose, intervals, and a trial."""

import json

import baselines
import numpy as np
import pytest
import shared
import timed
from baselines import WINDOWS, Cell, config_of, ratio
from trials import trial

from musictx.model.build import build_model

CELLS = [Cell(kind, window) for kind, windows in WINDOWS.items() for window in windows]


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_all_models_have_as_many_parameters(cell):
    count = sum(p.numel() for p in build_model(config_of(cell, 95)).parameters())
    assert count == pytest.approx(baselines.PARAMETERS, rel=0.02)


def test_a_rate_is_taken_only_between_two_that_are_worse():
    asked = []

    def cost(rate):
        asked.append(rate)
        return abs(np.log2(rate / 1.6e-2))

    assert timed.bracketed((1e-3, 2e-3, 4e-3), cost) == pytest.approx(1.6e-2)
    assert asked == pytest.approx([1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2, 3.2e-2])


def test_an_interval_is_over_pieces_and_random_seeds():
    rng = np.random.default_rng(0)
    tokens = np.full((3, 40), 100.0)
    pieces, seeds = 100 + rng.normal(0, 50, (1, 40)) + np.zeros((3, 1)), 100 + np.array([[0.0], [10], [20]])
    of_pieces, of_seeds = ratio(pieces, tokens), ratio(seeds + np.zeros((1, 40)), tokens)
    assert of_pieces.mean == pytest.approx(pieces.mean() / 100)
    assert of_pieces.high - of_pieces.low == pytest.approx(4 * 0.5 / 40**0.5, rel=0.3)
    assert tuple(of_seeds) == pytest.approx((1.1, 1.0, 1.2))


def test_a_trial_from_the_command(world, tmp_path, monkeypatch):
    """On tiny hymns."""
    small = {"PARAMETERS": 20_000, "STEP_IDS": 64, "WIDTH": {"d_model": 16, "n_layers": 1}}
    small |= {"SEEDS": (1, 2), "DROPOUTS": (0.0,), "WINDOWS": {"table": (32,), "learned": (32,), "LSTM": (16, 32)}}
    for name, value in small.items():
        monkeypatch.setattr(baselines, name, value)
    monkeypatch.setattr(shared, "HELD_OUT", 2)
    monkeypatch.setattr(timed, "bracketed", lambda rates, cost: min(rates[:2], key=cost))
    monkeypatch.chdir(tmp_path)
    config_of.cache_clear()

    def rows(split, *words):
        trial(baselines, "--store", world.hymn_store, "--out", "o", "--seconds", "0.2", *words)
        return json.loads((tmp_path / "o" / f"chorales-{split}.json").read_text())

    found = rows("validation")
    assert set(found) == {"table 32", "learned 32", "LSTM 16", "LSTM 32", "LSTM 32, as many ids"}
    assert found["LSTM 32, as many ids"]["steps"] == [round(np.mean(found["table 32"]["steps"]))] * 2
    assert "whole" not in found["learned 32"]  # too few positions
    assert len(found["learned 32"]["fresh"]) == len(found["LSTM 16"]["whole"]) == 3
    assert rows("validation") == found  # all is known
    test = rows("test", "--test")["table 32"]
    assert (test["steps"], test["whole"] != found["table 32"]["whole"]) == (found["table 32"]["steps"], True)
    config_of.cache_clear()
