"""studies/baselines.py: sizes that are alike, the rules that choose, intervals, and a trial from the command."""

import json
import sys
import zipfile

import baseline_runs
import baselines
import numpy as np
import pytest
import timed
from baseline_report import holm, ratio
from baseline_runs import MUSIC, Cell, Data, config_of, n_parameters

from musictx.data.store import Store
from musictx.model.build import build_model

pytestmark = pytest.mark.usefixtures("no_curves")

CELLS = [Cell(name, kind, n) for name, music in MUSIC.items() for kind, all_n in music.windows.items() for n in all_n]
VOCAB = {"chorales": 95, "piano": 391}


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_all_models_of_a_music_have_as_many_parameters(cell):
    count = n_parameters(build_model(config_of(cell, VOCAB[cell.music])))
    assert count == pytest.approx(MUSIC[cell.music].parameters, rel=0.02)


def test_a_rate_is_taken_only_between_two_that_are_worse():
    asked = []

    def cost(rate):
        asked.append(rate)
        return abs(np.log2(rate / 1.6e-2))

    assert timed.bracketed((1e-3, 2e-3, 4e-3), cost) == pytest.approx(1.6e-2)
    assert asked == pytest.approx([1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2, 3.2e-2])


def test_holm_multiplies_the_smallest_p_by_their_number_and_keeps_the_order():
    assert holm({"a": 0.04, "b": 0.01, "c": 0.03}) == pytest.approx({"b": 0.03, "c": 0.06, "a": 0.06})
    assert holm({"a": 0.9, "b": 0.8}) == {"b": 1.0, "a": 1.0}


def test_a_ratio_is_drawn_by_work_and_a_difference_is_paired():
    rng = np.random.default_rng(0)
    tokens = np.full((3, 40), 100.0)
    hard = rng.normal(0, 50, 40)  # what is hard in a piece is hard for both models
    better, worse = (100 + hard + rng.normal(0, 1, (3, 40)) + more for more in (0, 3))
    apart = [str(i) for i in range(40)]
    alone, p = ratio(better, tokens, apart)
    assert alone.mean == pytest.approx(better.mean() / 100)
    assert p == pytest.approx(1 / 1000, rel=0.01)  # never 0
    less, p = ratio(better, tokens, apart, less=worse)
    assert -0.04 < less.low < less.mean < less.high < -0.02
    assert less.high - less.low < (alone.high - alone.low) / 5
    assert p < 0.01
    _, p = ratio(better, tokens, apart, less=better)
    assert p > 0.2
    twice = np.repeat(better, 2, 1), np.repeat(tokens, 2, 1)
    of_works, _ = ratio(*twice, [name for name in apart for _ in range(2)])
    assert tuple(of_works) == pytest.approx(tuple(alone), abs=0.02)  # two performances of a work are no more evidence


def test_pieces_of_works_that_others_play_are_not_held_out(world, tmp_path):
    store = Store(world.store)
    train = store.split("train").names
    with zipfile.ZipFile(tmp_path / "maestro.zip", "w") as archive:
        rows = ["midi_filename,canonical_composer,canonical_title"]
        rows += [f"2004/{name.rpartition('/')[2]},B,{min(i, len(train) - 3)}" for i, name in enumerate(train)]
        archive.writestr("m/m.csv", "\n".join(rows))
    data = Data(MUSIC["piano"], store, tmp_path / "maestro.zip")
    held_out = set(data.held_out.names)
    assert 0 < len(held_out) <= baseline_runs.HELD_OUT
    assert held_out.isdisjoint(train[-3:])
    assert held_out.isdisjoint(data.rest.names)
    assert len(held_out) + len(data.rest) == len(train)


@pytest.fixture
def trial(world, tmp_path, monkeypatch):
    """Runs the study on tiny hymns."""
    small = MUSIC["chorales"]._replace(
        parameters=20_000, step_ids=64, width={"d_model": 16, "n_layers": 1}, seed_s=3.0, part_s=0.5
    )
    small = small._replace(windows={"table": (32,), "learned": (32,), "LSTM": (16, 32)})
    monkeypatch.setitem(MUSIC, "chorales", small)
    monkeypatch.setattr(baseline_runs, "HELD_OUT", 2)
    monkeypatch.setattr(baselines, "SEEDS", (1, 2))
    monkeypatch.setattr(timed, "bracketed", lambda rates, cost: min(rates[:2], key=cost))
    monkeypatch.setattr(baselines, "DROPOUTS", (0.0,))

    def study(*words):
        where = ["--store", str(world.hymn_store), "--out", str(tmp_path / "o"), "--seconds", "0.2"]
        monkeypatch.setattr(sys, "argv", ["baselines.py", "chorales", *where, *words])
        baselines.run()
        split = "test" if "--test" in words else "validation"
        return json.loads((tmp_path / "o" / f"chorales-{split}.json").read_text())

    return study


def test_a_trial_from_the_command(trial):
    baseline_runs.config_of.cache_clear()
    rows = trial()
    assert set(rows) == {"table 32", "learned 32", "LSTM 16", "LSTM 32", "LSTM 32, as many ids"}
    steps = rows["LSTM 32, as many ids"]["steps"]
    assert steps == [round(np.mean(rows["table 32"]["steps"]))] * 2
    assert "whole" not in rows["learned 32"]  # too few positions
    assert "fresh, less the table" in rows["learned 32"]
    assert "whole, less the table" not in rows["LSTM 16"]  # no table has its window
    for name in ("nothing", "a stranger", "a reset"):
        assert len(rows["LSTM 32"][f"gain against {name}, part 6, less the table"]) == 4  # with p
    assert trial() == rows  # all is known
    assert trial("--test")["table 32"]["whole"] != rows["table 32"]["whole"]
    baseline_runs.config_of.cache_clear()
