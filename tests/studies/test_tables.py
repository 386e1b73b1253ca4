"""The scripts behind the tables: what they claim of themselves."""

import csv
import json
import sys
import zipfile
from argparse import Namespace
from pathlib import Path

import budget
import jsb
import maestro
import maestro_small
import pytest
import torch
from hydra import compose, initialize_config_dir

from musictx.config import register
from musictx.config.app import conf_dir, settings, typed
from musictx.config.command import find
from musictx.config.train import TrainConfig
from musictx.model.build import build_model
from musictx.training.optimizer import window_length
from musictx.training.preflight import carries, check_trainer
from musictx.training.run_folder import RunFolder
from musictx.training.start import build_model_config


@pytest.mark.parametrize(
    ("experiment", "vocab", "models"),
    [
        ("chorales", 92, {name: overrides for name, (overrides, _) in jsb.MODELS.items()}),
        ("maestro", 391, maestro.PAPER),
        ("maestro", 391, {name: maestro_small.words_of(name, "cpu") for name in maestro_small.MODELS}),
    ],
)
def test_the_models_of_a_table_are_alike_in_size(experiment, vocab, models):
    register(find("train"))
    sizes = {}
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        for name, overrides in models.items():
            words = [f"experiment={experiment}", "data.path=x", "out=y", *overrides]
            config = build_model_config(typed(compose("train", words), TrainConfig), vocab)
            with torch.device("meta"):  # the shapes alone
                sizes[name] = sum(p.numel() for p in build_model(config).parameters())
    assert max(sizes.values()) < 1.05 * min(sizes.values()), sizes


def test_the_chorale_table_gives_every_model_as_many_tokens_a_step_and_short_windows_first():
    seen = {}
    for name, (overrides, rates) in jsb.MODELS.items():
        config = settings("train", "experiment=chorales", "data.path=x", *jsb.COMMON, *overrides)
        check_trainer(config)
        seen[name] = (config.data.length, config.data.grow_from, config.data.length * config.trainer.batch_size)
        assert len(rates) == 2
    assert seen == {
        "rnn": (128, None, 2048),
        "lstm": (128, None, 2048),
        "lstm_attention": (128, None, 2048),
        "learned": (1024, 256, 2048),
        "relative_long": (1024, 256, 2048),
        "sinusoidal": (1024, 256, 2048),
        "rope": (1024, 256, 2048),
        "relative": (256, None, 2048),
        "fourier": (1024, 256, 2048),
    }
    lengths = [window_length(step, 1500, 1024, 256) for step in (0, 499, 500, 999, 1000, 1499)]
    assert lengths == [256, 256, 512, 512, 1024, 1024]


def test_a_part_of_an_archive_has_files_of_every_split(tmp_path):
    names = [f"2004/{split}-{k}.midi" for split in ("train", "validation", "test") for k in range(6)]
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        rows = ["split,midi_filename,duration", *(f"{name[5:].split('-')[0]},{name},1800" for name in names)]
        archive.writestr("maestro-v3.0.0/maestro-v3.0.0.csv", "\n".join(rows))
        for name in names:
            archive.writestr(f"maestro-v3.0.0/{name}", name)
    hours = {"train": 9.0, "validation": 9.0, "test": 1.6}
    folder = maestro.part_of(tmp_path / "a.zip", hours, 1 / 3, tmp_path / "part")
    found = sorted(str(p.relative_to(folder)) for p in folder.rglob("*.midi"))
    assert found == sorted(f"2004/{split}-{k}.midi" for split in ("train", "validation", "test") for k in (0, 3))
    with open(folder / "maestro-v3.0.0.csv") as file:
        assert len(list(csv.DictReader(file))) == 18


