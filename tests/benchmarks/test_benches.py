"""The benches of a checkout: every row is measured as it is named, or says why not."""

import json
import sys

import beside
import pytest
import torch
from conftest import BENCHMARKS, ok, refused
from facts import Contestant, compete, report
from prepare import BenchPrepareConfig, bench_prepare, prepared, write_files
from public import NAME
from sampling import HUGGING_FACE, LIMIT, OURS, PUBLIC
from training import BenchTrainingConfig, contestants

from musictx.errors import UserError
from musictx.system import processor

SIZES = ["d_model=16", "n_layers=1", "n_heads=2", "d_ff=32", "threads=1"]
TRAINING = ["training.py", *SIZES, "warm_up=1", "length=12", "positions=[rope]", "workers=[0,1]", "loader_steps=2"]
TRAINED = (f"{NAME}, 32-true", "musictx, rope, 32-true", "musictx, rope, bf16-mixed")
SAMPLED = [f"{OURS}, {by}" for by in ("ONNX Runtime, int8", "ONNX Runtime, float32", "PyTorch, float32")]
CASES = ("1 row after 9 ids", "1 row after 12 ids", "3 rows after 12 ids")
SAMPLED += [LIMIT, *(f"{HUGGING_FACE}, {weights}" for weights in ("float32", "int8"))]


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (
            ["attention.py", "lengths=[16]", "batch_tokens=32", "n_heads=2", "d_head=8"],
            {f"{kernel}, 2 of 16 tokens" for kernel in ("none (sdpa)", "fourier", "skew", "chunked")},
        ),
        (TRAINING, {f"{row}, attention dropout {p:g}" for row in TRAINED for p in (0.1, 0)}),
        (
            ["sampling.py", "bundle={bundle}", "length=3", "keys=[9,12]", "batches=[3]"],
            {f"{PUBLIC}, 1 row after 9 ids"}
            | {
                f"{name}, {case} ids"
                for name in SAMPLED
                for case in ("1 row after 9", "1 row after 12", "3 rows after 12")
            },
        ),
    ],
    ids=lambda given: given[0].partition(".")[0] if isinstance(given, list) else "",
)
def test_all_take_turns_and_the_figures_are_kept(words, names, world, tmp_path):
    bench, *more = (each.format(bundle=world.bundle) for each in words)
    out = ok(["musictx", BENCHMARKS / bench, *more, "repeats=2", "out=deep/f.json"], tmp_path).stdout
    figures = json.loads((tmp_path / "deep" / "f.json").read_text())
    assert str(processor()) in figures["where"]
    assert {row["name"] for row in figures["rows"]} == names
    for row in figures["rows"]:
        may_fail = row["name"].startswith(HUGGING_FACE)  # not installed
        assert may_fail or (len(row["seconds"]) == 2 and min(row["seconds"]) > 0 and not row["failed"]), row
        assert f"\n{row['name']}  " in out
    if bench == "training.py":
        assert [each["workers"] for each in figures["loading"]] == [0, 1]
        assert all(
            0 < w <= s for each in figures["loading"] for w, s in zip(each["waited"], each["seconds"], strict=True)
        )
    if bench == "sampling.py":
        assert {len(row["first_s"]) for row in figures["rows"] if OURS in row["name"]} == {2}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["attention.py", "dtype=int8"], "dtype=int8: "),
        (["attention.py", "repeats=0"], "repeats=0: give 1 or more"),
        (["sampling.py", "threads=0"], "threads=0: "),
        (["sampling.py", "batches=[1]"], "batches=[1]: give 2 or more each"),
        (["training.py", "positions=[north]"], "model.position=north: give one of"),
        (["training.py", "workers=[-1]"], "workers=[-1]: give 0 or more each"),
        (["beside.py", "busy=[1]"], "busy=[1]: "),
        (["beside.py", "commands=[sing]"], "commands=[sing]: "),
        (["prepare.py", "files=[3]"], "files=[3]: give 4 or more each"),
    ],
)
def test_what_cannot_be_measured(words, said, tmp_path):
    size = [] if words[0] in ("beside.py", "prepare.py", "sampling.py") else ["n_heads=2"]
    assert said in refused(["musictx", BENCHMARKS / words[0], *size, words[1]], tmp_path)


