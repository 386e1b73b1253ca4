"""Likelihoods of several models, piece by piece."""

import json
import shutil
import sys

import numpy as np
import pytest
from conftest import ROOT

from musictx.errors import BundleError, UserError

sys.path.insert(0, str(ROOT / "studies"))
import paired


def test_a_difference_is_known_better_than_the_figures_and_only_common_pieces_count():
    chance = np.random.default_rng(0)
    nats = {str(k): [float(cost), 100] for k, cost in enumerate(chance.uniform(100, 300, 60))}
    worse = {piece: [cost + 10 + float(chance.uniform(0, 2)), n] for piece, (cost, n) in nats.items()}
    told = paired.report({"good": nats | {"alone": [9e9, 1]}, "worse": worse})
    assert (told["pieces"], told["tokens"], told["best"]) == (60, 6000, "good")
    good, bad = told["models"]["good"], told["models"]["worse"]
    assert good["more_than_best"] == (0, 0, 0)
    assert good["nll"].mean == pytest.approx(sum(cost for cost, _ in nats.values()) / 6000)
    assert bad["more_than_best"].mean == pytest.approx(bad["nll"].mean - good["nll"].mean)
    assert 0.10 < bad["more_than_best"].low < bad["more_than_best"].high < 0.12
    assert bad["nll"].low < good["nll"].high  # the figures alone could not tell them apart
    with pytest.raises(UserError, match="no piece has been read by every model: give more --minutes"):
        paired.report({"good": nats, "none": {}})


def test_the_rounds_are_spread_over_the_split_and_miss_no_piece():
    assert paired.rounds(20)[:2] == [[0, 9, 18], [3, 12]]
    for pieces in (1, 4, 20, 177):
        assert sorted(i for numbers in paired.rounds(pieces) for i in numbers) == list(range(pieces))


def test_models_may_be_named_and_a_name_must_be_clear(world, tmp_path, monkeypatch, capsys):
    told = tmp_path / "named.json"
    words = ["paired.py", "--store", str(world.store), "--split", "train"]

    def run(*models, json_to=told):
        monkeypatch.setattr(sys, "argv", [*words, "--json", str(json_to), "--models", *models])
        paired.main()

    run(f"own={world.bundle}", "shipped=piano")
    assert json.loads(told.read_text())["models"].keys() == {"own", "shipped"}
    assert [line.split(" | ")[0] for line in capsys.readouterr().out.splitlines()[-2:]] == ["| own", "| shipped"]
    for wrong in (["piano"], ["=piano"], ["own="], ["a=piano", "a=piano"]):
        with pytest.raises(UserError, match=f"--models {' '.join(wrong)}: give each model once, as NAME=BUNDLE"):
            run(*wrong)
    with pytest.raises(BundleError, match="pinao: no such bundle"):
        run("own=pinao")
    with pytest.raises(UserError, match="was trained on chorale tokens"):
        run("own=chorale", json_to=tmp_path / "other.json")


def test_a_piece_is_scored_once_and_an_unfinished_table_is_gone_on_with(world, tmp_path, monkeypatch, capsys):
    table, told = tmp_path / "table", tmp_path / "p.json"
    words = ["paired.py", "--store", str(world.store), "--table", str(table), "--split", "train", "--json", str(told)]

    def run(*more):
        monkeypatch.setattr(sys, "argv", [*words, *more])
        paired.main()

    with pytest.raises(UserError, match="table has no finished model: run studies/maestro.py with --size small"):
        run()
    for name in ("rope", "lstm"):
        (table / f"{name}-whole").mkdir(parents=True)
        shutil.copy(world.bundle, table / f"{name}-whole/model.safetensors")
    with pytest.raises(UserError, match="give more --minutes"):
        run("--minutes", "0")
    run()
    first = json.loads(told.read_text())
    lines = capsys.readouterr().out.splitlines()
    assert first["models"]["rope"]["nll"] == first["models"]["lstm"]["nll"]
    assert first["models"]["lstm"]["more_than_best"] == [0, 0, 0]
    nll = "{:.4f} ({:.4f} to {:.4f})".format(*first["models"]["lstm"]["nll"])
    assert lines[-1] == f"| lstm | {nll} | 0.0000 (0.0000 to 0.0000) |"
    found = json.loads((tmp_path / "p.pieces.json").read_text())
    kept = found["pieces"]
    assert len(kept["rope"]) == first["pieces"]
    del kept["rope"][next(iter(kept["rope"]))]
    kept["lstm"] = {piece: [0.0, n] for piece, (_, n) in kept["lstm"].items()}
    (tmp_path / "p.pieces.json").write_text(json.dumps(found | {"pieces": kept}))
    run("--minutes", "0")  # reports what is kept, and reads nothing
    assert json.loads(told.read_text())["pieces"] == first["pieces"] - 1
    run()
    again = json.loads(told.read_text())
    assert again["pieces"] == first["pieces"]
    assert again["models"]["rope"]["nll"] == pytest.approx(first["models"]["rope"]["nll"])
    assert again["models"]["lstm"]["nll"] == [0, 0, 0]
    with pytest.raises(UserError, match=r"p.pieces.json tells of others \(the train split\): give another --json"):
        run("--split", "validation")
    with open(table / "lstm-whole/model.safetensors", "ab") as file:
        file.write(b"\0")
    with pytest.raises(UserError, match=r"p.pieces.json tells of others \(lstm\): give another --json, or remove it"):
        run("--minutes", "0")
