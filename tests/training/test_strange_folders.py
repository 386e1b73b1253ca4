"""Folders of strangers and damaged files: stores, checkpoints and settings are data, and each is refused in a line."""

import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
import yaml
from runs import STEPS, config_of, fit, stop

from musictx.commands.runs import list_runs, show
from musictx.config.app import settings
from musictx.config.train import TrainConfig
from musictx.errors import ConfigError, StoreError, UserError
from musictx.training.failure import TrainingError
from musictx.training.resume import with_resume
from musictx.training.run_folder import RunFolder
from musictx.training.start import check_words


@pytest.fixture
def stopped(world, once, tmp_path):
    """An unfinished run with a checkpoint."""
    return shutil.copytree(once("unfinished", lambda folder: stop(world, folder / "run")) / "run", tmp_path / "run")


def change(folder, **values):
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | values))


def resume(folder, *more):
    words = [f"resume={folder}", *more]
    objective = dict(word.split("=", 1) for word in more).get("objective", "next_token")
    return with_resume(replace(TrainConfig(out="x"), resume=str(folder), objective=objective), words)


@pytest.mark.parametrize("split", ["train", "validation"])
def test_a_store_whose_bytes_have_changed_is_not_learned(world, tmp_path, split):
    store = shutil.copytree(world.store, tmp_path / "store")
    ids = bytearray((store / f"{split}.ids.bin").read_bytes())
    ids[10], ids[12] = ids[12], ids[10]
    assert ids[10] != ids[12]
    (store / f"{split}.ids.bin").write_bytes(ids)
    with pytest.raises(StoreError, match=f"{split} split .*changed"):
        fit(config_of(replace(world, store=store), tmp_path / "run"))
    assert not (tmp_path / "run" / "model.safetensors").exists()


def test_pieces_that_begin_elsewhere_are_not_learned(world, tmp_path):
    store = shutil.copytree(world.store, tmp_path / "store")
    offsets = np.load(store / "train.offsets.npy")
    offsets[1] += 1
    np.save(store / "train.offsets.npy", offsets)
    with pytest.raises(StoreError, match="train split .*changed"):
        fit(config_of(replace(world, store=store), tmp_path / "run"))


GONE = [{"dates": {"grow": 3}}, {"model": {"kind": "encoder"}}, {"model": {"kind": "recurrent", "cell": "rnn"}}]
GONE += [{"objective": "masked"}, {"trainer": {"scheduled_sampling": 0.3}}]


@pytest.mark.parametrize("settings", GONE)
def test_a_run_of_another_version_is_not_resumed(stopped, settings):
    change(stopped, **settings)
    with pytest.raises(ConfigError, match=r"^resume=.*: .*settings .*version \(.*\): start a new run$"):
        resume(stopped)


