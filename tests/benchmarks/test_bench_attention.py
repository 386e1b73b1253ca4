import json

from attention import FLOOR
from conftest import BENCHMARKS, ok, refused


def test_every_kernel_is_measured_and_the_figures_kept(tmp_path):
    args = [
        "musictx",
        BENCHMARKS / "attention.py",
        "lengths=[16]",
        "batch_tokens=32",
        "n_heads=2",
        "d_head=8",
    ]
    out = ok([*args, "repeats=2", "model_length=8", "out=deep/f.json"], tmp_path).stdout
    figures = json.loads((tmp_path / "deep" / "f.json").read_text())
    assert {(r["kernel"], r["length"], r["batch"]) for r in figures["kernels"]} == {
        (kernel, 16, 2) for kernel in (FLOOR, "fourier", "skew", "chunked")
    }
    assert all(len(r["seconds"]) == 2 and r["peak_mb"] >= 0 and not r["failed"] for r in figures["kernels"])
    assert [r["kernel"] for r in figures["models"]] == ["none", "relative", "relative_fourier", "rope"]
    assert (tmp_path / "deep" / "f.png").read_bytes()[:4] == b"\x89PNG"
    assert "6 layers, width 512" in out


def test_what_cannot_be_measured(tmp_path):
    args = ["musictx", BENCHMARKS / "attention.py"]
    assert "dtype=int8: " in refused([*args, "dtype=int8"], tmp_path)
    assert "repeats=0: give 1 or more" in refused([*args, "repeats=0"], tmp_path)
