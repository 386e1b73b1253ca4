"""What a run leaves to be read, seen and heard."""

import json
import math

import numpy as np
import pytest
import soundfile
from conftest import ok, refused
from runs import config_of, fit, losses

from musictx.commands.runs import Run, differences, list_runs
from musictx.data.store import Store
from musictx.music.read import read_midi
from musictx.training import metrics
from musictx.training.fit import curve
from musictx.training.metrics import MetricsFile, read_metrics
from musictx.training.run_folder import git_commit
from musictx.training.samples import held_out_seed

PNG = b"\x89PNG"


def test_samples_begin_with_the_held_out_seed_change_nothing_and_go_to_wandb_too(world, tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_SILENT", "true")
    plain = fit(config_of(world, tmp_path / "plain", "trainer.log_every=1"))
    settings = ["logger=wandb", "logger.mode=offline", "trainer.sample_every=4", "trainer.log_every=1"]
    heard = fit(config_of(world, tmp_path / "heard", *settings)).parent
    assert losses(plain.parent) == losses(heard)
    folder = heard / "samples"
    assert sorted(p.name for p in folder.iterdir()) == [f"step-4.{e}" for e in ("mid", "png", "wav")]
    seed = held_out_seed(Store(world.store))
    np.testing.assert_array_equal(read_midi(folder / "step-4.mid").pitch[:8], seed.pitch[:8])
    assert soundfile.info(folder / "step-4.wav").duration > 1
    assert (folder / "step-4.png").read_bytes().startswith(PNG)
    (run,) = (heard / "wandb").glob("offline-run-*")
    assert run.name.endswith(json.loads((heard / "run.json").read_text())["wandb_id"])
    assert {p.suffix for p in (run / "files" / "media").rglob("*.*")} == {".png", ".wav"}


def test_a_run_says_what_it_was_made_by(world):
    folder = world.bundle.parent
    record = json.loads((folder / "run.json").read_text())
    assert set(record["versions"]) == {"python", "musictx", "torch", "lightning", "numpy"}
    assert record["git_commit"] == git_commit() or record["git_commit"].endswith("+")
    assert (record["device"], len(record["store"])) == ("cpu", 16)
    assert (folder / "curves.png").read_bytes().startswith(PNG)


def test_a_log_file_gets_a_line_at_each_validation(world, tmp_path, capsys):
    fit(config_of(world, tmp_path / "run", "trainer.progress_bar=true"))
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("step ")]
    assert [line.split(",")[0] for line in lines] == ["step 2/4", "step 4/4"]
    for name in ("NLL ", "val ", "tok/s ", "lr ", "memory ", "left "):
        assert name in lines[0]
    assert lines[1].endswith("left 0:00:00")


