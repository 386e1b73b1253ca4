"""`musictx check`: what holds is ok, what is broken on purpose is FAILED with the setting that does without it."""

import json
import math
import re

import pytest
import torch
from conftest import TINY, ok, refused

from musictx.commands.check import PARTS, SILENT, check
from musictx.config.app import settings
from musictx.config.bench import CheckConfig
from musictx.config.fields import in_keys
from musictx.model.attention import IMPLEMENTATIONS, fused
from musictx.model.attention.relative import skew
from musictx.model.static_steps import StaticSteps
from musictx.proof import kernels, steps, training
from musictx.proof.machine import FAILED, NOT_HERE, OK, Check, Outcome, Unable, advice, near_exact, run, worst
from musictx.proof.training import Curve, falls, near
from musictx.training.fit import fit as fitted

SMALL = {"longest": 12, "timed_length": 8, "steps": 10, "tokens": 8, "variations": 2}
TRAINED = [*TINY, "data.length=32", "trainer.batch_size=4", "trainer.lr=0.05"]
WORDS = [f"{name}={value}" for name, value in SMALL.items()]


def report(capsys, *parts, **changes):
    """The exit status, and the lines of the report after the line of headings."""
    status: str | int | None = 0
    try:
        with in_keys("check"):
            check(CheckConfig(**SMALL | {"parts": list(parts)} | changes))
    except SystemExit as end:
        status = end.code
    lines = capsys.readouterr().out.splitlines()
    return status, lines[next(i for i, line in enumerate(lines) if line.startswith("check  ")) + 1 :]


def row(lines, what):
    (line,) = (line for line in lines if line.startswith(f"{what}  "))
    return line


def test_all_of_it_holds_on_a_cpu_and_the_report_is_kept(tmp_path):
    parts = "parts=[kernels,training,generation,triton]"  # every form of step has a test of its own
    out = ok(["musictx", "check", *WORDS, parts, f"overrides={json.dumps(TRAINED)}", "out=deep/r.txt"], tmp_path).stdout
    assert (tmp_path / "deep" / "r.txt").read_text() == out
    lines = out.splitlines()
    assert lines[0].startswith(
        'musictx check device=cpu \'parts=["kernels","training","generation","triton"]\' longest'
    )
    assert [line.split()[0] for line in lines[1:6]] == ["versions", "commit", "machine", "device", "check"]
    assert f"torch {torch.__version__}" in lines[1]
    assert lines[-1].startswith("16 ok, 0 FAILED, 7 not here; ")
    rows = lines[6:-1]
    assert len(rows) == 23
    for what in ("train 10 steps, bf16-true", "generate, float32: logits", "attention skew, float32"):
        assert "  ok" in row(rows, what)
    not_here = [line for line in rows if "  not here: " in line]
    assert "train 10 steps, 16-mixed" in not_here[0]
    assert "trainer.precision=16-mixed needs trainer.accelerator=cuda" in not_here[0]
    assert "attention.impl=triton needs a CUDA GPU and the package triton" in row(not_here, "attention triton, float32")
    assert [p.name for p in tmp_path.iterdir()] == ["deep"]


@pytest.mark.parametrize("broken", [False, True])
def test_the_triton_kernels_are_held_where_they_run(broken, monkeypatch):
    pytest.importorskip("triton", reason="the package triton is not installed")
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    import musictx.model.attention.triton_kernels  # noqa: F401  (Triton reads the switch where a kernel is defined)

    for name, value in {"SIZES": [(1, 9, 8, 4)], "BATCH": 1, "HEADS": 1}.items():
        monkeypatch.setattr(kernels, name, value)
    monkeypatch.setattr(kernels, "seconds", lambda *_: 0.0025)  # the interpreter takes seconds
    if broken:
        backward = fused.backward
        monkeypatch.setattr(fused, "backward", lambda *args: [1.01 * x for x in backward(*args)])
    found = run(next(iter(kernels.triton_checks(CheckConfig()))))
    assert found.check.what == "attention triton, float32"
    assert found.text.endswith("2.5 ms at T=1024")
    assert found.state == (FAILED if broken else OK)
    assert broken == found.text.startswith("the gradient of ")
    assert found.check.safe == "attention=chunked"


def no_table_gradient(q, k, v, rel, dropout_p=0.0):
    return skew(q, k, v, rel.detach() + 0 * rel)


def test_a_kernel_with_one_wrong_gradient_fails_and_the_safe_one_is_named(capsys, monkeypatch):
    monkeypatch.setitem(IMPLEMENTATIONS, "skew", no_table_gradient)
    status, lines = report(capsys, "kernels")
    assert status == 1
    assert "  FAILED: the gradient of rel at queries " in row(lines, "attention skew, float32")
    assert "  ok: " in row(lines, "attention chunked, bfloat16")
    assert "6 ok, 2 FAILED, 0 not here" in lines[8]
    assert lines[9:] == [f"  attention skew, {d}: use attention=chunked" for d in ("float32", "bfloat16")]


