"""Many runs by one command, each in a folder beside the others; the same command continues what is missing."""

import re
import shutil

from conftest import QUICK, TINY, ok
from omegaconf import OmegaConf

from musictx.commands.runs import list_runs


def test_a_sweep_has_a_folder_a_job_and_is_continued_and_a_job_that_diverges_stops_no_other(world, tmp_path):
    settings = [f"data.path={world.store}", "trainer.progress_bar=false", "trainer.warmup_steps=0", *TINY, *QUICK]
    sweep = ["musictx", "train", "-m", "out=runs/lr", "trainer.lr=1e6,1e-3", *settings]
    done = ok(sweep, tmp_path)
    assert re.search("error: runs/lr-0: the loss (is nan|has exploded) .*: lower trainer.lr= or ", done.stderr)
    states = {run.folder[-4:]: run.state for run in list_runs(tmp_path / "runs")}
    assert states == {"lr-0": "failed", "lr-1": "finished"}
    assert OmegaConf.load(tmp_path / "runs/lr-1/config.yaml").trainer.lr == 1e-3
    assert sorted(p.name for p in (tmp_path / "runs" / "lr").iterdir()) == ["multirun.yaml"]
    shutil.rmtree(tmp_path / "runs" / "lr-0")  # as if it had not come to it
    done = ok(sweep, tmp_path)
    assert "runs/lr-1 is finished already" in done.stdout
    assert {run.state for run in list_runs(tmp_path / "runs")} == {"failed", "finished"}
