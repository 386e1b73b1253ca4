"""objective=classify and classify_notes, from folders to labels, as a person gives the commands."""

import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
from conftest import TINY, ok, refused
from runs import fit, val_nll

from musictx.analysis.trained_labels import as_probe
from musictx.config.app import settings
from musictx.config.fields import keys_of
from musictx.errors import BundleError, ConfigError, UserError
from musictx.model.header import read_header
from musictx.music.read import read_bytes, read_tracks
from musictx.music.score import Score
from musictx.music.write import write_midi
from musictx.training.labelled import labelled_store
from musictx.training.metrics import read_metrics

SHUFFLED = np.random.default_rng(0).permutation(40)

QUICK = [
    *TINY,
    *("data.length=64", "trainer.batch_size=8", "trainer.max_steps=30", "trainer.warmup_steps=5", "trainer.lr=0.02"),
    *("trainer.validate_every=10", "trainer.progress_bar=false", "trainer.sample_every=null", "model.dropout=0"),
]


def tune(lowest, seed, notes=30, program=0):
    rng = np.random.default_rng(seed)
    onset_s = np.arange(notes) * 0.2
    return Score(onset_s, onset_s + 0.15, rng.integers(lowest, lowest + 24, notes), np.full(notes, 80), program=program)


def duet(seed):
    """A low part and a high one, which never strike one key."""
    return Score.merge([tune(30, seed), tune(70, seed + 100, program=1)])


@pytest.fixture(scope="module")
def pieces(tmp_path_factory):
    """A run that has learned high from low, beside a damaged file and one outside all folders."""
    folder = tmp_path_factory.mktemp("pieces")
    for seed in range(7):
        write_midi(tune(30, seed), folder / f"music/low/{seed}.mid")
        write_midi(tune(75, 100 + seed), folder / f"music/high/deeper/{seed}.mid")
    write_midi(tune(60, 0), folder / "music/outside.mid")
    (folder / "music/low/broken.mid").write_text("Dear diary")
    write_midi(tune(75, 999), folder / "my.mid")
    said = ok(["musictx", "train", "objective=classify", "data.path=music", "out=run", *QUICK], folder).stdout
    return folder, said


@pytest.fixture(scope="module")
def songs(tmp_path_factory):
    """A run that has learned the two tracks of songs."""
    folder = tmp_path_factory.mktemp("songs")
    for seed in range(6):
        write_midi(duet(seed), folder / f"music/{seed}.mid", names=["BASS", "TUNE"])
    write_midi(tune(60, 5), folder / "music/nameless.mid")
    write_midi(duet(6), folder / "music/other.mid", names=["BASS", "Stray"])
    said = ok(["musictx", "train", "objective=classify_notes", "data.path=music", "out=run", *QUICK], folder).stdout
    return folder, said


def test_labels_of_pieces_are_learned(pieces):
    folder, said = pieces
    for line in (
        "left out: low/broken.mid: not a MIDI file",
        "left out: outside.mid: in no folder, so it has no label",
        "held-out accuracy 1.00 (",
        "musictx classify my.mid labels=run/model.safetensors",
    ):
        assert line in said
    rows = [row for row in read_metrics(folder / "run/metrics.csv") if "val/nll" in row]
    assert [float(row["val/accuracy"]) for row in rows][-1] == 1.0
    header = read_header(folder / "run/model.safetensors")
    assert val_nll(folder / "run/model.safetensors") < 0.1  # 0.69 by chance
    assert header.objective["labels"] == ["high", "low"]
    assert header.objective["name"] == "classify"
    assert header.objective["length"] == 64
    assert header.notes["held_out"] in said


def test_a_trained_model_classifies_as_a_probe_does(pieces):
    folder, _ = pieces
    said = ok(["musictx", "classify", "midi=my.mid", "labels=run", "out=one"], folder).stdout
    found = json.loads((folder / "one/my.json").read_text())
    assert found["label"] == "high"
    assert found["probability"]["high"] > 0.9
    assert found["held_out"] in said
    assert len(found["passages"]) > 1
    assert len(found["notes"]) > 15
    assert (folder / "one/my.png").read_bytes().startswith(b"\x89PNG")


def test_labels_of_notes_are_learned_and_become_tracks(songs):
    folder, said = songs
    assert "left out: nameless.mid: it has no two tracks with names and notes" in said
    assert "left out: tracks in fewer than 3 files: Stray" in said
    assert "held-out accuracy 1.00 (0.20 to 1.00), macro F1 1.00, 120 notes of 2 files" in said
    assert "this is not surely better than always saying BASS, so give more files" in said
    header = read_header(folder / "run/model.safetensors")
    assert val_nll(folder / "run/model.safetensors") < 0.1
    assert header.objective["labels"] == ["BASS", "TUNE"]
    write_midi(duet(50), folder / "my.mid")
    said = ok(["musictx", "classify", "midi=my.mid", "labels=run", "out=parts"], folder).stdout
    assert "parts/my-tracks.mid: a track for each label" in said
    tracks = {track.name: track.score for track in read_tracks(read_bytes(folder / "parts/my-tracks.mid"), "my").tracks}
    assert set(tracks) == {"BASS", "TUNE"}
    assert tracks["BASS"].pitch.max() < 60 < tracks["TUNE"].pitch.min()
    assert {name: len(score) for name, score in tracks.items()} == {"BASS": 30, "TUNE": 30}
    notes = json.loads((folder / "parts/my.json").read_text())["notes"]
    assert len(notes) == 60
    assert {(note["pitch"] > 60, note["label"]) for note in notes} == {(False, "BASS"), (True, "TUNE")}
    assert all(note["probability"] > 0.5 for note in notes)