@pytest.mark.parametrize("bench", ["attention.py", "sampling.py", "training.py", "beside.py", "prepare.py"])
def test_a_file_that_is_there_is_not_replaced(bench, tmp_path):
    kept = tmp_path / "f.json"
    kept.write_text("mine")
    assert "out=f.json: it exists already" in refused(["musictx", BENCHMARKS / bench, "out=f.json"], tmp_path)
    assert kept.read_text() == "mine"


def test_beside_other_programs_a_fair_share_is_what_threads_get(monkeypatch, tmp_path):
    monkeypatch.setattr(beside, "usable_cores", lambda: 2)
    assert [beside.share(1, n) for n in (0, 1, 4)] == [1, 1, 0.4]
    assert [beside.share(2, n) for n in (0, 1, 4)] == [2, 4 / 3, 4 / 6]
    monkeypatch.setattr(beside, "COMMANDS", {"version": "--version"})
    out = tmp_path / "f.json"
    beside.bench_beside(beside.BenchBesideConfig(commands=["version"], busy=[0, 1], repeats=1, out=str(out)))
    alone, other = json.loads(out.read_text())["rows"]
    assert (alone["busy"], alone["lost"], other["busy"]) == (0, 1, 1)
    assert all(cpu > 0 and wall > 0 for row in (alone, other) for wall, cpu in row["runs"])


def test_files_are_prepared_and_what_that_takes_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("prepare.EVERY_S", 0.01)
    out = tmp_path / "f.json"
    bench_prepare(BenchPrepareConfig(files=[8, 40], workers=1, out=str(out)))
    few, more = json.loads(out.read_text())["rows"]
    assert (few["files"], more["files"]) == (8, 40)
    assert 0 < few["midi_mib"] < more["midi_mib"]
    assert 0 < few["store_mib"] < more["store_mib"]
    assert min(row[name] for row in (few, more) for name in ("seconds", "parent_mib", "readers_mib")) > 0
    with pytest.raises(UserError, match="musictx prepare has failed: .*does not exist"):
        prepared(tmp_path / "none", tmp_path / "store", 1)


def test_files_to_prepare_are_all_different_and_come_again(tmp_path):
    for name in ("once", "again"):
        write_files(tmp_path / name, 60)
    once, again = (
        [path.read_bytes() for path in sorted((tmp_path / name).rglob("*.mid"))] for name in ("once", "again")
    )
    assert once == again
    assert len(set(once)) == 60


def test_a_row_that_cannot_run_says_why_and_the_others_are_beside_their_own(monkeypatch):
    def refuse():
        import transformers  # noqa: F401

    monkeypatch.setitem(sys.modules, "transformers", None)
    seconds = {"plain": 4.0, "with dropout": 2.0, "ours": 0.5}
    rows = {Contestant(name, 100, "with dropout"): lambda s=s: lambda: s for name, s in seconds.items()}
    done = compete({**rows, Contestant("theirs", 100, "plain"): refuse}, 3)
    assert [len(row.seconds) for row in done] == [3, 3, 3, 0]
    lines = report(done).splitlines()
    assert [line.split()[-5:-3] for line in lines[1:4]] == [["25.0", "0.5"], ["50.0", "1.0"], ["200.0", "4.0"]]
    assert lines[4].endswith("transformers is not installed: pip install 'musictx[bench]'")


def test_every_row_of_training_runs_with_the_dropout_and_the_precision_that_it_names(monkeypatch):
    dropped, compiled = [], []
    drop = torch.nn.functional.dropout

    def note(x, p=0.5, training=True, inplace=False):
        if x.shape[-1] == x.shape[-2] == 12:  # attention weights, skewed or the public code's
            dropped.append(p)
        return drop(x, p, training, inplace)

    monkeypatch.setattr(torch.nn.functional, "dropout", note)
    monkeypatch.setattr(torch.nn.Module, "compile", lambda model: compiled.append(model))  # a compiler takes a minute
    config = BenchTrainingConfig(d_model=16, n_layers=1, n_heads=2, d_ff=32, length=12, public_compiled=True)
    config.positions = ["relative"]
    for row, prepare in contestants(config).items():
        dropped.clear()
        seen: list[torch.dtype] = []
        step = prepare()
        if "compiled" in row.name:
            compiled[-1].head.register_forward_hook(lambda _, __, out, seen=seen: seen.append(out.dtype))
        step(torch.randint(300, (2, 13)))
        assert f"attention dropout {max(dropped):g}" in row.name
        assert seen == [torch.bfloat16] * ("compiled" in row.name)
    assert len(compiled) == 2
