import json
import sys
from typing import Any

import pytest
from conftest import BENCHMARKS, ok, refused
from sampling import HUGGING_FACE, OURS, PUBLIC, BenchSamplingConfig, measure, report_masks

BENCH = ["musictx", BENCHMARKS / "sampling.py"]
SIZES: dict[str, Any] = {"d_model": 16, "n_layers": 2, "n_heads": 2, "d_ff": 32, "max_distance": 24}
TINY = [*BENCH, *(f"{name}={value}" for name, value in SIZES.items()), "length=6", "repeats=2", "threads=1"]


def test_all_take_turns_and_the_figures_are_kept(tmp_path):
    out = ok([*TINY, "batches=[3]", "context=8", "out=deep/f.json"], tmp_path).stdout
    figures = json.loads((tmp_path / "deep" / "f.json").read_text())
    rows = {(r["name"], r["batch"]): r for r in figures["rows"]}
    candidates = ("musictx, bf16 linear layers", "musictx, int8 linear layers")
    mine = {(name, n) for name in (OURS, *candidates) for n in (1, 3)}
    theirs = {("our rewrite of the public code, uncached (estimate: parabola through 5 lengths)", 1), (HUGGING_FACE, 1)}
    assert set(rows) == mine | theirs
    measured = [r for key, r in rows.items() if key[0] not in (HUGGING_FACE, candidates[1])]
    assert all(len(r["seconds"]) == 2 and min(r["seconds"]) > 0 and not r["failed"] for r in measured)
    assert [[p["tokens"] for p in curve] for curve in figures["rolling"]] == [[8 * k for k in range(1, 11)]] * 2
    assert all(p["memory_mb"] > 0 for curve in figures["rolling"] for p in curve)
    assert "1 CPU threads" in figures["where"]
    assert {n: len(costs) for n, costs in figures["masks_cost"].items()} == {"1": 2, "3": 2}
    assert report_masks(figures["masks_cost"]["3"], 3) in out.splitlines()
    assert "batch 3: " in out


def test_the_public_loop_can_be_run_whole_and_without_hugging_face_its_row_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    config = BenchSamplingConfig(**SIZES, length=6, repeats=1, batches=[], public_points=0)
    rows = {row.name: row for row in measure(config)}
    assert rows[HUGGING_FACE].failed == "transformers is not installed: pip install 'musictx[bench]'"
    assert rows[PUBLIC].seconds


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("threads=0", "threads=0: "),
        ("batches=[1]", "batches=[1]: give 2 or more each"),
        ("public_points=-1", "public_points=-1: give 0 or more"),
        ("context=4", "context=4: give 8 or more"),
    ],
)
def test_what_cannot_be_measured(setting, said, tmp_path):
    assert said in refused([*BENCH, "n_heads=2", setting], tmp_path)
