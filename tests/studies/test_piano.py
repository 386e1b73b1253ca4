"""studies/piano.py: its sizes, its music, and one command from the archives to a scored bundle."""

import json
import zipfile
from pathlib import Path

import piano
import piano_music
import pytest
import torch
from conftest import TINY, write_tunes
from songs import write_songs
from trials import trial

from musictx.config.app import settings
from musictx.errors import UserError
from musictx.model.build import build_model
from musictx.model.header import read_header
from musictx.training.fit import build_model_config
from musictx.training.preflight import check_trainer

pytestmark = pytest.mark.usefixtures("no_curves")

CPU = ["trainer.accelerator=cpu", "trainer.compile=false", "trainer.batch_size=1", "trainer.max_steps=2"]
CPU += ["trainer.precision=bf16-mixed", "data.workers=0", "data.length=256", "data.segment=256"]


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


def test_the_piano_is_trained_on_a_gpu_and_fits_its_bundle(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for stage, (steps, decay_share) in zip(piano.STAGES, [(2400, 0.0), (2750, 1.0)], strict=True):
        config = settings("train", f"experiment={stage}", "data.path=x", "out=y")
        check_trainer(config)
        assert (config.trainer.accelerator, config.trainer.compile) == ("cuda", True)
        assert (config.data.length, config.data.segment, config.trainer.batch_size) == (2048, 2048, 32)
        assert (config.trainer.max_steps, config.trainer.decay_share) == (steps, decay_share)
        assert (config.objective, config.objective_settings["plain"]) == ("infill", 0.75)
        assert (config.model.keyboard, config.model.conv) == ("head", 4)
    config.init_from = None  # which is not there
    with torch.device("meta"):  # the shapes alone
        count = sum(p.numel() for p in build_model(build_model_config(config, 391)).parameters())
    assert 10e6 < count < 12e6  # 24 MB in float16


def test_the_training_has_asaps_performances_and_songs_without_their_endings(archives, tmp_path, monkeypatch):
    of = piano_music.stores(archives, tmp_path)
    monkeypatch.setattr(piano_music, "SCORED_S", 1.0)
    monkeypatch.setattr(piano_music, "ENDING_S", 2.0)  # songs of the test are short
    three = piano_music.all_three(**of, path=tmp_path / "three")
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
    none = piano_music.all_three(**of, path=tmp_path / "none")
    assert len(none.split("train")) == first
    assert {reason for _, reason in none.manifest.dropped} == {"not longer than 1e+06 s"}


def test_one_command_makes_a_scored_bundle_and_resumes(archives, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(piano_music, "ENDING_S", 2.0)
    words = ["--archive", archives["maestro"], "--asap", archives["asap"], "--pop", archives["pop"], "--out", "made"]
    trial(piano, *words, *TINY, *CPU)
    header = read_header(Path("made/piano.safetensors"))
    assert (header.corpus, header.objective["name"]) == ("MAESTRO v3.0.0 and ASAP and POP909", "infill")
    assert "Foscarin" in header.notes["citation"]
    assert header.val_nll == json.loads(Path("made/piano-validation.json").read_text())["per_token"][0]
    assert not Path("made/piano-test.json").exists()
    made = Path("made/piano.safetensors").read_bytes()
    capsys.readouterr()
    trial(piano, *words, *TINY, *CPU)
    again = capsys.readouterr().out
    for name in ("stores/maestro", "stores/asap", "stores/pop", "stores/all", *piano.STAGES):
        assert f"made/{name}: found, not " in again
    assert "made/piano-validation.json: found, " in again
    assert "made/piano.safetensors: found, " in again
    assert Path("made/piano.safetensors").read_bytes() == made


def test_a_mistake_is_found_before_the_long_work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.zip", "b.zip"):
        Path(name).touch()
    words = ["--archive", "a.zip", "--asap", "b.zip", "--pop", "pop.zip", "--out", "made"]
    with pytest.raises(UserError, match=r"^--pop pop\.zip "):
        trial(piano, *words)
    with pytest.raises(UserError, match=r"^out=x: "):  # the stages' own
        trial(piano, *words, "out=x")
    assert not Path("made").exists()
