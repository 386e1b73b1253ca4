"""However a run is stopped, the same command continues it; what is not the same is refused."""

import json
import os
import re
import resource
import shutil
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import QUICK, TINY, ok, run, signalled
from omegaconf import OmegaConf
from runs import STEPS, config_of, fit, losses, stop

from musictx.cli import main
from musictx.commands.runs import list_runs
from musictx.commands.train import completed, train
from musictx.config.app import settings
from musictx.config.mistakes import to_user_error
from musictx.errors import ConfigError
from musictx.generate.open_bundle import open_bundle
from musictx.model.bundle import load_bundle
from musictx.training.checkpoints import WholeFiles
from musictx.training.resume import with_resume
from musictx.training.run_folder import RunFolder

KILLED = """
import os, signal
from musictx.training.module import LanguageModelTraining
begin = LanguageModelTraining.on_train_batch_start
def die(self, batch, batch_idx):
    begin(self, batch, batch_idx)
    if self.trainer.global_step == 5:
        os.kill(os.getpid(), signal.SIGKILL)
LanguageModelTraining.on_train_batch_start = die
from musictx.cli import main
main()
"""


def test_killed_in_the_middle_of_a_step_and_started_again(world, tmp_path):
    settings = [*STEPS, "trainer.checkpoint_every=3", "trainer.optimizer=muon", "trainer.ema_decay=0.8"]
    whole = fit(config_of(world, tmp_path / "whole", *settings))
    command = ["train", f"data.path={world.store}", "out=run", "trainer.progress_bar=false", *TINY, *QUICK, *settings]
    (tmp_path / "killed.py").write_text(KILLED)
    assert run([tmp_path / "killed.py", *command], tmp_path).returncode == -signal.SIGKILL
    assert not (tmp_path / "run" / "model.safetensors").exists()
    assert "run is unfinished: resuming" in ok(["musictx", *command], tmp_path).stdout
    assert losses(tmp_path / "run") == losses(whole.parent)
    a, b = load_bundle(whole), load_bundle(tmp_path / "run" / "model.safetensors")
    weights = b.model.state_dict()
    assert all(torch.equal(x, weights[name]) for name, x in a.model.state_dict().items())


@pytest.fixture
def stopped(world, once, tmp_path):
    return shutil.copytree(once("unfinished", lambda folder: stop(world, folder / "run")) / "run", tmp_path / "run")


def test_sigterm_saves_the_step_that_it_came_in(world, tmp_path, capsys):
    stopped = stop(world, tmp_path / "run")
    assert "stopped by SIGTERM after step 6:" in capsys.readouterr().out
    assert len([row for row in losses(stopped) if "train/loss" in row]) == 6
    for name in ("last", "best"):  # a checkpoint opens like a bundle
        opened = open_bundle(stopped / "checkpoints" / f"{name}.ckpt", "cpu", "auto")
        assert opened.tokenizer.name == "performance"
        assert (opened.header.val_nll is None) == (name == "last")
    bundle = fit(config_of(world, stopped, *STEPS))
    whole = fit(config_of(world, tmp_path / "whole", *STEPS))
    assert losses(stopped) == losses(whole.parent)
    assert load_bundle(bundle).header == load_bundle(whole).header
    assert not (stopped / "checkpoints" / "last.ckpt").exists()


def test_a_stopped_run_is_continued_wherever_it_lies(world, tmp_path, stopped):
    stopped.rename(tmp_path / "moved")
    with pytest.raises(ConfigError, match="^resume=.*nowhere: "):
        fit(config_of(world, tmp_path / "x", f"resume={tmp_path / 'nowhere'}", *STEPS))
    assert not (tmp_path / "nowhere").exists()
    assert fit(config_of(world, tmp_path / "x", f"resume={tmp_path / 'moved'}", *STEPS)).parent == tmp_path / "moved"
    assert not (tmp_path / "x").exists()