def test_a_terminal_gets_a_bar(world, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    fit(config_of(world, tmp_path / "run", "trainer.progress_bar=true"))
    assert "tok/s" in capsys.readouterr().out


def test_runs_lists_the_best_first_with_what_differs_and_draws_them(world, tmp_path):
    root = world.bundle.parent.parent
    shown = ok(["musictx", "runs", f"folder={root}", "out=all.png"], tmp_path).stdout.splitlines()
    assert shown[0].split() == ["run", "name", "state", "steps", "kept", "NLL", "what", "differs"]
    assert [line.split()[1:4] for line in shown[1:3]] == [["run", "finished", "4"]] * 2
    assert float(shown[1].split()[4]) < float(shown[2].split()[4])
    assert len({line.split("  ")[-1].strip() for line in shown[1:3]}) == 2
    assert (tmp_path / "all.png").stat().st_size > 5000
    assert "exists" in refused(["musictx", "runs", f"folder={root}", "out=all.png"], tmp_path)
    assert "has no runs" in refused(["musictx", "runs", f"folder={tmp_path}"], tmp_path)


def test_what_differs_is_neither_a_place_nor_what_all_have(tmp_path):
    def run(name, **settings):
        return Run(name, name, "finished", 1, 2.0, {"name": name, "out": name, "trainer.lr": 0.1, **settings})

    runs = [run("a", **{"model.d_model": 8}), run("b", **{"model.d_model": 9}), Run("c", "", "damaged", 0, None)]
    assert differences(runs) == ["model.d_model=8", "model.d_model=9", ""]
    assert differences(runs[:1]) == [""]


def test_a_failed_and_an_unfinished_run(tmp_path):
    for name, keep in (("a", "best"), ("b", "best"), ("c", "last")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text("{}")
        kept = f"trainer: {{keep: {keep}}}"
        (tmp_path / name / "config.yaml").write_text(f"name: {name}\nmodel: {{kind: transformer}}\n{kept}")
        (tmp_path / name / "metrics.csv").write_text("step,train/loss,val/nll\n9,4.0,\n9,,2.5\n19,3.0,\n19,,2.75\n2")
    (tmp_path / "a" / "metrics.csv").unlink()
    (tmp_path / "a" / "failed.pt").touch()
    b, c, a = list_runs(tmp_path)
    assert b == Run(str(tmp_path / "b"), "b", "unfinished", 20, 2.5)
    assert c.kept_nll == 2.75  # of the model that it keeps
    assert (a.state, a.steps, a.kept_nll) == ("failed", 0, None)


def test_metrics_are_one_row_a_step_whatever_comes_when(tmp_path):
    file = MetricsFile(tmp_path / "metrics.csv")
    for step in range(3):
        file.log_metrics({"loss": step / 2}, step)
    file.log_metrics({"nll": 7.0}, 2)
    file.log_metrics({"loss": 9.0}, 3)
    rows = [(int(r["step"]), r.get("loss"), r.get("nll")) for r in read_metrics(tmp_path / "metrics.csv")]
    assert rows == [(0, "0.0", None), (1, "0.5", None), (2, "1.0", "7.0"), (3, "9.0", None)]
    again = MetricsFile(tmp_path / "metrics.csv", from_step=2)
    again.log_metrics({"loss": 1.0}, 2)
    again.log_metrics({"nll": 6.0}, 2)
    rows = [(int(r["step"]), r.get("loss"), r.get("nll")) for r in read_metrics(tmp_path / "metrics.csv")]
    assert rows == [(0, "0.0", None), (1, "0.5", None), (2, "1.0", "6.0")]


def seconds_of(path):
    return [float(row["seconds"]) for row in read_metrics(path) if "seconds" in row]


def test_metrics_count_the_seconds_of_all_trainings_of_a_run(tmp_path, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(metrics, "perf_counter", lambda: now[0])
    path = tmp_path / "metrics.csv"
    file = MetricsFile(path)
    for step, at in ((0, 101.0), (1, 103.5), (1, 1099.25), (2, 1100.5)):
        now[0] = at
        file.log_metrics({"loss": 1.0 / (step + 1)}, step)
    assert seconds_of(path) == [1.0, 999.25, 1000.5]
    again = MetricsFile(path, from_step=2)
    now[0] += 2
    again.log_metrics({"loss": 0.5}, 2)
    assert seconds_of(path) == [1.0, 999.25, 1001.25]
    path.write_text("step,loss\n0,1.0\n")  # of a musictx that wrote none
    old = MetricsFile(path, from_step=1)
    for loss in (0.123456789, 0.5):
        old.log_metrics({"loss": loss}, 1)
    assert seconds_of(path) == []
    assert [row["loss"] for row in read_metrics(path)] == ["1.0", "0.5"]


def test_a_row_may_be_written_again_and_the_file_may_go(tmp_path):
    file = MetricsFile(tmp_path / "metrics.csv")
    file.log_metrics({"loss": 0.123456789012345, "nll": 1.0}, 0)
    file.log_metrics({"loss": 0.123456789012345}, 1)
    before = (tmp_path / "metrics.csv").read_bytes()
    file.log_metrics({"loss": 1.0}, 1)
    after = (tmp_path / "metrics.csv").read_bytes()
    assert after.count(b"\n") == before.count(b"\n")
    assert [float(row["loss"]) for row in read_metrics(tmp_path / "metrics.csv")] == [0.123456789012345, 1.0]
    (tmp_path / "metrics.csv").unlink()  # by a person, meanwhile
    file.log_metrics({"loss": 2.0}, 2)
    assert [row["step"] for row in read_metrics(tmp_path / "metrics.csv")] == ["2"]


@pytest.mark.parametrize("n", [0, 1, 40, 1000])
def test_a_curve_has_at_most_forty_points_between_its_extremes(n):
    rows = [{"step": str(i), "x": str(math.sin(i))} for i in range(n)]
    step, mean, low, high = curve(rows, "x")
    assert len(step) == min(n, 40)
    assert ((low <= mean) & (mean <= high)).all()
