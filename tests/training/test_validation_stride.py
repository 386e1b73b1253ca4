"""`data.stride=` in training: validation is what `musictx evaluate` measures with the same settings."""

import pytest
from conftest import TINY
from runs import RECURRENT, config_of, fit, val_nll

from musictx.commands.evaluate import evaluate
from musictx.errors import ConfigError

STRIDE = ["data.segment=16", "data.stride=4"]
SHORT = [*RECURRENT, "trainer.max_steps=2"]
LINES: dict[str, tuple[list[str], str]] = {
    "transformer": (["trainer.max_steps=2"], "inputs of 16 tokens, moved on by 4, float32"),
    "recurrent": (SHORT, "whole pieces, the state carried over blocks of 16 tokens, float32"),
}


@pytest.mark.parametrize("kind", LINES)
def test_validation_and_evaluate_score_alike_and_evaluate_says_how(world, tmp_path, capsys, kind):
    words, line = LINES[kind]
    model = [] if kind == "recurrent" else TINY
    bundle = fit(config_of(world, tmp_path / "run", *words, *STRIDE, model=model))
    asked = {"bundle": str(bundle), "out": str(tmp_path / "f.json"), "overwrite": True}
    capsys.readouterr()
    found = evaluate(f"data.path={world.store}", *STRIDE, **asked)
    assert f" tokens, {line}\n" in capsys.readouterr().out
    assert found.per_token.mean == pytest.approx(val_nll(bundle), rel=1e-5)
    assert (found.segment, found.stride) == (16, 4)
    whole, blocks = (evaluate(f"data.path={world.store}", f"data.segment={n}", **asked) for n in ("null", 16))
    assert found.tokens == whole.tokens == blocks.tokens
    if kind == "recurrent":
        assert found.per_token.mean == pytest.approx(whole.per_token.mean, rel=1e-5)
        assert found.per_token.mean != pytest.approx(blocks.per_token.mean, rel=1e-5)


def test_a_stride_that_the_run_cannot_keep_is_refused_before_it_begins(world, tmp_path):
    for words, said in (
        (["data.segment=null", "data.stride=4"], "^stride=4: segment=null "),
        (["data.segment=16", "data.stride=17"], "^stride=17: give 1 to segment=16"),
        ([*STRIDE, "objective=infill"], "^stride=4: examples of this objective "),
    ):
        with pytest.raises(ConfigError, match=said):
            fit(config_of(world, tmp_path / "run", *words))
    assert not (tmp_path / "run").exists()