def test_resume_takes_the_settings_of_the_run_and_what_a_person_names(world, stopped):
    """Its length can change; what the run is, or how it learned so far, cannot."""

    def resumed(*more):
        words = [f"resume={stopped}", *more]
        return completed(settings("train", *words), words)

    own = resumed()
    assert own.model.d_model == 16
    assert (own.data.path, own.trainer.max_steps) == (str(world.store), 9)
    assert resumed("trainer.max_steps=12") == replace(own, trainer=replace(own.trainer, max_steps=12))
    moved = shutil.copytree(world.store, stopped.parent / "store")
    assert resumed(f"data.path={moved}", "model.d_model=16").data == replace(own.data, path=str(moved))
    for word in ("model.d_model=32", "tokenizer.name=chorale", "data.length=64", "trainer.lr=0.5", "objective=infill"):
        with pytest.raises(ConfigError, match=rf"^resume=.* settings, {word} \(was [^,]*\): leave "):
            resumed(word, "trainer.max_steps=12")
    with pytest.raises(ConfigError, match=r"^resume=.* settings, model.kind=recurrent \(was transformer\): leave "):
        resumed("model=lstm")
    with pytest.raises(ConfigError, match="^experiment=.*: resume= goes on with the run's own settings"):
        resumed("experiment=demo")
    with pytest.raises(ConfigError, match="^out=elsewhere: resume= goes on in the run's own folder: leave one"):
        resumed("out=elsewhere")
    assert resumed(f"out={stopped}").trainer == own.trainer
    assert fit(resumed("trainer.max_steps=12")).parent == stopped
    assert len([row for row in losses(stopped) if "train/loss" in row]) == 12
    assert RunFolder(stopped).settings()["trainer.max_steps"] == 12


@pytest.mark.parametrize("word", ["max_steps=1", "max_epochs=1"])
def test_a_run_is_not_cut_before_it_has_a_model(world, stopped, word):
    """It stays as it is, and goes on."""
    (stopped / "checkpoints" / "best.ckpt").unlink(missing_ok=True)
    before = (stopped / "config.yaml").read_bytes()
    values = [f"resume={stopped}", f"trainer.{word}"]
    if "epochs" in word:
        values += ["trainer.max_steps=-1", "data.windows_per_epoch=4"]
        text = before.decode().replace("windows_per_epoch: null", "windows_per_epoch: 4")
        (stopped / "config.yaml").write_text(text)
        before = text.encode()
    name = word.partition("=")[0]
    with pytest.raises(ConfigError, match=rf"^{name}=1: the run has made \d steps?, and has no validated model"):
        fit(completed(settings("train", *values), values))
    assert (stopped / "config.yaml").read_bytes() == before
    values = [f"resume={stopped}"]
    assert fit(completed(settings("train", *values), values)).is_file()


def test_resume_keeps_a_stretch_that_the_store_would_not_have(world, stopped):
    values, words = OmegaConf.load(stopped / "config.yaml"), [f"resume={stopped}"]
    values.merge_with({"data": {"path": str(world.hymn_store), "stretch": [0.9]}, "tokenizer": {"name": "chorale"}})
    OmegaConf.save(values, stopped / "config.yaml")
    assert completed(settings("train", *words), words).data.stretch == [0.9]


