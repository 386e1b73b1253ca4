"""The long training of the piano: its sizes, its music, and one command from the archives to a scored bundle."""

import json
import sys
import zipfile
from pathlib import Path

import piano
import piano_music
import pytest
import torch
from conftest import write_tunes
from songs import write_songs

from musictx.config.app import settings
from musictx.data.store import Store
from musictx.errors import UserError
from musictx.model.build import build_model
from musictx.model.bundle import add_notes, read_header
from musictx.training.fit import build_model_config
from musictx.training.preflight import check_trainer

pytestmark = pytest.mark.usefixtures("no_curves")

TINY = ["model.d_model=16", "model.n_heads=2", "model.n_layers=1", "model.d_ff=32", "model.max_distance=64"]


@pytest.fixture(scope="module")
def archives(world, tmp_path_factory):
    folder = tmp_path_factory.mktemp("archives")
    rows = ["split,midi_filename,duration"]
    with zipfile.ZipFile(folder / "maestro.zip", "w") as file:
        for k, midi in enumerate(sorted(world.midi.rglob("*.mid"))[:6]):
            rows.append(f"{('train', 'validation', 'test')[k % 3]},2004/{k}.mid,18")
            file.write(midi, f"maestro-v3.0.0/2004/{k}.mid")
        file.writestr("maestro-v3.0.0/maestro-v3.0.0.csv", "\n".join(rows))
    write_tunes(folder / "asap", 6)
    return {
        "maestro": folder / "maestro.zip",
        "asap": folder / "asap",
        "pop": write_songs(folder / "songs", 12),
    }


def words_of(stage):
    return piano.words_of(stage, Path("x"), Path("y"), None)


def test_the_piano_fits_its_bundle():
    config = build_model_config(settings("train", *words_of(piano.STAGES["cpu"][0])), 391)
    with torch.device("meta"):  # the shapes alone
        count = sum(p.numel() for p in build_model(config).parameters())
    assert 10e6 < count < 12e6  # 24 MB in float16


@pytest.mark.parametrize(("device", "ids_a_step"), [("cpu", 8192), ("cuda", 65_536)])
def test_the_piano_is_trained_on_either_device_with_as_many_ids_in_every_step(device, ids_a_step, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for stage in piano.STAGES[device]:
        config = settings("train", *words_of(stage))
        check_trainer(config)
        assert config.trainer.accelerator == device
        assert config.trainer.compile == (device == "cuda")
        assert config.data.length * config.trainer.batch_size == ids_a_step
        assert config.data.segment == config.data.length
        assert config.trainer.max_steps == stage.steps
        assert (config.objective, config.objective_settings["plain"]) == ("infill", 0.75)
        assert (config.model.keyboard, config.model.conv) == ("head", 4)
    assert (config.data.length, config.trainer.decay_share) == (2048, 1.0)


def test_the_training_has_asaps_performances_and_songs_without_their_endings(archives, tmp_path, monkeypatch):
    of = {name: Store(path) for name, path in piano_music.stores(archives, tmp_path).items()}
    monkeypatch.setattr(piano_music, "SCORED_S", 1.0)
    monkeypatch.setattr(piano_music, "ENDING_S", 2.0)  # songs of the test are short
    three = Store(piano_music.all_three(of["maestro"], of["asap"], of["pop"], tmp_path / "three"))
    corpus = three.manifest.corpus
    assert corpus.name == "MAESTRO v3.0.0 and ASAP and POP909"
    assert corpus.licence == "CC BY-NC-SA 4.0 (POP909: MIT)"
    assert len(three.split("validation")) == 1 < len(of["maestro"].split("validation"))
    assert "test" not in three.manifest.splits
    train, songs = three.split("train"), of["pop"].split("train")
    performances = sum(len(of["asap"].split(name)) for name in of["asap"].manifest.splits)
    first = len(train) - len(songs)
    maestro = of["maestro"].split("train")
    assert first == len(maestro) + performances
    assert train.ids[: len(maestro.ids)].tobytes() == maestro.ids.tobytes()
    assert train.unfinished == set(range(first, len(train)))
    for i in range(len(songs)):  # to the last id before the ending
        song, cut = songs[i], train[first + i]
        assert song[: len(cut)].tolist() == cut.tolist()
        until_s = three.tokenizer.seconds(song) - 2
        assert three.tokenizer.seconds(cut) <= until_s < three.tokenizer.seconds(song[: len(cut) + 1])
    monkeypatch.setattr(piano_music, "ENDING_S", 1e6)
    none = Store(piano_music.all_three(of["maestro"], of["asap"], of["pop"], tmp_path / "none"))
    assert len(none.split("train")) == first
    assert {reason for _, reason in none.manifest.dropped} == {"not longer than 1e+06 s"}


def test_one_command_makes_a_scored_bundle_and_resumes(archives, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(piano_music, "ENDING_S", 2.0)
    stages = (piano.Stage("piano", 32, 2, 2), piano.Stage("piano", 256, 1, 2, 1.0))
    monkeypatch.setattr(piano, "STAGES", {"cpu": stages})
    words = ["--archive", archives["maestro"], "--asap", archives["asap"], "--pop", archives["pop"], "--out", "made"]
    monkeypatch.setattr(sys, "argv", ["piano.py", *map(str, words), *TINY])
    piano.main()
    header = read_header(Path("made/piano.safetensors"))
    shares = json.loads(Path("made/piano-shares.json").read_text())
    assert header.notes["averaged"] == [1 - shares["chosen"], shares["chosen"]]
    assert header.corpus == "MAESTRO v3.0.0 and ASAP and POP909"
    assert header.objective["name"] == "infill"
    assert header.val_nll == json.loads(Path("made/piano-validation.json").read_text())["per_token"][0]
    assert not Path("made/piano-test.json").exists()
    trained = [path.stat().st_mtime_ns for path in sorted(Path("made").glob("stage-*/model.safetensors"))]
    capsys.readouterr()
    add_notes(Path("made/piano.safetensors"), seed_guidance=0.5)
    piano.main()
    said = capsys.readouterr().out
    assert "piano-validation.json: kept" in said
    assert "share 0.3" not in said
    assert read_header(Path("made/piano.safetensors")).seed_guidance == 0.5
    assert len(trained) == 2
    assert trained == [path.stat().st_mtime_ns for path in sorted(Path("made").glob("stage-*/model.safetensors"))]


def test_a_mistake_is_found_before_the_long_work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.zip", "b.zip"):
        Path(name).touch()
    words = ["--archive", "a.zip", "--asap", "b.zip", "--pop", "pop.zip", "--out", "made"]
    monkeypatch.setattr(sys, "argv", ["piano.py", *words])
    with pytest.raises(UserError, match=r"^pop\.zip "):
        piano.main()
    assert not Path("made").exists()
