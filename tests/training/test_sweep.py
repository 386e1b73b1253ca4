"""Many runs by one command, each in a folder of its own; the same command goes on with what is missing."""

import shutil

from conftest import QUICK, TINY, ok
from omegaconf import OmegaConf

from musictx.runs import find_runs


def test_a_sweep_has_a_folder_a_job_and_is_gone_on_with(world, tmp_path):
    settings = [f"data.path={world.store}", "trainer.progress_bar=false", *TINY, *QUICK]
    sweep = ["musictx", "train", "-m", "out=runs/lr", "trainer.lr=1e-3,1e-2", *settings]
    ok(sweep, tmp_path)
    rates = [OmegaConf.load(tmp_path / f"runs/lr-{k}" / "config.yaml").trainer.lr for k in (0, 1)]
    assert rates == [1e-3, 1e-2]
    shutil.rmtree(tmp_path / "runs" / "lr-1")  # as if it had not come to it
    done = ok(sweep, tmp_path)
    assert "runs/lr-0 is finished already" in done.stdout
    assert {run.state for run in find_runs(tmp_path / "runs")} == {"finished"}
    assert sorted(p.name for p in (tmp_path / "outputs" / "sweeps").iterdir()) == ["multirun.yaml"]
