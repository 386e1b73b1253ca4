"""objective=classify and classify_notes, from folders to labels, as a person gives the commands."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from conftest import TINY, ok, refused
from runs import val_nll

from musictx.model.bundle import load_bundle, read_header, save_bundle
from musictx.music.read import read_bytes, read_tracks
from musictx.music.score import Score
from musictx.music.write import write_midi
from musictx.training.metrics import read_metrics

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
    said = ok(["musictx", "train", "objective=classify_notes", "data.path=music", "out=run", *QUICK], folder).stdout
    return folder, said


def test_labels_of_pieces_are_learned(pieces):
    folder, said = pieces
    for line in (
        "left out: low/broken.mid: not a MIDI file",
        "left out: outside.mid: in no folder, so it has no label",
        "held-out accuracy 1.00 (",
        "classify music with it: musictx classify labels=run/model.safetensors midi=my.mid",
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
    for labels, out in (("run", "one"), ("run/model.safetensors", "two")):
        said = ok(["musictx", "classify", "midi=my.mid", f"labels={labels}", f"out={out}"], folder).stdout
        found = json.loads((folder / out / "my.json").read_text())
        assert found["label"] == "high"
        assert found["probability"]["high"] > 0.9
        assert found["held_out"] in said
        assert len(found["passages"]) > 1
        assert len(found["notes"]) > 15
        assert (folder / out / "my.png").read_bytes().startswith(b"\x89PNG")


def test_labels_of_notes_are_learned_and_become_tracks(songs):
    folder, said = songs
    assert "left out: nameless.mid: it has no two tracks with names and notes" in said
    assert "held-out accuracy 1.00 (1.00 to 1.00), macro F1 1.00, 120 notes of 2 files" in said
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


def test_a_bundle_can_be_the_beginning_whatever_ids_it_has(pieces, world, tmp_path):
    folder, _ = pieces
    words = ["musictx", "train", "objective=classify", f"data.path={folder}/music", "trainer.max_steps=2"]
    few = [word for word in QUICK if not word.startswith(("model.", "trainer.max_steps"))]
    for bundle, out in ((world.bundle, "one"), (folder / "run", "two")):
        ok([*words, *few, f"init_from={bundle}", f"out={out}"], tmp_path)
        assert read_header(tmp_path / out / "model.safetensors").objective["labels"] == ["high", "low"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["data.path=none"], "data.path=none: it does not exist"),
        (["data.path=one"], "one has one label, low: give a folder with at least two folders"),
        (["data.path=few"], "few: label high has 2 files with music: give at least 3 of each label"),
        (["data.path=same"], "the files of label high are nearly the same music as 2 of them"),
        (["data.path=few", "tokenizer=chorale", "data=chorales", "data.path=few"], "its ids do not strike each note"),
        (["data.path=few", "objective=classify_notes"], "few has no file with two named tracks"),
        (["data.path=few", "data.carry=true"], "objective=classify needs whole windows"),
    ],
)
def test_mistakes_of_training_are_one_line(pieces, tmp_path, words, said):
    low, high = pieces[0] / "music/low", pieces[0] / "music/high/deeper"
    for name, (of_low, of_high) in {"one": ("123", ""), "few": ("123", "12"), "same": ("123", "122")}.items():
        for n, seed in enumerate(of_low):
            (tmp_path / name / "low").mkdir(parents=True, exist_ok=True)
            shutil.copy(low / f"{seed}.mid", tmp_path / name / f"low/{n}.mid")
        for n, seed in enumerate(of_high):
            (tmp_path / name / "high").mkdir(parents=True, exist_ok=True)
            shutil.copy(high / f"{seed}.mid", tmp_path / name / f"high/{n}.mid")
    assert said in refused(["musictx", "train", "objective=classify", "out=run", *QUICK, *words], tmp_path)
    assert not (tmp_path / "run").exists()


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
    learned, header = load_bundle(model)
    for changes in (
        {"labels": ["high"]},
        {"labels": ["high", "high"]},
        {"labels": "hi"},
        {"seconds": float("nan")},
        {"seconds": None},
        {"length": "64"},
    ):
        changed = replace(header, objective=header.objective | changes)
        save_bundle(tmp_path / "bad.safetensors", learned, changed)
        assert "what its header says of labels is damaged" in refused([*given, "labels=bad.safetensors"], tmp_path)
    assert not (tmp_path / "o").exists()
