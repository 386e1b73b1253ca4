import json

from conftest import BENCHMARKS, TINY, ok, refused


def test_each_form_is_trained_and_scored(world, tmp_path):
    small = ",".join(f'"{word}"' for word in [*TINY, "data.length=16", "trainer.batch_size=2"])
    args = [
        "musictx",
        BENCHMARKS / "positions.py",
        f"store={world.hymn_store}",
        f"overrides=[{small}]",
        "work=w",
        "out=f.json",
    ]
    out = ok([*args, "steps=4", "random_seeds=2", "validations=2"], tmp_path).stdout
    runs = json.loads((tmp_path / "f.json").read_text())
    forms = ["learned table", "Fourier (index)", "Fourier (time)", "RoPE", "sinusoidal"]
    assert [(r["form"], r["random_seed"]) for r in runs] == [(form, seed) for seed in (0, 1) for form in forms]
    assert all(r["steps"] == [2, 4] and len(r["whole_pieces"]) == 2 for r in runs)
    assert len({(*r["whole_pieces"], r["inside_window"]) for r in runs}) >= 8  # so short a training may end alike
    assert "learned table          2      4" in out
    assert all(r["step_s"] > 0 for r in runs)
    assert (tmp_path / "f.png").exists()


def test_no_steps(tmp_path):
    assert "steps=0: give 1 or more" in refused(["musictx", BENCHMARKS / "positions.py", "steps=0"], tmp_path)
