"""The speed record and the long training: their arithmetic, and both from an archive to a model."""

import json
import sys
import zipfile
from pathlib import Path

import numpy as np
import piano
import pytest
import torch
from conftest import ROOT, ok, write_tunes
from hydra import compose, initialize_config_dir
from songs import write_songs

from musictx.config import register
from musictx.config.app import conf_dir, settings, typed
from musictx.config.command import find
from musictx.config.train import TrainConfig
from musictx.data.store import Corpus, Piece, Store, write_store
from musictx.errors import UserError
from musictx.model.build import build_model
from musictx.model.bundle import read_header
from musictx.tokenizers import build_tokenizer
from musictx.training.preflight import check_trainer
from musictx.training.run_folder import RunFolder
from musictx.training.start import build_model_config, sized_as_bundle

TINY = ["model.d_model=16", "model.n_heads=2", "model.n_layers=1", "trainer.progress_bar=false"]


@pytest.fixture(scope="module")
def archive(world, tmp_path_factory):
    path = tmp_path_factory.mktemp("archive") / "maestro.zip"
    rows = ["split,midi_filename,duration"]
    with zipfile.ZipFile(path, "w") as file:
        for k, midi in enumerate(sorted(world.midi.rglob("*.mid"))[:6]):
            rows.append(f"{('train', 'validation', 'test')[k % 3]},2004/{k}.mid,18")
            file.write(midi, f"maestro-v3.0.0/2004/{k}.mid")
        file.writestr("maestro-v3.0.0/maestro-v3.0.0.csv", "\n".join(rows))
    return path


def piano_words(stage, device, before=None):
    """The settings of a stage of the piano's training, without the folder."""
    words = piano.words_of(stage, piano.RECIPES[device], Path("x"), Path("y"), before)
    assert words[2] == "train"
    return [word for word in words[3:] if not word.startswith("out=")]


def parameters(words):
    register(find("train"))
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        config = typed(compose("train", [*words, "out=y"]), TrainConfig)
    with torch.device("meta"):  # the shapes alone
        return sum(p.numel() for p in build_model(build_model_config(config, 391)).parameters())


def test_the_piano_fits_its_bundle():
    assert 10e6 < parameters(piano_words(piano.STAGES[0], "cpu")) < 12e6  # 24 MB in float16


