"""Which gaps `studies/fill.py` measures."""

import json

import numpy as np
from conftest import ROOT, ok
from fill import spread
from fill_measures import TrueGap

from musictx.generate.gap import Gap
from musictx.music.score import Meter, Score

NOTHING = np.zeros(0, np.uint16)


def test_the_pieces_that_are_measured_are_spread_evenly_and_keep_all_their_gaps():
    gap = Gap(Score.empty(), NOTHING, NOTHING, 1.0, 2.0, Meter(0.5))
    found = [TrueGap(piece, gap, NOTHING) for piece in (0, 0, 2, 2, 3, 3, 7, 7, 9, 9)]
    assert [each.piece for each in spread(found, 3)] == [0, 0, 3, 3, 9, 9]
    assert [each.piece for each in spread(found, 2)] == [0, 0, 9, 9]
    assert spread(found, None) == spread(found, 99) == found


def test_a_plain_twin_may_be_missing(world, filling, tmp_path):
    words = ["studies/fill.py", "--store", world.hymn_store, "--bundle", filling, "--split", "train"]
    words += ["--seconds", 2.4, "--gaps", 1, "--scored", 1, "--pieces", 4]
    alone, beside = tmp_path / "alone.json", tmp_path / "beside.json"
    ok([*words, "--out", str(alone)], ROOT)
    said = ok([*words, "--out", str(beside), "--plain", filling], ROOT).stdout
    without, with_twin = (json.loads(path.read_text())["2.4"] for path in (alone, beside))
    assert without["known"]["plain"] is None
    assert with_twin["known"]["plain"] == without["known"]["left"] == with_twin["known"]["left"]
    assert list(without["filled"]) == ["true middles", "both sides"]
    assert list(with_twin["filled"]) == ["true middles", "both sides", "left side, plain model"]
    assert "| 2.4 s | left side, plain model |" in said
    assert alone.with_suffix(".png").is_file()
