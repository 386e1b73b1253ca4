"""trainer.patience: a run that gains no more ends, and keeps its best."""

from conftest import QUICK, TINY, ok

from musictx.training.metrics import read_metrics


def last_step(folder):
    return max(int(row["step"]) for row in read_metrics(folder / "metrics.csv")) + 1


def test_a_run_that_gains_nothing_ends(world, tmp_path):
    words = ["musictx", "train", f"data.path={world.store}", *TINY, *QUICK, "trainer.progress_bar=false"]
    still = [*words, "trainer.lr=1e-12", "trainer.warmup_steps=0", "trainer.max_steps=40", "trainer.log_every=1"]
    ok([*still, "out=patient", "trainer.patience=2"], tmp_path)
    assert last_step(tmp_path / "patient") < 20
    assert (tmp_path / "patient/model.safetensors").exists()
    ok([*still, "out=whole"], tmp_path)
    assert last_step(tmp_path / "whole") == 40
