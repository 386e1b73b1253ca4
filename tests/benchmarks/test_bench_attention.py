import json

from attention import FLOOR
from conftest import BENCHMARKS, ok, refused

BENCH = ["musictx", BENCHMARKS / "attention.py"]


def test_every_kernel_is_measured_and_the_figures_kept(tmp_path):
    small = ["lengths=[16]", "batch_tokens=32", "n_heads=2", "d_head=8", "repeats=2"]
    out = ok([*BENCH, *small, "out=deep/f.json"], tmp_path).stdout
    rows = json.loads((tmp_path / "deep" / "f.json").read_text())["kernels"]
    assert [(r["kernel"], r["length"], r["batch"]) for r in rows] == [
        (kernel, 16, 2) for kernel in (FLOOR, "fourier", "skew", "chunked")
    ]
    assert all(len(r["seconds"]) == 2 and not r["failed"] for r in rows)
    assert all(f"\n{r['kernel']} " in out for r in rows)


def test_what_cannot_be_measured(tmp_path):
    assert "dtype=int8: " in refused([*BENCH, "dtype=int8"], tmp_path)
    assert "repeats=0: give 1 or more" in refused([*BENCH, "repeats=0"], tmp_path)