def test_what_is_broken_too_is_not_called_safe(capsys, monkeypatch):
    def broken(q, k, v, rel, dropout_p=0.0):
        raise RuntimeError("out of\nshared memory")

    monkeypatch.setitem(IMPLEMENTATIONS, "skew", no_table_gradient)
    monkeypatch.setitem(IMPLEMENTATIONS, "chunked", broken)
    status, lines = report(capsys, "kernels")
    assert status == 1
    assert row(lines, "attention chunked, float32").endswith("  FAILED: RuntimeError: out of shared memory")
    assert "  attention skew, float32: no setting is known to be safe" in lines


def test_a_slightly_inexact_kernel_fails(capsys, monkeypatch):
    monkeypatch.setattr(kernels, "causal_attention", lambda q, k, v, p, s: skew(q, k, v, 0 * k[0, :, :1]) * 1.00001)
    _, lines = report(capsys, "kernels")
    assert "  FAILED" in row(lines, "attention none, rope, float32")
    assert "  ok" in row(lines, "attention none, rope, bfloat16")  # whose own roundings are a thousand times larger
    assert "  attention relative_fourier, float32: use model.position=relative attention=chunked" in lines


@pytest.mark.parametrize(("position", "clock"), [("relative", "index"), ("relative_fourier", "time")])
def test_steps_of_one_shape_hold_in_a_form(position, clock, capsys, monkeypatch):
    monkeypatch.setattr(steps, "FORMS", ())
    monkeypatch.setattr(steps, "TIMED", ((position, clock),))
    status, lines = report(capsys, "steps")
    assert status == 0
    assert lines[2].startswith("2 ok, 0 FAILED, 0 not here; ")


def test_steps_of_one_shape_that_are_wrong(capsys, monkeypatch):
    step = StaticSteps.advance

    def late(self):
        self.ring.at += 1  # one token behind the others
        self.ring.clock += 4.0  # and a beat, where musical time is counted
        step(self)

    monkeypatch.setattr(StaticSteps, "advance", late)
    monkeypatch.setattr(steps, "FORMS", ("relative",))
    monkeypatch.setattr(steps, "TIMED", ())
    status, lines = report(capsys, "steps", "generation")
    assert status == 1
    assert re.search(r"  FAILED: \d rows, cache of ", row(lines, "steps relative, float32, one shape"))
    assert "  FAILED: continuations that differ; " in row(lines, "generate, float32: same music, one shape")
    assert "  ok: " in row(lines, "generate, bfloat16: logits")
    failed = [f"generate, {weights}: logits, one shape" for weights in ("float32", "bfloat16")]
    failed += [f"steps relative, {dtype}, one shape" for dtype in ("float32", "bfloat16")]
    assert sorted(lines[-5:]) == sorted(
        f"  {what}: use graph=false" for what in (*failed, "generate, float32: same music, one shape")
    )


def test_a_precision_that_does_not_learn(capsys, monkeypatch):
    def fit(config):
        if config.trainer.precision == "bf16-mixed":
            config.trainer.lr = 1e-9
        return fitted(config)

    monkeypatch.setattr(training, "fit", fit)
    status, lines = report(capsys, "training", overrides=TRAINED)
    assert status == 1
    assert "  ok: loss 4." in row(lines, "train 10 steps, 32-true on the CPU")
    assert "  FAILED: loss 4." in row(lines, "train 10 steps, bf16-mixed")
    assert "  ok: " in row(lines, "train 10 steps, bf16-true")
    assert lines[-1] == "  train 10 steps, bf16-mixed: use trainer.precision=32-true"


def test_a_training_that_ends_in_an_error(capsys):
    status, lines = report(capsys, "training", overrides=["model.d_model=7"])
    assert status == 1
    assert "ConfigError: model.d_model=7 cannot be shared by model.n_heads=3" in row(lines, "train 10 steps, bf16-true")
    assert "0 ok, 3 FAILED, 1 not here" in lines[4]


def test_losses_beside_those_of_float32():
    def curve(*losses):
        return Curve(list(losses), 1.0, 1.0)

    assert falls(curve(4.0, 3.9, 3.0, 2.0, 1.0)) == Outcome(1.0, 3.6, note="loss 4.000 to 1.000, 1 tokens/s")
    assert not falls(curve(4.0, 3.9, 3.9, 3.9, 3.7)).holds
    float32 = curve(4.0, 3.0, 2.5, 2.2, 2.0)  # has learnt 2
    assert near(curve(4.0, 3.0, 2.5, 2.2, 2.25), float32, 0.1).error == 0.25
    assert near(curve(4.0, 3.0, 2.5, 2.2, 2.25), float32, 0.1).limit == pytest.approx(0.2)
    assert not near(curve(4.0, 3.0, 2.5, 2.2, math.nan), float32, 0.1).holds


