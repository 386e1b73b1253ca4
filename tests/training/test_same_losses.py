"""Three steps and a validation, as they were before an objective was asked for them."""

import pytest
from runs import RECURRENT, config_of, fit, losses

STEPS = ["trainer.log_every=1", "trainer.max_steps=3", "trainer.validate_every=3", "trainer.warmup_steps=1"]
CASES = {
    "plain": ("", [5.972839, 5.982233, 5.967466], 5.957914),
    "carried": (RECURRENT, [5.973849, 5.965701, 5.970671], 5.968228),
}


@pytest.mark.parametrize("case", CASES)
def test_the_losses_are_those_of_the_tokens_themselves(world, tmp_path, case):
    model, steps, validation = CASES[case]
    more = {"model": model} if model else {}
    rows = losses(fit(config_of(world, tmp_path / "run", *STEPS, **more)).parent)
    assert [float(row["train/loss"]) for row in rows if "train/loss" in row] == pytest.approx(steps, abs=2e-5)
    assert float(rows[-1].get("val/nll") or rows[-2]["val/nll"]) == pytest.approx(validation, abs=2e-5)