def test_what_is_finished_is_not_resumed_but_trained_on_from_its_model(world, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fit(config_of(world, tmp_path / "run"))
    for words in (["resume=run"], ["resume=run", "trainer.max_steps=20"], ["out=run", f"data.path={world.store}"]):
        with pytest.raises(ConfigError, match="init_from=run with another out=") as refusal:
            train(*words)
        assert refusal.value.field == words[0].partition("=")[0]
    with pytest.raises(ConfigError, match="^resume=nowhere: it has no unfinished run: "):
        train("resume=nowhere")
    more = [f"data.path={world.store}", "init_from=run", "out=more", "trainer.progress_bar=false", *QUICK]
    assert train(*more) == Path("more/model.safetensors")


def test_ctrl_c_ends_the_command_and_a_sweep_of_it(world, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["out=run", f"data.path={world.store}", "trainer.progress_bar=false", *TINY, *QUICK]
    monkeypatch.setattr(sys, "argv", ["musictx", "train", "-m", "random_seed=0,1", *words])
    with signalled(3, signal.SIGINT), pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 130
    assert "run-0/model.safetensors" in capsys.readouterr().out
    assert (tmp_path / "run-0/model.safetensors").is_file()
    assert not (tmp_path / "run-1").exists()


def test_other_settings_are_refused_by_name(world, stopped):
    before = {p: p.read_bytes() for p in stopped.rglob("*") if p.is_file()}
    with pytest.raises(ConfigError, match=r"settings, random_seed=3 \(was 0\), trainer.lr=0.5 \(was 0.001\): give"):
        fit(config_of(world, stopped, *STEPS, "trainer.lr=0.5", "data.workers=1", "random_seed=3"))
    assert {p: p.read_bytes() for p in stopped.rglob("*") if p.is_file()} == before


def test_what_other_versions_wrote_is_read(world, stopped):
    """A setting that is gone; a kind that is not here."""
    place = stopped / "config.yaml"
    written: Any = OmegaConf.to_container(OmegaConf.load(place))
    config = config_of(world, stopped, *STEPS)
    place.write_text(OmegaConf.to_yaml(written | {"colour": "green"}))
    assert RunFolder(stopped).differences(config) == ["colour=None (was green)"]
    place.write_text(OmegaConf.to_yaml(written | {"random_seed": 7}))
    assert RunFolder(stopped).differences(config) == ["random_seed=0 (was 7)"]
    written["model"]["kind"] = "pair"
    place.write_text(OmegaConf.to_yaml(written))
    assert RunFolder(stopped).differences(config) == ["model.kind=transformer (was pair)"]
    assert [run.state for run in list_runs(stopped)] == ["unfinished"]
    with pytest.raises(ConfigError, match="^resume=.*settings .*model.kind=pair: give one of .*: start a new run$"):
        with_resume(config_of(world, "x", f"resume={stopped}"), ["resume"])


def test_other_data_is_refused_and_the_same_in_another_place_is_not(world, tmp_path, stopped):
    settings = [*STEPS, f"data.path={shutil.copytree(world.store, tmp_path / 'store')}"]
    place = stopped / "run.json"
    record = place.read_text()
    place.write_text(json.dumps(json.loads(record) | {"store": "0" * 16}))
    with pytest.raises(ConfigError, match="^path=.*store: "):
        fit(config_of(world, stopped, *settings))
    place.write_text(record)
    fit(config_of(world, stopped, *settings))


def test_overwriting_keeps_the_old_run_until_the_new_one_has_a_model(world, tmp_path):
    old = fit(config_of(world, tmp_path / "run"))
    before = old.read_bytes()
    settings = ["overwrite=true", "random_seed=2"]
    with signalled(0, signal.SIGINT), pytest.raises(KeyboardInterrupt):
        fit(config_of(world, tmp_path / "run", *settings))
    assert old.read_bytes() == before
    fit(config_of(world, tmp_path / "run", *settings))
    assert old.read_bytes() != before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run"]


HELD = "^out=.*: another process "


def holding(folder):
    """The number of a process that holds a run's folder, and does nothing else."""
    hear, tell = os.pipe()
    if (other := os.fork()) == 0:
        try:
            with RunFolder(folder).lock():
                os.write(tell, b"held")
                signal.pause()
        finally:
            os._exit(1)
    os.close(tell)
    assert os.read(hear, 4) == b"held"
    return other


def test_a_run_in_which_another_process_trains_is_left_alone(world, stopped):
    other = holding(stopped)
    before = {p: p.read_bytes() for p in stopped.rglob("*") if p.is_file()}
    again = config_of(world, stopped, *STEPS)
    for config in (again, replace(again, overwrite=True), replace(again, out="other", resume=str(stopped))):
        with pytest.raises(ConfigError, match=HELD):
            fit(config)
    assert {p: p.read_bytes() for p in stopped.rglob("*") if p.is_file()} == before
    os.kill(other, signal.SIGKILL)  # whose lock goes with it
    os.waitpid(other, 0)
    assert fit(again).is_file()


def test_a_folder_is_held_from_its_beginning_to_its_end(world, tmp_path, monkeypatch):
    def try_it(*_):
        with pytest.raises(ConfigError, match=HELD), RunFolder(tmp_path / "run").lock():
            pass
        tried.append(True)

    tried: list[bool] = []
    record = RunFolder.record
    monkeypatch.setattr(RunFolder, "record", lambda run: [try_it(), record(run)][1])
    monkeypatch.setattr(RunFolder, "close", try_it)
    fit(config_of(world, tmp_path / "run"))
    assert len(tried) == 2
    with RunFolder(tmp_path / "run").lock():
        pass


def test_a_full_disk_leaves_the_former_checkpoint(tmp_path):
    path, io = tmp_path / "last.ckpt", WholeFiles()
    io.save_checkpoint({"weights": torch.zeros(10)}, path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, limits[1]))  # bytes that a file may have
    try:
        with pytest.raises(OSError, match="too large") as caught:
            io.save_checkpoint({"weights": torch.ones(100_000)}, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert re.search("disk is full", str(to_user_error(caught.value)))
    assert [p.name for p in tmp_path.iterdir()] == ["last.ckpt"]
    assert torch.load(path, weights_only=True)["weights"].tolist() == [0.0] * 10
