"""musictx probe and musictx classify: labels of folders, and which notes decided."""

import json
import shutil

import numpy as np
import pytest
import torch
from conftest import ok
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from musictx.analysis.embedding import Embedder
from musictx.commands.classify import classify
from musictx.commands.probe import probe
from musictx.config.app import settings
from musictx.errors import UserError
from musictx.model.build import build_model, model_config
from musictx.model.bundle import save_bundle
from musictx.model.header import BundleHeader
from musictx.music.score import Score
from musictx.music.write import write_midi
from musictx.tokenizers import build_tokenizer

TOK = build_tokenizer("performance")


def write_listener(path, seed=0):
    """A model of two layers that has learned nothing."""
    torch.manual_seed(seed)
    sizes = {"vocab_size": TOK.vocab.size, "d_model": 32, "n_layers": 2, "n_heads": 2, "d_ff": 32}
    model = build_model(model_config("transformer", sizes))
    shape = {"kind": "transformer", **sizes}
    save_bundle(path, model, BundleHeader(shape, "performance", TOK.vocab.fingerprint, "none", "none", None, "0"))


def write_tune(path, lowest, seed, notes=30):
    rng = np.random.default_rng(seed)
    onset_s = np.arange(notes) * 0.2
    write_midi(Score(onset_s, onset_s + 0.15, rng.integers(lowest, lowest + 24, notes), np.full(notes, 80)), path)


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    """Ten low and ten high tunes of six seconds, of which three are broken, and what the command printed."""
    folder = tmp_path_factory.mktemp("labelled")
    write_listener(folder / "ear.safetensors")
    for seed in range(10):
        write_tune(folder / f"music/low/{seed}.mid", 30, seed)
        write_tune(folder / f"music/high/deeper/{seed}.mid", 75, 100 + seed)
    (folder / "music/low/0.mid").write_text("Dear diary")
    (folder / "music/high/deeper/0.mid").write_bytes(b"")
    write_midi(Score.empty(), folder / "music/low/1.mid")
    write_tune(folder / "music/outside.mid", 60, 0)
    words = ["path=music", "bundle=ear.safetensors", "passage_seconds=3", "passages=3"]
    done = ok(["musictx", "probe", *words, "out=labels.safetensors"], folder)
    write_tune(folder / "my.mid", 75, 999)
    return folder, words, done.stdout


GIVEN = ["midi=my.mid", "labels=labels.safetensors", "bundle=ear.safetensors"]


def test_labels_are_learned_whatever_files_are_broken(labelled):
    _, _, said = labelled
    for line in (
        "left out: low/0.mid: not a MIDI file",
        "left out: high/deeper/0.mid: the file is empty",
        "left out: low/1.mid: no passage of four notes",
        "left out: outside.mid: in no folder, so it has no label",
        "held-out accuracy 1.00 (0.77 to 1.00), macro F1 1.00, 17 files; always saying high: 0.53, macro F1 0.35",
    ):
        assert line in said
    assert "better" not in said
    rows = [line.split()[:3] for line in said.splitlines() if line.split()[:1] in (["low"], ["high"])]
    assert rows == [["high", "9", "9"], ["low", "8", "8"]]


def test_a_tune_is_classified_and_its_notes_named(labelled):
    folder, *_ = labelled
    said = ok(["musictx", "classify", *GIVEN, "out=found"], folder).stdout
    found = json.loads((folder / "found/my.json").read_text())
    assert found["label"] == "high"
    assert found["probability"]["high"] > 0.9
    assert sum(found["probability"].values()) == pytest.approx(1, abs=1e-5)
    assert "17 files" in found["held_out"]
    assert [passage["from_s"] for passage in found["passages"]] == [0.0, 1.5]
    assert len(found["notes"]) == len({(note["onset_s"], note["pitch"]) for note in found["notes"]}) > 15
    odds = [note["log_odds"] for note in found["notes"]]
    assert odds == sorted(odds, reverse=True)
    assert found["held_out"] in said
    for note in [note for note in found["notes"] if note["log_odds"] > 0][:10]:
        assert f"{note['onset_s']:.2f}" in said
        assert note["note"] in said
    assert (folder / "found/my.png").read_bytes().startswith(b"\x89PNG")


def test_music_shorter_than_a_passage_is_said(labelled, monkeypatch, capsys):
    monkeypatch.chdir(labelled[0])
    write_tune(labelled[0] / "short.mid", 75, 5, notes=6)
    classify(settings("classify", *GIVEN, "midi=short.mid", "out=short"))
    said = capsys.readouterr().out
    assert "short.mid: 1.1 s, shorter than the passages of 3 s that were learned" in said


def test_the_denser_the_music_the_fewer_readings(labelled, monkeypatch):
    folder, *_ = labelled
    monkeypatch.chdir(folder)
    read, own = list[int](), Embedder.vectors

    def vectors(self, scores, **given):
        read.append(len(scores))
        return own(self, scores, **given)

    monkeypatch.setattr(Embedder, "vectors", vectors)
    for ids, readings in ((2**18, 30), (1, 8)):
        read.clear()
        monkeypatch.setattr("musictx.analysis.attribution.MOST_READ_IDS", ids)
        classify(settings("classify", *GIVEN, "out=dense", "overwrite=true"))
        assert sum(read) == 2 + 2 + readings  # the passages themselves twice


