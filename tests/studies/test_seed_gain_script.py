"""The curves of seed gain: how several trained seeds become one, and what is read and drawn of either table."""

import json
import shutil
import sys
from itertools import pairwise

import jsb
import maestro_small
import numpy as np
import pytest
import seed_gain
from matplotlib.image import imread

from musictx.errors import UserError

PART = {"mean": 0.02, "low": 0.01, "high": 0.03}


def test_several_seeds_are_one_curve_with_an_interval_over_seeds_and_pieces():
    tokens = np.full((4, 2), 10)
    alike = np.ones((3, 4, 2)) * [[[1.0, 2.0]]]
    assert seed_gain.over_seeds(alike, tokens) == [pytest.approx((0.1, 0.1, 0.1)), pytest.approx((0.2, 0.2, 0.2))]
    apart = alike * np.array([0.0, 1.0, 2.0])[:, None, None]  # seeds differ, pieces do not
    first = seed_gain.over_seeds(apart, tokens)[0]
    assert first.mean == pytest.approx(0.1)
    assert 0 <= first.low < 0.05
    assert 0.15 < first.high <= 0.2
    long = np.array([[10, 10], [30, 30]])  # a piece counts by its tokens
    assert seed_gain.over_seeds(np.array([[[1.0, 0], [9.0, 0]]]), long)[0].mean == pytest.approx(10 / 40)


def test_what_a_kind_gains_less_than_the_best_is_told_on_the_same_pieces():
    tokens = np.full((40, 2), 10)
    much = np.random.default_rng(0).uniform(0, 40, (1, 40, 2))  # pieces differ by far more than kinds
    kinds = {
        "less": seed_gain.Measured({}, np.concatenate([much - 1, much - 3]), tokens),  # two random seeds, 2 on average
        "most": seed_gain.Measured({}, much, tokens),
    }
    told = seed_gain.less_than_most(kinds)
    assert told["most"] == (0, 0, 0)
    assert told["less"] == pytest.approx((0.2, 0.2, 0.2))


def test_names_at_the_lines_do_not_cover_each_other():
    moved = seed_gain.apart([0.05, 0.02, 0.019, -0.01], 0.005)
    assert all(a - b >= 0.005 - 1e-12 for a, b in pairwise(moved))
    assert sum(moved) == pytest.approx(0.079)
    assert seed_gain.apart([0.05, 0.02], 0.005) == pytest.approx([0.05, 0.02])


def test_a_line_is_dashed_from_the_first_part_that_ends_beyond_the_window():
    reach = [600, 1000, 1024, 1025]
    assert [seed_gain.within(reach, window) for window in (None, 1024, 2048, 256)] == [4, 3, 4, 0]


@pytest.mark.parametrize(("kind", "models"), [("chorales", jsb.MODELS), ("piano", maestro_small.MODELS)])
def test_the_figure_has_a_line_for_every_kind_and_a_look_for_every_model(kind, models, tmp_path):
    table = seed_gain.TABLES[kind]
    assert set(table.looks) == set(models)
    kinds = {name: {"window": window, "gain": [PART] * 6} for name, window in (("lstm", None), ("fourier", 1024))}
    reach = [320, 384, 448, 512, 576, 640]

    def drawn(name):
        seed_gain.picture(table, kinds, reach, tmp_path / name)
        return imread(tmp_path / name)

    one = drawn("one.png")
    kinds["fourier"]["window"] = 256
    dashed = drawn("dashed.png")
    kinds["fourier"]["window"] = 500
    part = drawn("part.png")
    assert one.shape == dashed.shape == part.shape
    assert (one != dashed).any()
    assert (part != dashed).any()
    assert (part != one).any()


def run(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["seed_gain.py", *map(str, words)])
    seed_gain.main()


def test_the_runs_of_either_table_are_found_by_its_names(world, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(seed_gain, "PARTS", 2)
    for kind, folder, bundle, store in (
        ("chorales", "fourier-0.003-0-1500", world.hymn_bundle, world.hymn_store),
        ("piano", "lstm-whole", world.bundle, world.store),
    ):
        table = tmp_path / kind
        (table / folder).mkdir(parents=True)
        (table / "rope-trial-0.003").mkdir()  # not finished, and no run of the table
        shutil.copy(bundle, table / folder / "model.safetensors")
        short = seed_gain.TABLES[kind]._replace(seed_s=2.4, part_s=1.2)
        monkeypatch.setitem(seed_gain.TABLES, kind, short)
        told = tmp_path / f"{kind}.json"
        run(monkeypatch, kind, "--store", store, "--table", table, "--split", "train", "--json", told)
        figures = json.loads(told.read_text())
        name = folder.split("-")[0]
        assert list(figures["kinds"]) == [name]
        assert len(figures["kinds"][name]["gain"]) == 2
        assert told.with_suffix(".png").stat().st_size > 0
        assert f"{name:<14} 1 random seeds: " in capsys.readouterr().out
        pieces = figures["pieces"]
        run(monkeypatch, kind, "--store", store, "--table", table, "--split", "train", "--json", told, "--every", 2)
        assert 2 <= json.loads(told.read_text())["pieces"] < pieces
        longest = max(figures["tokens"])
        run(monkeypatch, kind, "--store", store, "--table", table, "--split", "train", "--json", told, "--fit", longest)
        assert json.loads(told.read_text()) == figures | {"fit": longest}
        monkeypatch.setitem(seed_gain.TABLES, kind, short._replace(json=told))
        run(monkeypatch, kind, "--store", store, "--table", table, "--split", "train", "--stranger")
        against = json.loads((tmp_path / f"{kind}-stranger.json").read_text())
        assert (figures["stranger"], against["stranger"]) == (False, True)
        assert against["kinds"][name]["gain"] != figures["kinds"][name]["gain"]
        with pytest.raises(UserError, match=r"--fit 9: 0 pieces end within so many tokens; give more"):
            run(monkeypatch, kind, "--store", store, "--table", table, "--split", "train", "--fit", 9)
        with pytest.raises(UserError, match=rf"no model of {kind} in .*empty: run studies/"):
            run(monkeypatch, kind, "--store", store, "--table", tmp_path / "empty", "--split", "train")


def test_no_piece_at_all_is_refused(monkeypatch, capsys):
    with pytest.raises(SystemExit, match="2"):
        run(monkeypatch, "piano", "--store", "x", "--table", "y", "--every", 0)
    assert capsys.readouterr().err.splitlines()[-1].endswith("--every 0: give 1 or more")