@pytest.mark.parametrize(
    ("device", "stages", "ids_a_step"),
    [
        ("cpu", piano.STAGES, 8192),
        ("cuda", piano.GPU_STAGES, 65_536),
    ],
)
def test_the_piano_is_trained_on_either_device_with_as_many_ids_in_every_step(device, stages, ids_a_step, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for stage in stages:
        config = settings("train", *piano_words(stage, device))
        check_trainer(config)
        assert config.trainer.accelerator == device
        assert config.trainer.compile == (device == "cuda")
        assert config.data.length * config.trainer.batch_size == ids_a_step
        assert config.data.segment == config.data.length
        assert config.trainer.max_steps == stage.steps
    assert [config.data.length, config.model.position] == [2048, "relative_fourier"]  # the last stage


def test_a_part_of_the_hours_is_of_pieces_from_all_over_the_table():
    rows = [{"midi_filename": str(k), "duration": "1800"} for k in range(20)]
    assert piano.spread(rows, 1.9) == ["0", "7", "14", "1"]
    assert sorted(piano.spread(rows, 100), key=int) == [str(k) for k in range(20)]


def test_the_long_training_goes_through_its_stages(archive, tmp_path):
    script = tmp_path / "short.py"
    stages = "[piano.Stage(32, 2, 3, 0.0), piano.Stage(64, 1, 3, 1.0)]"
    script.write_text(f"import sys; sys.path.insert(0, {str(ROOT / 'studies')!r}); import piano\n")
    script.write_text(script.read_text() + f"piano.STAGES = {stages}; piano.SCORED_H = 0.005; piano.main()\n")
    words = [str(script), "--archive", archive, "--out", "runs", *TINY]
    assert "all stages are done: runs/stage-1/model.safetensors" in ok(words, tmp_path).stdout
    lengths = {f"stage-{n}": read_header(tmp_path / f"runs/stage-{n}/model.safetensors") for n in (0, 1)}
    assert [header.model["trained_length"] for header in lengths.values()] == [32, 64]
    store = json.loads((tmp_path / "runs/store/manifest.json").read_text())
    assert [store["splits"][name]["pieces"] for name in ("train", "validation")] == [
        ["2004/0.mid", "2004/3.mid"],
        ["2004/1.mid"],
    ]


def test_with_pop_only_the_training_split_has_the_songs_too(archive, tmp_path, monkeypatch):
    monkeypatch.setattr(piano, "ENDING_S", 2.0)  # songs of the test are short
    maestro = piano.prepare(archive, tmp_path)
    both = Store(piano.with_pop(maestro, write_songs(tmp_path / "songs", 12), tmp_path))
    assert both.path == tmp_path / "store-pop"
    corpus = both.manifest.corpus
    assert (corpus.name, corpus.licence) == ("MAESTRO v3.0.0 and POP909", "CC BY-NC-SA 4.0 (POP909: MIT)")
    assert "Hawthorne" in corpus.citation
    assert "Wang" in corpus.citation
    own, songs = Store(maestro), Store(tmp_path / "pop")
    for name in ("validation", "test"):
        assert both.split(name).ids.tobytes() == own.split(name).ids.tobytes()
    train, first, later = both.split("train"), own.split("train"), songs.split("train")
    assert [x.tolist() for x in train][: len(first)] == [x.tolist() for x in first]
    assert len(train) == len(first) + len(later)
    assert train.names[-1].startswith("POP909/")
    assert train.unfinished == set(range(len(first), len(train)))
    for i in range(len(later)):  # a song without its last two seconds, to the last id that is before them
        song, cut = later[i], train[len(first) + i]
        assert song[: len(cut)].tolist() == cut.tolist()
        until_s = songs.tokenizer.seconds(song) - 2
        assert songs.tokenizer.seconds(cut) <= until_s < songs.tokenizer.seconds(song[: len(cut) + 1])
    info = both.manifest.splits["train"]
    each = [store.manifest.splits["train"].seconds for store in (own, songs)]
    assert info.seconds == pytest.approx(sum(each) - 2 * len(later), abs=0.1)


def test_with_asap_all_its_performances_are_learned_and_songs_come_after_them(archive, tmp_path):
    maestro = piano.prepare(archive, tmp_path)
    write_tunes(tmp_path / "more", 6)
    both = Store(piano.with_asap(maestro, tmp_path / "more", tmp_path))
    assert both.path == tmp_path / "store-asap"
    assert (both.manifest.corpus.name, both.manifest.corpus.licence) == ("MAESTRO v3.0.0 and ASAP", "CC BY-NC-SA 4.0")
    own, other = Store(maestro), Store(tmp_path / "asap")
    pieces = sum(len(other.split(name)) for name in other.manifest.splits)
    assert len(both.split("train")) == len(own.split("train")) + pieces
    assert len(both.split("validation")) == len(own.split("validation"))
    assert piano.with_pop(both.path, write_songs(tmp_path / "songs", 12), tmp_path).name == "store-asap-pop"


def test_a_branch_is_a_copy_of_the_last_checkpoint_whose_rate_falls_to_zero(tmp_path, monkeypatch):
    calls = []

    def call(words, seconds=None):
        calls.append(words)
        return True

    monkeypatch.setattr(piano, "call", call)
    monkeypatch.setattr(sys, "argv", ["piano.py", "--archive", "a.zip", "--out", str(tmp_path), "--branch", "30"])
    (tmp_path / "store").mkdir()
    (tmp_path / "store/manifest.json").touch()
    with pytest.raises(SystemExit, match="stage-0 has no checkpoint"):
        piano.main()
    last = tmp_path / "stage-0/checkpoints/last.ckpt"
    last.parent.mkdir(parents=True)
    last.touch()
    piano.main()
    (words,) = calls
    assert {f"init_from={last}", f"out={tmp_path / 'branch-0'}", "trainer.max_steps=30"} < set(words)
    assert {"trainer.decay_share=1.0", "trainer.warmup_steps=3", "data.length=512"} < set(words)
    assert not any(word.startswith("model.d_model") for word in words)  # the checkpoint's


def test_a_branch_that_also_fills_has_a_folder_its_own_and_the_gpu_one_stage(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(piano, "call", lambda words, seconds=None: calls.append(words))
    (tmp_path / "store").mkdir()
    (tmp_path / "store/manifest.json").touch()
    last = tmp_path / "stage-0/checkpoints/last.ckpt"
    last.parent.mkdir(parents=True)
    last.touch()
    asked = ["--archive", "a.zip", "--out", str(tmp_path), "--device", "cuda", "--branch", "2400"]
    taught = ["objective=infill", "objective_settings={plain: 0.75}"]
    for more in ([], taught):
        monkeypatch.setattr(sys, "argv", ["piano.py", *asked, *more])
        piano.main()
    plain, fill = calls
    assert f"out={tmp_path / 'branch-0'}" in plain
    assert f"out={tmp_path / 'branch-0-fill'}" in fill
    assert fill[-2:] == taught
    for words in calls:
        assert {
            f"init_from={last}",
            "experiment=piano_gpu",
            "trainer.max_steps=2400",
            "trainer.warmup_steps=100",
        } < set(words)
        assert {"data.length=2048", "trainer.batch_size=32", "trainer.decay_share=1.0"} < set(words)
        assert [word for word in words if "validate_every" in word][-1] == "trainer.validate_every=2400"
    (tmp_path / "stage-0/model.safetensors").touch()
    monkeypatch.setattr(RunFolder, "is_finished", property(lambda run: True))
    monkeypatch.setattr(sys, "argv", ["piano.py", *asked[:-2]])
    piano.main()
    assert len(calls) == 2  # after the one stage nothing is left to train


def test_a_finished_model_is_taught_to_fill_in_a_folder_its_own(tmp_path, monkeypatch, capsys):
    calls = []
    monkeypatch.setattr(piano, "call", lambda words, seconds=None: calls.append(words))
    (tmp_path / "store").mkdir()
    (tmp_path / "store/manifest.json").touch()
    bundle = tmp_path / "stage-2/model.safetensors"
    monkeypatch.setattr(
        sys, "argv", ["piano.py", "--archive", "a.zip", "--out", str(tmp_path), "--fill", str(bundle), "seed=1"]
    )
    piano.main()
    (words,) = calls
    assert {f"init_from={bundle}", f"out={tmp_path / 'stage-2-fill'}", "experiment=piano_fill"} < set(words)
    assert {"data.length=2048", "trainer.decay_share=1.0"} < set(words)
    assert words[-1] == "seed=1"
    taught = settings("train", "experiment=piano_fill", "data.path=x", "init_from=piano")
    assert (taught.objective, taught.objective_settings["plain"], taught.trainer.lr) == ("infill", 0.5, 1e-3)
    assert sized_as_bundle(taught).model.keyboard == "none"  # as the bundle: nothing is gained
    assert "stage-2-fill is not finished:" in capsys.readouterr().out


def test_filling_is_taught_on_a_cpu_alone(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["piano.py", "--archive", "a.zip", "--fill", "a.safetensors", "--device", "cuda"])
    with pytest.raises(SystemExit):
        piano.main()
    assert "--fill runs on a CPU" in capsys.readouterr().err


def test_short_songs_and_a_store_of_before_are_said(archive, tmp_path):
    maestro = piano.prepare(archive, tmp_path)
    with_short = Store(piano.with_pop(maestro, write_songs(tmp_path / "songs", 12), tmp_path)).manifest
    songs = Store(tmp_path / "pop").manifest.splits["train"].pieces
    assert [x for x in with_short.dropped if x[0] in songs] == [(name, "not longer than 15 s") for name in songs]
    with pytest.raises(UserError, match=r"store-pop has songs"):
        piano.with_pop(maestro, tmp_path / "songs", tmp_path)


@pytest.mark.parametrize("more", [[], ["--pop", "pop909.zip"], ["--pop", "pop909.zip", "--fill", "x.safetensors"]])
def test_the_store_with_pop_is_learned_if_it_is_asked_for(tmp_path, monkeypatch, more):
    calls = []
    monkeypatch.setattr(piano, "call", lambda words, seconds=None: calls.append(words))
    (tmp_path / "store").mkdir()
    (tmp_path / "store/manifest.json").touch()
    piece = Piece("a", np.zeros(9, np.uint16), 1.0, unfinished=True)
    splits = {"train": [piece], "validation": [piece]}
    write_store(tmp_path / "store-pop", build_tokenizer("performance"), Corpus("both", ""), splits, [])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pop909.zip").touch()
    monkeypatch.setattr(sys, "argv", ["piano.py", "--archive", "a.zip", "--out", str(tmp_path), *more])
    piano.main()
    (words,) = calls
    assert f"data.path={tmp_path / ('store-pop' if more else 'store')}" in words


def test_songs_that_are_not_there_are_said_before_the_long_work(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["piano.py", "--archive", "a.zip", "--pop", "pop.zip", "--out", "out"])
    with pytest.raises(SystemExit, match="2"):
        piano.main()
    assert "--pop pop.zip does not exist:" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_stage_that_has_its_rate_is_left_after_enough_steps(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(piano, "call", lambda words, seconds=None: calls.append(words))  # None: cut by the clock
    (tmp_path / "store").mkdir()
    (tmp_path / "store/manifest.json").touch()
    last = tmp_path / "stage-0/checkpoints/last.ckpt"
    last.parent.mkdir(parents=True)
    last.touch()
    (tmp_path / "stage-0/metrics.csv").write_text("step,train/loss\n7998,2.1\n7999,2.0\n")
    for enough in ("8001", "8000"):
        words = ["--archive", "a.zip", "--out", str(tmp_path), "--enough", enough]
        monkeypatch.setattr(sys, "argv", ["piano.py", *words])
        piano.main()
    first, second = calls
    assert f"out={tmp_path / 'stage-0'}" in first
    assert f"out={tmp_path / 'stage-1'}" in second
    assert {f"init_from={last}", "data.length=1024", "trainer.decay_share=0.0"} < set(second)
    assert not piano.may_leave(piano.STAGES[-1], tmp_path / "stage-0", 1)  # its rate has to fall first