def config_of(path, *words):
    return settings("train", "objective=classify", f"data.path={path}", "out=run", *QUICK, *words)


def test_the_splits_share_no_music_and_each_has_all_labels(tmp_path):
    for label, lowest in (("low", 30), ("middle", 55), ("high", 80)):
        for seed in range(3):
            write_midi(tune(lowest, seed + lowest), tmp_path / f"music/{label}/{seed}.mid")
        twin = tune(lowest, lowest)  # of the file 0
        write_midi(replace(twin, velocity=twin.velocity + 1), tmp_path / f"music/{label}/twin.mid")
    store = labelled_store(config_of(tmp_path / "music"), tmp_path / "store")
    names = {name: store.split(name).names for name in ("train", "validation", "test")}
    assert sorted(file for files in names.values() for file in files) == sorted(
        f"{label}/{file}.mid" for label in ("low", "middle", "high") for file in (0, 1, 2, "twin")
    )
    for files in names.values():
        assert {file.split("/")[0] for file in files} == {"low", "middle", "high"}
        for label in ("low", "middle", "high"):
            assert (f"{label}/0.mid" in files) == (f"{label}/twin.mid" in files)


def test_labels_without_a_reason_are_not_known_of_held_out_files(tmp_path):
    """Each file has a key for itself, so that its label could be learned by heart."""
    for n in range(40):
        own = np.random.default_rng(n).random(30) < 0.7
        score = tune(72, n)
        own_key = replace(score, pitch=np.where(own, 30 + n, score.pitch))
        write_midi(own_key, tmp_path / f"music/{'ab'[int(SHUFFLED[n]) % 2]}/{n}.mid")
    words = ("trainer.max_steps=40", "data.transpose=0", "data.stretch=[1.0]", f"out={tmp_path}/run")
    held_out = read_header(fit(config_of(tmp_path / "music", *words))).notes["held_out"]
    assert "8 files" in held_out
    assert "this is not" in held_out


def test_a_bundle_that_learned_other_files_is_no_beginning(pieces, tmp_path):
    shutil.copytree(pieces[0] / "music", tmp_path / "music")
    write_midi(tune(30, 50), tmp_path / "music/low/more.mid")
    with pytest.raises(ConfigError, match="it learned labels of other files, some of which may be held out now"):
        labelled_store(config_of(tmp_path / "music", f"init_from={pieces[0]}/run"), tmp_path / "store")


def test_a_bundle_can_be_the_beginning_whatever_ids_it_has(pieces, world, tmp_path):
    folder, _ = pieces
    for bundle, out in ((world.bundle, "one"), (folder / "run", "two")):
        words = ["trainer.max_steps=1", f"init_from={bundle}", f"out={tmp_path / out}"]
        assert read_header(fit(config_of(folder / "music", *words))).objective["labels"] == ["high", "low"]


@pytest.mark.parametrize(
    ("of_low", "of_high", "words", "said"),
    [
        ("", "", [], "data.path=.*: it does not exist"),
        ("123", "", [], "has one label, low: give a folder with at least two folders"),
        ("123", "12", [], "label high has 2 files: give at least 3 of each label"),
        ("123", "122", [], "the files of label high are nearly the same music as 2 of them"),
        ("123", "123", ["tokenizer=chorale"], "its ids do not strike each note"),
        ("123", "123", ["objective=classify_notes"], "has no file with two named tracks"),
    ],
)
def test_mistakes_of_training_are_one_line(pieces, tmp_path, of_low, of_high, words, said):
    for label, seeds in (("low", of_low), ("high/deeper", of_high)):
        for n, seed in enumerate(seeds):
            (tmp_path / "music" / label).mkdir(parents=True, exist_ok=True)
            shutil.copy(pieces[0] / f"music/{label}/{seed}.mid", tmp_path / f"music/{label}/{n}.mid")
    with pytest.raises(UserError) as caught:
        labelled_store(config_of(tmp_path / "music", *words), tmp_path / "store")
    assert re.search(said, caught.value.line(keys_of("train")))


def test_mistakes_with_a_trained_model_are_one_line(pieces, world, tmp_path):
    folder, _ = pieces
    model = folder / "run/model.safetensors"
    given = ["musictx", "classify", f"midi={folder}/my.mid", "out=o"]
    assert "run is a whole model: leave it out" in refused([*given, f"labels={folder}/run", "bundle=piano"], tmp_path)
    assert "a safetensors file, but has no labels" in refused([*given, f"labels={world.bundle}"], tmp_path)
    line = refused(["musictx", "generate", f"bundle={model}", f"seed_midi={folder}/my.mid", "out=new"], tmp_path)
    assert "was trained for objective classify, and cannot continue music" in line
    line = refused(["musictx", "evaluate", f"bundle={model}", f"data.path={world.store}"], tmp_path)
    assert "none of its tokens" in line
    header = read_header(model)
    for changes in (
        {"labels": ["high"]},
        {"labels": ["high", "high"]},
        {"labels": "hi"},
        {"seconds": float("nan")},
        {"seconds": None},
        {"length": "64"},
        {"length": 10**12},
        {"labels": [str(n) for n in range(60_000)], "added": [["LABEL", 0, 59_999]]},
    ):
        with pytest.raises(BundleError, match="what its header says of labels is damaged"):
            as_probe(replace(header, objective=header.objective | changes), model)
    assert not (tmp_path / "o").exists()
