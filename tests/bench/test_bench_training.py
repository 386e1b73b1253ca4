import json

import pytest
from conftest import ok, refused

from musictx.bench.training import FLOPS, step_flops
from musictx.config.bench import BenchTrainingConfig
from musictx.tokenizers import build_tokenizer

BENCH = ["musictx", "bench", "training"]
TINY = [*BENCH, "d_model=16", "n_layers=1", "n_heads=2", "d_ff=32", "length=12", "peak_size=32", "threads=1"]


def test_all_take_turns_and_the_figures_are_kept(tmp_path):
    args = [*TINY, "repeats=2", "loader_steps=3", "workers=[0,1]", "out=deep/f.json"]
    out = ok(args, tmp_path).stdout
    figures = json.loads((tmp_path / "deep" / "f.json").read_text())
    precisions = ("32-true", "bf16-mixed")
    mine = [f"musictx, {position}, {p}" for position in ("relative", "relative_fourier") for p in precisions]
    assert [r["name"] for r in figures["rows"]] == ["public code, 32-true", *mine]
    assert all(len(r["seconds"]) == 2 and min(r["seconds"]) > 0 and not r["failed"] for r in figures["rows"])
    assert set(figures["peak_flops"]) == set(precisions)
    assert [each["workers"] for each in figures["loading"]] == [0, 1]
    for each in figures["loading"]:
        assert all(0 < waited <= step for waited, step in zip(each["waited"], each["seconds"], strict=True))
        assert len(each["seconds"]) == 3
    assert figures["useful_flops"] == FLOPS
    assert FLOPS in out
    assert "1 loader processes: " in out


def test_the_useful_flops_are_those_of_every_product():
    config = BenchTrainingConfig(d_model=8, n_layers=3, n_heads=2, d_ff=20, length=10, batch=4)
    vocab = build_tokenizer("performance").vocab.size
    tokens = 4 * 10
    matrices = 3 * (8 * 24 + 8 * 8 + 2 * 8 * 20) + 8 * vocab  # query, key, value; out; feed-forward; head
    pairs = 4 * 10 * 10 / 2
    attention = 3 * pairs * 8  # a multiplication and addition for each width, in every layer
    for position, products in (("relative", 3), ("rope", 2)):
        assert step_flops(config, position) == 3 * 2 * (tokens * matrices + products * attention)


def test_a_form_and_a_precision_alone(tmp_path):
    out = ok([*TINY, "repeats=1", "workers=[]", "precisions=[32-true]", "positions=[rope]"], tmp_path).stdout
    assert "musictx, rope, 32-true" in out
    assert "bf16" not in out
    assert "loader processes" not in out


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("batch=0", "batch=0: give 1 or more"),
        ("peak_size=0", "peak_size=0: give 1 or more"),
        ("precisions=[fp8]", "choose among 32-true, bf16-mixed"),
        ("positions=[]", "positions=[]: give at least one"),
        ("positions=[north]", "model.position=north: choose one of"),
        ("impl=triton", "attention.impl=triton needs a CUDA GPU"),
        ("impl=fast", "attention.impl=fast: choose one of"),
        ("workers=[-1]", "workers=[-1]: give 0 or more each"),
    ],
)
def test_what_cannot_be_measured(setting, said, tmp_path):
    assert said in refused([*TINY, setting], tmp_path)
