"""`musictx check`: what is right is ok, what is broken on purpose is FAILED, what a device cannot do is not here."""

import math
from collections import Counter

import pytest
import torch
from conftest import TINY

from musictx.commands import check as command
from musictx.commands.check import CheckConfig, check, row
from musictx.model.attention import IMPLEMENTATIONS, fused
from musictx.model.attention.relative import skew
from musictx.model.static_steps import StaticSteps
from musictx.proof import chorale, kernels
from musictx.proof.kernels import Outcome, Unable
from musictx.training.fit import fit

FAST = [*TINY, "data.length=32", "trainer.batch_size=4", "trainer.lr=0.05"]


@pytest.fixture(autouse=True)
def small(monkeypatch, no_curves):
    monkeypatch.setattr(chorale, "DEMO", [*chorale.DEMO, *FAST])
    monkeypatch.setattr(chorale, "STEPS", 8)
    monkeypatch.setattr(chorale, "TRAINED", 10)
    monkeypatch.setattr(kernels, "SIZES", [size for size in kernels.SIZES if size[1] < 80])


def state(what, measure):
    """One word for a check: ok, FAILED or not here."""
    return row(what, measure, Counter())[83:].partition(":")[0]


def states(checks):
    """What was checked -> its state."""
    return {what: state(what, measure) for what, measure in checks}


def test_all_that_is_right_on_a_cpu(capsys):
    check(CheckConfig())
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:5]] == ["versions", "commit", "machine", "device", "check"]
    assert f"torch {torch.__version__}" in lines[0]
    assert lines[-1].startswith("19 ok, 0 FAILED, 3 not here; ")
    assert [line[:52].strip() for line in lines if line[83:].startswith("not here")] == [
        "training, 16-mixed",
        *(f"attention triton, {x}" for x in ("float32", "bfloat16")),
    ]
    assert "CUDA GPU" in lines[-2]


def test_a_kernel_with_one_wrong_gradient_fails(capsys, monkeypatch):
    for part in ("training", "steps"):
        monkeypatch.setattr(command, part, lambda device: ())
    monkeypatch.setitem(IMPLEMENTATIONS, "skew", lambda q, k, v, rel: skew(q, k, v, rel.detach()))
    with pytest.raises(SystemExit) as end:
        check(CheckConfig())
    assert end.value.code == 1
    lines = capsys.readouterr().out.splitlines()
    failed = [line[:52].strip() for line in lines if line[83:].startswith("FAILED")]
    assert failed == ["attention skew, float32", "attention skew, bfloat16"]
    assert "FAILED: the gradient of rel at queries " in lines[5]
    assert "6 ok, 2 FAILED, 2 not here" in lines[-1]


@pytest.mark.parametrize("wrong", [lambda out: out * 1.00001, lambda out: out * math.nan, torch.Tensor.double])
def test_a_slightly_inexact_kernel_fails_and_so_do_nan_and_another_dtype(wrong, monkeypatch):
    monkeypatch.setattr(kernels, "causal_attention", lambda q, k, v, p, s: wrong(skew(q, k, v, 0 * k[0, :, :1])))
    what = "attention rope, none, float32"
    assert state(what, dict(kernels.kernels("cpu"))[what]) == "FAILED"


def test_the_triton_kernels_are_compared_where_they_run(monkeypatch):
    pytest.importorskip("triton", reason="the package triton is not installed")
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    import musictx.model.attention.triton_kernels  # noqa: F401  (Triton reads the switch where a kernel is defined)

    backward, compared = fused.backward, dict(kernels.kernels("cpu"))["attention triton, float32"]
    monkeypatch.setattr(kernels, "SIZES", [(1, 9, 8, 4)])
    for factor in (1, 1.01):
        monkeypatch.setattr(fused, "backward", lambda *args, by=factor: [by * x for x in backward(*args)])
        found = compared()
        assert (found.error <= found.limit) == (factor == 1)


def test_steps_of_one_shape_that_are_wrong(monkeypatch):
    step = StaticSteps.advance

    def late(self):
        self.ring.at += 1  # one token behind the others
        step(self)

    monkeypatch.setattr(StaticSteps, "advance", late)
    found = chorale.logits("cpu", "float32", "one shape")
    assert found.error > found.limit


def test_a_precision_that_does_not_learn(monkeypatch):
    def slow(config):
        if config.trainer.precision == "bf16-mixed":
            config.trainer.lr = 1e-9
        return fit(config)

    monkeypatch.setattr(chorale, "fit", slow)
    assert list(states(chorale.training("cpu")).values()) == ["ok", "FAILED", "ok", "not here"]


def test_a_row_of_each_kind():
    def unable():
        raise Unable("no such thing here")

    count = Counter[str]()
    found = [lambda: Outcome(1, 2, "w"), unable, lambda: Outcome(3, 2), lambda: Outcome(math.nan, 2), lambda: 1 / 0]
    rows = [row("a", measure, count) for measure in found]
    assert rows[0].split() == ["a", "1", "2", "0.0", "ok:", "w"]
    assert rows[1].endswith("  not here: no such thing here")
    assert rows[4].endswith("  FAILED: ZeroDivisionError: division by zero")
    assert count == {"ok": 1, "not here": 1, "FAILED": 3}
    with pytest.raises(KeyboardInterrupt):
        row("a", lambda: (_ for _ in ()).throw(KeyboardInterrupt), count)


def test_bfloat16_on_a_gpu_that_only_imitates_it(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (7, 5))
    there = {**dict(chorale.training("cuda")), **dict(chorale.steps("cuda")), **dict(kernels.kernels("cuda"))}
    assert {f"attention {name}, float16" for name in IMPLEMENTATIONS} < {*there}
    for what, measure in there.items():
        if "bf16" in what or "bfloat16" in what or "int8" in what:
            with pytest.raises(Unable):
                measure()