@pytest.mark.parametrize("damage", ["flipped", "cut", "text", "parts", "model", "groups"])
def test_a_damaged_checkpoint_is_not_resumed(world, stopped, damage):
    last = stopped / "checkpoints" / "last.ckpt"
    content, kept = bytearray(last.read_bytes()), torch.load(last, weights_only=True)
    content[len(content) // 2] ^= 1
    broken = {"flipped": bytes(content), "cut": last.read_bytes()[:-100], "text": b"PK\x03\x04 no"}
    decayed, rest = (dict(group) for group in kept["optimizer_states"][0]["param_groups"])
    decayed["params"], rest["params"] = [*decayed["params"], rest["params"][-1]], rest["params"][:-1]
    groups = [kept["optimizer_states"][0] | {"param_groups": [decayed, rest]}]
    saved = {"parts": {"state_dict": [1]}, "model": kept | {"state_dict": {"model.other": torch.ones(1)}}}
    saved["groups"] = kept | {"optimizer_states": groups}
    last.write_bytes(broken[damage]) if damage in broken else torch.save(saved[damage], last)
    with pytest.raises(TrainingError, match="last.ckpt is damaged ") as caught:
        fit(config_of(world, stopped, *STEPS))
    assert len(str(caught.value).splitlines()) == 1


def test_a_folder_names_no_code_to_run(stopped, tmp_path, monkeypatch):
    (tmp_path / "theirs.py").write_text("raise SystemExit('it ran')")
    monkeypatch.chdir(tmp_path)
    change(stopped, objective="theirs:Objective")
    with pytest.raises(ConfigError, match="give objective=theirs:Objective too"):
        resume(stopped)
    assert resume(stopped, "objective=theirs:Objective").objective == "theirs:Objective"
    change(stopped, objective="next_token")
    assert resume(stopped).objective == "next_token"


BOMB = "a: &a [x, x]\n" + "".join(f"b{k}: &b{k} [*{'a' if not k else f'b{k - 1}'}, *a]\n" for k in range(40))


UNREADABLE = (BOMB, "[" * 5_000, "- 1", "3", "", "model: [1]", "model: {kind: [a]}", "\x00", "a: b: c", "model: 3")
VARIABLES = "${oc.env:HOME}", r'"\u0024{oc.env:HOME}"', r'"\x24\x7boc.env:HOME}"'
TAGS = "!!bool maybe", "!!timestamp soon", "!!binary JHt4fQ==", "!!omap [a: 1]", "! x"
NAMES = [f"model: {{kind: transformer}}\nname: {name}" for name in (*VARIABLES, *TAGS, "{" * 5_000)]


@pytest.mark.parametrize("written", [*UNREADABLE, *NAMES], ids=range(19))
def test_a_folder_reads_no_environment_grows_no_memory_and_makes_no_types(tmp_path, written):
    (tmp_path / "config.yaml").write_text(written)
    with pytest.raises(UserError, match="config.yaml is damaged") as caught:
        RunFolder(tmp_path).config()
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    "content", [b"\xff\xfe", b"x" * 200_000, b"step,val/nll\n1," + b"9" * 200_000, b"step,a\n3,b\n"]
)
def test_metrics_that_are_no_table_are_said(tmp_path, content):
    (tmp_path / "metrics.csv").write_bytes(content)
    with pytest.raises(UserError, match="metrics.csv is damaged"):
        RunFolder(tmp_path).metrics()


@pytest.mark.parametrize("odd", ["2,1e-", "2,", "2", "2,1.2", "²,2\n", "9" * 5000 + ",2\n"])
def test_a_row_that_a_power_cut_left_or_of_no_step_is_skipped(tmp_path, odd):
    (tmp_path / "metrics.csv").write_text("step,val/nll\r\n1,2.5\r\n" + odd, encoding="utf-8")
    assert RunFolder(tmp_path).metrics() == [{"step": "1", "val/nll": "2.5"}]


def test_names_of_runs_do_not_steer_the_terminal(stopped, capsys):
    folder = stopped.rename(stopped.with_name("\x1b[31mred"))
    change(folder, name=5)
    show(settings("runs", folder=folder))
    assert "\x1b" not in capsys.readouterr().out


def test_one_damaged_run_hides_no_other(world, tmp_path):
    for name in ("good", "bad", "worse", "odd"):
        shutil.copytree(world.bundle.parent, tmp_path / name)
    (tmp_path / "bad/config.yaml").write_text("a: b: c")
    (tmp_path / "worse/config.yaml").write_bytes(b"\xff\xfe")
    (tmp_path / "odd/metrics.csv").write_text("step,val/nll\n3,much\n")
    found = {re.sub(".*/", "", run.folder): run.state for run in list_runs(tmp_path)}
    assert found == {"good": "finished", "bad": "damaged", "worse": "damaged", "odd": "damaged"}
    (tmp_path / "good/run.json").write_text("[" * 100_000)
    with pytest.raises(UserError, match=r"run\.json is damaged"):
        RunFolder(tmp_path / "good").record()
    (tmp_path / "good/run.json").write_text(json.dumps({"git_commit": 1}))
    with pytest.raises(UserError, match=r"run\.json is damaged"):
        RunFolder(tmp_path / "good").record()


def test_a_model_beyond_the_machine_is_refused_before_it_is_built(world, tmp_path):
    words = ["model.d_model=1000000", "model.n_heads=4", "model.n_layers=12"]
    with pytest.raises(UserError, match=r"take [\d,]+ GB, .* \d+:"):
        fit(config_of(world, tmp_path / "run", *words))
    with pytest.raises(ConfigError, match="^n_layers=100000: "):
        fit(config_of(world, tmp_path / "run", "model.n_layers=100000"))
    assert not (tmp_path / "run").exists()


def test_a_dropout_that_is_no_number_is_its_own_mistake(world, tmp_path):
    config = config_of(world, tmp_path / "run", f"init_from={world.bundle}", "model.dropout=nan")
    check_words(config, ["model.dropout=nan"])
    with pytest.raises(ConfigError, match="^dropout=nan: "):
        fit(config)