def test_what_classify_cannot_read_is_refused(labelled, monkeypatch):
    folder, *_ = labelled
    monkeypatch.chdir(folder)
    write_listener(folder / "other.safetensors", seed=1)
    write_midi(Score.empty(), folder / "silent.mid")
    tensors = load_file(folder / "labels.safetensors")
    save_file(tensors, folder / "none.safetensors")
    with safe_open(folder / "labels.safetensors", "numpy") as file:
        about = file.metadata()
    save_file(tensors | {"scale": np.full_like(tensors["scale"], 1e-45)}, folder / "tiny.safetensors", about)
    (folder / "there").mkdir()
    (folder / "there/my.json").touch()
    for word, said in (
        ("bundle=other.safetensors", "labels.safetensors was made with another model than other.safetensors: ear"),
        ("bundle=null", "^bundle=null: labels.safetensors was made with ear.safetensors, which is not inside musictx"),
        ("labels=none.safetensors", "none.safetensors is a safetensors file, but has no labels"),
        ("labels=ear.safetensors", "ear.safetensors is a safetensors file, but has no labels"),
        ("labels=tiny.safetensors", "its tensors have impossible values"),
        ("labels=my.mid", "my.mid is damaged or no file of labels"),
        ("labels=nothing", "nothing: no such file of labels: give"),
        ("midi=nothing.mid", "nothing.mid: no such file"),
        ("midi=silent.mid", "silent.mid: no passage of four notes that the model can read"),
        ("passages=0", "passages=0: give 1 or more"),
        ("out=my.mid", "out=my.mid: a file is in its way"),
        ("out=there", "there/my.json exists already"),
    ):
        with pytest.raises(UserError, match=said):
            classify(settings("classify", *GIVEN, "out=o", word))
    assert not (folder / "o").exists()


def test_alike_files_are_grouped_and_contradictions_said(labelled, tmp_path, monkeypatch, capsys):
    folder, words, _ = labelled
    monkeypatch.chdir(tmp_path)
    shutil.copy(folder / "ear.safetensors", tmp_path)
    for seed in (2, 3, 4):
        for label in ("a", "b"):
            write_tune(tmp_path / f"music/{label}/{seed}.mid", 40, seed if label == "a" else seed + 50)
    shutil.copy(tmp_path / "music/a/2.mid", tmp_path / "music/b/same.mid")
    probe(settings("probe", *words, "out=labels.safetensors"))
    said = capsys.readouterr().out
    assert "b/same.mid is nearly the same music as a/2.mid, but has another label" in said
    for name in ("3.mid", "4.mid"):
        shutil.copy(tmp_path / "music/a/2.mid", tmp_path / "music/a" / name)
    with pytest.raises(UserError, match="all files of label a are nearly the same music"):
        probe(settings("probe", *words, "out=other.safetensors"))
    assert not (tmp_path / "other.safetensors").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["path=none"], "^path=none: it does not exist"),
        (
            ["path=empty"],
            "no .mid, .* .abc file in empty or below it",
        ),
        (["path=one"], "one has one label, low: give a folder with at least two folders"),
        (["path=flat"], "flat has no folder with MIDI files"),
        (["path=few"], "few: label high has 1 file: give at least 2 of each label"),
        (["path=silent"], "silent: label high has 1 file with music"),
        (["path=two", "passages=0"], "^passages=0: give 1 or more"),
        (["path=two", "passage_seconds=nan"], "^passage_seconds=nan: give 1 to 600"),
        (["path=two", "layer=2"], "^layer=2: give 1 to 1"),
        (["path=two", "bundle=harmoniser"], "^bundle=harmoniser: "),
        (["path=two", "out=labels.txt"], "^out=labels.txt: give a name that ends in .safetensors"),
        (["path=two", "out=ear.safetensors"], "ear.safetensors exists already"),
        (["path=two", "out=ear.safetensors/l.safetensors"], "^out=ear.safetensors/l.safetensors: a file is in its way"),
    ],
)
def test_mistakes_are_one_line(labelled, tmp_path, monkeypatch, words, said):
    folder, *_ = labelled
    monkeypatch.chdir(tmp_path)
    shutil.copy(folder / "ear.safetensors", tmp_path)
    (tmp_path / "empty").mkdir()
    low = {"low/2": "low/2", "low/3": "low/3"}
    few, more = low | {"high/2": "high/deeper/2"}, {"high/3": "high/deeper/3"}
    folders = {"one": low, "flat": {"2": "low/2"}, "few": few, "silent": few | {"high/3": "low/1"}, "two": few | more}
    for to, source in folders.get(words[0].removeprefix("path="), {}).items():
        file = tmp_path / words[0].removeprefix("path=") / f"{to}.mid"
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(folder / f"music/{source}.mid", file)
    with pytest.raises(UserError, match=said):
        probe(settings("probe", "bundle=ear.safetensors", "out=l.safetensors", *words))
    assert not (tmp_path / "l.safetensors").exists()