@pytest.mark.parametrize(("device", "ids_a_step"), [("cpu", 4096), ("cuda", 32_768)])
@pytest.mark.parametrize("name", maestro_small.MODELS)
def test_the_small_piano_models_end_with_windows_of_2048_ids_or_carry_their_state(
    name, device, ids_a_step, monkeypatch
):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    words = maestro_small.words_of(name, device)
    config = settings("train", "experiment=maestro", "data.path=x", *words)
    check_trainer(config)
    assert config.trainer.accelerator == device
    assert config.data.length * config.trainer.batch_size == ids_a_step
    assert (config.data.length, config.data.grow_from) == ((256, None) if name == "lstm" else (2048, 512))
    assert config.model.kind == ("recurrent" if name == "lstm" else "transformer")
    assert carries(config) == (name == "lstm")
    assert config.trainer.keep == "last"
    assert config.data.segment == 2048  # every model is scored on inputs as long, each with a fresh state
    assert config.attention.impl == ("triton" if (name, device) == ("relative", "cuda") else "auto")


def test_a_model_tries_two_rates_those_of_its_device():
    assert set(maestro_small.RATES) == {"cpu", "cuda", "lstm"}
    assert all(len(set(rates)) == 2 for rates in maestro_small.RATES.values())


def test_a_small_model_learns_with_the_better_of_two_rates_and_goes_on_where_it_was_stopped(tmp_path, monkeypatch):
    calls: list[tuple[str, int, str]] = []
    stopped: list[bool] = []

    def run(words, at_most_s=None):
        told = dict(word.split("=", 1) for word in words[1:])
        folder, steps = Path(told["out"]), int(told["trainer.max_steps"])
        calls.append((folder.name, steps, told["trainer.lr"]))
        folder.mkdir(exist_ok=True)
        ended = not stopped
        if ended:
            nll = {"0.001": 3.0, "0.004": 2.5}[told["trainer.lr"]]
            (folder / "nll").write_text(str(nll))
        return budget.Spent(7.0 + steps, ended)

    monkeypatch.setattr(maestro_small, "musictx", run)
    finished = property(lambda run: (run.path / "nll").exists())
    monkeypatch.setattr(RunFolder, "is_finished", finished)
    read = lambda bundle: Namespace(val_nll=float((bundle.parent / "nll").read_text()))  # noqa: E731
    monkeypatch.setattr(maestro_small, "read_header", read)

    def train(hours=0.1):
        by_hours = maestro_small.Budget(hours, None)
        return maestro_small.train_small(["lstm"], "cpu", by_hours, tmp_path, tmp_path, 1.0, [])

    stopped.append(True)
    assert train() == []
    assert calls == [("probe", 3, "0.001"), ("probe", 33, "0.001"), ("lstm-trial-0.001", 29, "0.001")]  # 36 s
    stopped.clear()
    assert train() == [tmp_path / "lstm-whole"]
    assert calls[3:] == [
        ("lstm-trial-0.001", 29, "0.001"),
        ("lstm-trial-0.004", 29, "0.004"),
        ("lstm-whole", 353, "0.004"),
    ]
    note = json.loads((tmp_path / "lstm.json").read_text())
    assert note["runs"]["trial-0.001"].pop("wall_s") >= 0
    assert note["runs"]["trial-0.001"] == {"lr": 0.001, "steps": 29, "cpu_s": 72.0, "nll": 3.0}  # of both calls
    assert note["runs"]["whole"]["nll"] == 2.5
    assert train() == [tmp_path / "lstm-whole"]
    assert len(calls) == 6  # nothing is made twice
    with pytest.raises(SystemExit, match="tells of other settings: give those again, or another --out"):
        train(hours=2.0)


def test_on_a_gpu_a_small_model_learns_for_so_many_steps_and_tries_its_rates_for_a_tenth(tmp_path, monkeypatch):
    calls = []

    def run(words, at_most_s=None):
        told = dict(word.split("=", 1) for word in words[1:])
        calls.append((Path(told["out"]).name, int(told["trainer.max_steps"]), told["trainer"], told["trainer.lr"]))
        return budget.Spent(1.0, True)

    monkeypatch.setattr(maestro_small, "musictx", run)
    monkeypatch.setattr(RunFolder, "is_finished", property(lambda run: False))
    monkeypatch.setattr(maestro_small, "read_header", lambda bundle: Namespace(val_nll=-float("0.006" in str(bundle))))
    folders = maestro_small.train_small(["rope"], "cuda", maestro_small.Budget(2.0, 2000), tmp_path, tmp_path, 1.0, [])
    assert folders == [tmp_path / "rope-whole"]
    assert calls == [
        ("rope-trial-0.003", 200, "gpu", "0.003"),
        ("rope-trial-0.006", 200, "gpu", "0.006"),
        ("rope-whole", 2000, "gpu", "0.006"),
    ]  # no probe: the steps are given
    assert "probes" not in json.loads((tmp_path / "rope.json").read_text())


