"""Many runs by one command, each in its own folder; the same command continues what is missing."""

import re
import shutil
from pathlib import Path

from conftest import QUICK, TINY, ok, refused
from omegaconf import OmegaConf

from musictx.commands.runs import list_runs
from musictx.generate.open_bundle import find_bundles


def settings(world):
    return [f"data.path={world.store}", "trainer.progress_bar=false", *TINY, *QUICK]


def test_a_sweep_has_a_folder_a_job_and_is_continued(world, tmp_path):
    sweep = ["musictx", "train", "-m", "out=runs/lr", "trainer.lr=1e-3,1e-2", *settings(world)]
    ok(sweep, tmp_path)
    rates = [OmegaConf.load(tmp_path / f"runs/lr-{k}" / "config.yaml").trainer.lr for k in (0, 1)]
    assert rates == [1e-3, 1e-2]
    shutil.rmtree(tmp_path / "runs" / "lr-1")  # as if it had not come to it
    done = ok(sweep, tmp_path)
    assert "runs/lr-0 is finished already" in done.stdout
    assert {run.state for run in list_runs(tmp_path / "runs")} == {"finished"}
    assert sorted(p.name for p in (tmp_path / "runs" / "lr").iterdir()) == ["multirun.yaml"]


def test_jobs_at_once_and_one_that_diverges_is_not_the_end_of_the_others(world, tmp_path):
    words = ["out=runs/lr", "trainer.lr=1e6,1e-3", "trainer.warmup_steps=0", *settings(world)]
    done = ok(["musictx", "train", "-m", "sweep=joblib", *words], tmp_path)
    assert {run.folder[-4:]: run.state for run in list_runs(tmp_path / "runs")} == {
        "lr-0": "failed",
        "lr-1": "finished",
    }
    assert re.search("error: runs/lr-0: the loss (is nan|has exploded) .*: lower trainer.lr= or ", done.stderr)


def test_optuna_is_given_the_best_validation_and_is_continued(world, tmp_path):
    # a width that is given is not searched for
    sweep = ["musictx", "train", "-m", "sweep=optuna", "hydra.sweeper.n_trials=2", "out=runs/search", *settings(world)]
    ok(sweep, tmp_path)
    (best, other), result = list_runs(tmp_path / "runs"), tmp_path / "runs" / "search" / "optimization_results.yaml"
    found = OmegaConf.load(result)
    assert abs(found.best_value - best.kept_nll) < 1e-6
    assert set(found.best_params) == {"trainer.lr", "model.dropout"}
    assert OmegaConf.load(f"{best.folder}/config.yaml").trainer.lr == found.best_params["trainer.lr"]
    shutil.rmtree(other.folder)
    result.unlink()
    assert ok(sweep, tmp_path).stdout.count("is finished already") == 1
    assert OmegaConf.load(result) == found  # the same trials again
    assert len(find_bundles([f"{tmp_path}/runs/search-*"])) == 2


def test_slurm_where_there_is_none(tmp_path):
    line = refused(["musictx", "train", "-m", "sweep=slurm", "trainer.lr=1e-3,1e-2"], tmp_path, PATH="")
    assert "sweep=slurm: " in line
    assert "sweep=joblib" in line
    ok(["musictx", "train", "sweep=slurm", "--help"], tmp_path, PATH="")


def test_jobs_handed_out_by_submitit_come_back(world, tmp_path):
    # its launcher of this machine: what it does without SLURM's queue
    words = ["musictx", "train", "-m", "hydra/launcher=submitit_local", "out=runs/lr", *settings(world)]
    wrong = refused([*words, "model.d_model=16,15"], tmp_path)
    assert [run.state for run in list_runs(tmp_path / "runs")] == ["finished"]
    assert "a job of the sweep failed: model.d_model=15: " in wrong
    logs = wrong.rpartition("; its whole output is in ")[2]
    assert any("model.d_model=15" in log.read_text() for log in Path(logs).glob("*_log.err"))
