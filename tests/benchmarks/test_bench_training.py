import json

import pytest
import torch
from conftest import BENCHMARKS, ok, refused
from training import BenchTrainingConfig, Contestant, contestants, report

BENCH = ["musictx", BENCHMARKS / "training.py"]
TINY = [*BENCH, "warm_up=1", "d_model=16", "n_layers=1", "n_heads=2", "d_ff=32", "length=12", "threads=1"]


def test_all_take_turns_and_the_figures_are_kept(tmp_path):
    args = [*TINY, "repeats=2", "loader_steps=3", "workers=[0,1]", "out=deep/f.json"]
    out = ok(args, tmp_path).stdout
    figures = json.loads((tmp_path / "deep" / "f.json").read_text())
    precisions = ("32-true", "bf16-mixed")
    kinds = [f"musictx, {position}, {p}" for position in ("relative", "relative_fourier") for p in precisions]
    kinds = ["our rewrite of the public code, 32-true", *kinds]
    expected = [(f"{kind}, attention dropout {p:g}", p) for kind in kinds for p in (0.1, 0)]
    assert [(r["name"], r["attention_dropout"]) for r in figures["rows"]] == expected
    assert all(len(r["seconds"]) == 2 and min(r["seconds"]) > 0 and not r["failed"] for r in figures["rows"])
    assert [each["workers"] for each in figures["loading"]] == [0, 1]
    for each in figures["loading"]:
        assert all(0 < waited <= step for waited, step in zip(each["waited"], each["seconds"], strict=True))
        assert len(each["seconds"]) == 3
    assert "1 loader processes: " in out


def test_a_row_that_cannot_run_says_why(tmp_path):
    few = ["precisions=[32-true]", "positions=[relative,rope]", "attention_dropouts=[0]", "impl=triton"]
    out = ok([*TINY, "repeats=1", "workers=[]", *few], tmp_path).stdout.splitlines()
    kinds = ["our rewrite of the public code", "musictx, relative", "musictx, rope"]
    rows = [f"{kind}, 32-true, attention dropout 0" for kind in kinds]
    assert [line.split("   ")[0] for line in out if "dropout" in line] == rows
    (line,) = (line for line in out if line.startswith("musictx, relative"))
    assert "   ConfigError: impl=triton: it needs a CUDA GPU" in line
    (line,) = (line for line in out if line.startswith("musictx, rope"))
    assert "…" in line


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("batch=0", "batch=0: give 1 or more"),
        ("precisions=[fp8]", "precisions=[fp8]: give some of 32-true, bf16-mixed"),
        ("positions=[north]", "model.position=north: give one of"),
        ("attention_dropouts=[]", "attention_dropouts=[]: "),
        ("positions=[relative] impl=triton attention_dropouts=[0]", "ours can run: ConfigError: impl=triton: "),
        ("workers=[-1]", "workers=[-1]: give 0 or more each"),
    ],
)
def test_what_cannot_be_measured(setting, said, tmp_path):
    assert said in refused([*TINY, *setting.split()], tmp_path)


def test_every_row_runs_with_the_dropout_that_it_names(monkeypatch):
    seen = []
    drop = torch.nn.functional.dropout

    def note(x, p=0.5, training=True, inplace=False):
        if x.shape[-1] == x.shape[-2] == 12:  # attention weights, skewed or the public code's
            seen.append(p)
        return drop(x, p, training, inplace)

    monkeypatch.setattr(torch.nn.functional, "dropout", note)
    config = BenchTrainingConfig(d_model=16, n_layers=1, n_heads=2, d_ff=32, length=12)
    config.positions, config.precisions = ["relative"], ["32-true"]
    for row, prepare in contestants(config):
        seen.clear()
        prepare()(torch.randint(300, (2, 13)))
        assert max(seen) == row.attention_dropout, row.name


def test_the_rewrite_runs_in_bfloat16_through_the_compiler_too(monkeypatch):
    compiled = []
    monkeypatch.setattr(torch.nn.Module, "compile", lambda model: compiled.append(model))  # a compiler takes a minute
    config = BenchTrainingConfig(d_model=16, n_layers=1, n_heads=2, d_ff=32, length=12, public_compiled=True)
    config.positions, config.precisions, config.attention_dropouts = ["relative"], ["32-true"], [0.0]
    rows = {row.name: prepare for row, prepare in contestants(config)}
    step = rows["our rewrite of the public code, bf16-mixed compiled, attention dropout 0"]()
    seen = []
    compiled[0].head.register_forward_hook(lambda _, __, out: seen.append(out.dtype))
    step(torch.randint(300, (2, 13)))
    assert seen == [torch.bfloat16]


def test_each_is_beside_the_rewrite_with_the_same_attention_dropout():
    rows = [
        Contestant("our rewrite of the public code, 32-true, attention dropout 0.1", 0.1, [4.0]),
        Contestant("our rewrite of the public code, 32-true, attention dropout 0", 0.0, [2.0]),
        Contestant("musictx, a", 0.1, [0.5]),
        Contestant("musictx, b", 0.0, [0.5]),
        Contestant("musictx, c", 0.0, failed="RuntimeError: too large"),
    ]
    lines = report(rows, [], 100).splitlines()
    found = [line.split()[-5:-3] for line in lines[1:5]]
    assert found == [["25", "1.0"], ["50", "1.0"], ["200", "8.0"], ["200", "4.0"]]
    assert lines[5].endswith("too large")
