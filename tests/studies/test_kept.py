"""studies/kept.py on a tiny model: four ways to continue, kept once drawn."""

import json

import pytest
from conftest import ok, run

from musictx.music.read import read_midi

WAYS = ["plain-rolling", "plain-pinned"]


def test_the_seed_in_sight_and_not_are_compared_and_what_is_drawn_is_kept(world, tmp_path):
    words = ["studies/kept.py", "--store", world.hymn_store, "--split", "train", "--bundle", world.hymn_bundle]
    words += ["--pieces", 3, "--seed-seconds", 2, "--window", 80, "--contexts", 2, "--threads", 1, "--out", "o/k.json"]
    out = ok(words, tmp_path).stdout
    found = json.loads((tmp_path / "o/k.json").read_text())
    assert list(found["ways"]) == ["plain, rolling", "plain, pinned"]  # this bundle names no guidance
    assert found["pieces"] == 3
    for row in found["ways"].values():
        assert row["above"][0] == pytest.approx(row["own"] - row["others"])
        assert len(row["above_by_span"]) == len(row["notes_per_s"]) == 2
    rolling, pinned = (read_midi(tmp_path / "o/k" / way / "0.mid") for way in WAYS)
    assert rolling != pinned
    assert "| plain, pinned | " in out
    assert (tmp_path / "o/k.png").read_bytes()[:4] == b"\x89PNG"
    done = run([*words, "--window", 84], tmp_path)
    assert done.returncode == 2
    assert "o/k has music of other settings, " in done.stderr
    assert done.stderr.endswith(": give those, or another --out\n")
    for k in range(3):
        (tmp_path / f"o/k/plain-pinned/{k}.mid").write_bytes(world.hymn.read_bytes())
    ok(words, tmp_path)
    again = json.loads((tmp_path / "o/k.json").read_text())["ways"]
    assert again["plain, rolling"] == found["ways"]["plain, rolling"]
    assert again["plain, pinned"]["own"] > found["ways"]["plain, pinned"]["own"], "read, not drawn again"


def test_a_bundle_without_a_grid_is_refused_in_one_line(world, tmp_path):
    done = run(["studies/kept.py", "--store", world.store, "--bundle", world.bundle], tmp_path)
    assert done.returncode == 2
    assert "windows are counted in seconds of a grid; give one of chorales" in done.stderr