def test_an_error_may_be_twice_the_plain_one():
    exact = torch.tensor([1.0, 2.0], dtype=torch.float64)
    plain = torch.tensor([1.25, 2.0])
    eps = torch.finfo(torch.float32).eps
    found = near_exact("x", torch.tensor([1.0, 2.5]), exact, plain)
    assert (found.error, found.limit, found.where) == (0.5, 0.5 + 2 * eps, "x")
    assert found.holds
    nothing = exact - exact, plain - plain  # large numbers that cancel leave their rounding
    assert near_exact("x", torch.tensor([eps, 0.0]), *nothing, cancelled=3.5).limit == 3.5 * eps
    assert not near_exact("x", torch.tensor([4 * eps, 0.0]), *nothing, cancelled=3.5).holds
    assert not near_exact("x", torch.tensor([1.0, 2.6]), exact, plain).holds
    assert not near_exact("x", torch.tensor([1.0, math.nan]), exact, plain).holds
    assert not near_exact("x", plain, exact, torch.tensor([math.nan, 2.0])).holds
    with pytest.raises(ValueError, match=r"x is torch.float32 \(1,\), not torch.float32 \(2,\)"):
        near_exact("x", torch.ones(1), exact, plain)


def test_the_worst_is_what_is_no_number_then_what_is_farthest_beyond_its_limit():
    far, close, none, nothing = Outcome(2, 1), Outcome(5, 10), Outcome(math.nan, 1), Outcome(0, 0)
    assert worst([close, far, nothing]) is far
    assert worst([far, none, close]) is none
    assert worst([nothing, close]) is close
    assert Outcome(1, 0).share == math.inf
    assert nothing.holds


def test_a_row_of_each_kind():
    def unable():
        raise Unable("no such thing here")

    rows = [run(Check("a", "x=1", m)) for m in (lambda: Outcome(1, 2, "w", "fast"), unable, lambda: Outcome(3, 2, "w"))]
    assert [(r.state, r.text) for r in rows] == [(OK, "fast"), (NOT_HERE, "no such thing here"), (FAILED, "w")]
    assert advice(rows) == ["  a: use x=1"]
    assert str(rows[0]).split() == ["a", "1", "2", "0.0", "ok:", "fast"]
    with pytest.raises(KeyboardInterrupt):
        run(Check("a", "", lambda: (_ for _ in ()).throw(KeyboardInterrupt)))


def test_nothing_is_asked_of_a_gpu_that_has_stopped_answering(capsys, monkeypatch):
    monkeypatch.setattr("musictx.commands.check.answers", lambda device: False)
    monkeypatch.setitem(IMPLEMENTATIONS, "chunked", no_table_gradient)
    status, lines = report(capsys, "kernels")
    assert status == 1
    assert "  ok: " in row(lines, "attention skew, float32")
    assert "  FAILED: " in row(lines, "attention chunked, float32")
    assert lines[8].startswith("1 ok, 1 FAILED, 6 not here")
    assert all(line.endswith(f"  not here: {SILENT}") for line in lines[2:8])


def test_bfloat16_on_a_gpu_that_only_imitates_it(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (7, 5))
    for part in PARTS:
        for make in PARTS[part]:
            for each in make(CheckConfig(device="cuda")):
                if "bf16" in each.what or "bfloat16" in each.what:
                    with pytest.raises(Unable, match="bfloat16 needs capability 8.0, this GPU has 7.5"):
                        each.measure()


def test_every_safe_setting_exists_and_every_proof_is_a_check():
    here, there = (
        [each for part in PARTS for make in PARTS[part] for each in make(CheckConfig(device=device))]
        for device in ("cpu", "cuda")
    )
    assert (len(here), len(there)) == (39, 64)
    for checks in (here, there):
        names = {each.what for each in checks}
        assert len(names) == len(checks)
        assert {each.proven_by for each in checks} - names == {""}
    assert [each.what for each in there if not each.safe] == ["train 50 steps, 32-true on the CPU"]
    words = {word for each in here + there for word in each.safe.split()}
    assert "trainer.precision=32-true" in words
    of_generate = {"graph=false", "weights=float32", "device=cpu"}
    assert of_generate < words
    settings("generate", "seed_midi=s", "attention=chunked", *of_generate)
    for word in words - of_generate:
        settings("train", word)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("steps=9", "steps=9: give 10 or more, fewer show no loss that falls"),
        ("longest=0", "longest=0: give 1 or more"),
        ("parts=[kernels,graphs]", "parts=graphs: choose among kernels, training, steps, generation, triton"),
        ("parts=[]", "parts=[]: choose among kernels"),
        ("device=tpu", "device=tpu: choose cpu or cuda"),
        ("out=.", "out=. is a folder: give a text file for the report"),
        ("threads=0", "threads=0: give 1 or more, or null"),
        ("store=nowhere", "nowhere is not a token store"),
        ("overrides=['model.d_modle=3']", "model.d_modle is not a setting: did you mean d_model?"),
    ],
)
def test_what_cannot_be_checked(word, said, tmp_path):
    assert said in refused(["musictx", "check", word], tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif("__import__('torch').cuda.is_available()", reason="this machine has a CUDA device")
def test_without_a_gpu(tmp_path):
    assert "this machine has no CUDA device: use device=cpu" in refused(["musictx", "check", "device=cuda"], tmp_path)