@pytest.mark.parametrize(
    ("words", "steps"),
    [(["--device", "cpu", "--steps", "9"], None), (["--size", "small", "--steps", "9"], 9)],
)
def test_the_small_table_is_told_by_hours_on_a_cpu_and_by_steps_on_a_gpu(words, steps, tmp_path, monkeypatch):
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "manifest.json").touch()
    seen, calls = [], []

    def train(names, device, budget, store, out, minutes, more):
        seen.append((names, budget))
        return [out / f"{name}-whole" for name in names]

    monkeypatch.setattr(maestro, "train_small", train)
    monkeypatch.setattr(maestro, "call", lambda words, seconds=None: calls.append(words))
    asked = ["--archive", "a.zip", "--out", str(tmp_path), "--hours", "0.5", *words]
    monkeypatch.setattr(sys, "argv", ["maestro.py", *asked])
    maestro.main()
    assert seen == [(["relative", "fourier", "rope", "sinusoidal", "lstm"], maestro_small.Budget(0.5, steps))]
    (compared,) = calls
    assert {"split=test", "segment=2048", "names=[relative,fourier,rope,sinusoidal,lstm]"} < set(compared)


def test_models_of_the_papers_size_are_refused_on_a_cpu_and_so_is_a_model_they_do_not_have(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["maestro.py", "--archive", "a.zip", "--device", "cpu", "--size", "paper"])
    with pytest.raises(SystemExit, match="2"):
        maestro.main()
    said = "--size paper: a CPU would take weeks; give --size small, or --device cuda"
    assert capsys.readouterr().err.splitlines()[-1].endswith(said)
    monkeypatch.setattr(sys, "argv", ["maestro.py", "--archive", "a.zip", "--models", "rope"])
    with pytest.raises(SystemExit, match="2"):
        maestro.main()
    said = "--models rope: for --size paper choose from relative, fourier, sinusoidal, lstm"
    assert capsys.readouterr().err.splitlines()[-1].endswith(said)


SETTINGS = ["data.length=512", "+trainer.lr=1e-3", "model=lstm"]


@pytest.mark.parametrize("where", [0, 1, 2])
def test_settings_are_told_from_the_models_beside_them(where, tmp_path, monkeypatch):
    words = ["--models", "lstm", "relative"]
    words[where + 1 : where + 1] = SETTINGS
    seen: list[Namespace] = []
    monkeypatch.setattr(jsb, "study", seen.append)
    monkeypatch.setattr(sys, "argv", ["jsb.py", "--steps", "9", *words])
    jsb.main()
    assert (seen[0].models, seen[0].overrides, seen[0].steps) == (["lstm", "relative"], SETTINGS, 9)
    calls = []

    def call(args, seconds=None):
        calls.append(args)
        return True

    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "manifest.json").touch()
    monkeypatch.setattr(maestro, "call", call)
    monkeypatch.setattr(sys, "argv", ["maestro.py", "--archive", "a.zip", "--out", str(tmp_path), *words])
    maestro.main()
    assert [next(w for w in args if w.startswith("name=")) for args in calls[:2]] == ["name=lstm", "name=relative"]
    assert all(args[-3:] == SETTINGS for args in calls[:2])
    assert len(calls) == 3  # and compares them


def test_a_model_that_is_none_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["jsb.py", "--models", "lstm", "gru", "data.length=512"])
    with pytest.raises(SystemExit, match="2"):
        jsb.main()
    assert "invalid choice: 'gru'" in capsys.readouterr().err


def test_a_part_of_the_hours_is_of_pieces_from_all_over_the_table():
    rows = [{"midi_filename": str(k), "duration": "1800"} for k in range(20)]
    assert maestro.spread(rows, 1.9) == ["0", "7", "14", "1"]
    assert sorted(maestro.spread(rows, 100), key=int) == [str(k) for k in range(20)]
