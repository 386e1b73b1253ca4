"""musictx tune: a model learns a person's music, and says whether it did."""

import json
import re
import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import ok, refused, signalled
from untrained import write_score_model

from musictx.analysis.bootstrap import Interval
from musictx.analysis.likelihood import PASSAGE, Gain, passages_of
from musictx.commands.tune import held_out, tune
from musictx.config.app import settings
from musictx.data.store import Split
from musictx.errors import StoreError, UserError
from musictx.model.build import build_model, model_config
from musictx.model.bundle import save_bundle
from musictx.model.header import BundleHeader, read_header
from musictx.music.notation.midi import from_midi, to_midi
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Note, Part
from musictx.music.score import Score
from musictx.music.write import write_midi
from musictx.tokenizers import build_tokenizer


def write_clockwork(path, seed, notes=350):
    """Five pitches in any order, all as long and as loud."""
    onset_s = np.arange(notes) * 0.2
    pitch = 60 + np.random.default_rng(seed).choice([0, 2, 4, 7, 9], notes)
    write_midi(Score(onset_s, onset_s + 0.15, pitch, np.full(notes, 80)), path)


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """Nine tunes and three broken files, the words of the command, and what it printed of a model that knew nothing."""
    folder = tmp_path_factory.mktemp("tuned")
    for n in range(9):
        write_clockwork(folder / f"mine/tune {n}.mid", n)
    (folder / "mine/diary.mid").write_text("Dear diary")
    (folder / "mine/empty.mid").write_bytes(b"")
    write_midi(Score.empty(), folder / "mine/silent.mid")
    torch.manual_seed(0)
    vocab = build_tokenizer("performance").vocab
    sizes = {"vocab_size": vocab.size, "d_model": 32, "n_layers": 1, "n_heads": 2, "d_ff": 64, "dropout": 0.0}
    header = BundleHeader({"kind": "transformer", **sizes}, "performance", vocab.fingerprint, "slow", "none", None, "0")
    save_bundle(folder / "new.safetensors", build_model(model_config("transformer", sizes)), header)
    words = ["musictx", "tune", "path=mine", "bundle=new.safetensors", "out=out", "max_steps=30"]
    return folder, words, ok(words, folder).stdout


def test_a_model_learns_and_says_so(tuned):
    folder, _, said = tuned
    found = json.loads((folder / "out/gain.json").read_text())
    assert found["after"] < found["before"] - 0.05
    assert max(found["of_pieces"]) < -0.05
    assert len(found["held_out"]) == len(found["of_pieces"]) == 2
    assert "better on each of these pieces" in said
    for line in (
        "left out: diary.mid: not a MIDI file",
        "left out: empty.mid: the file is empty",
        "left out: silent.mid: no notes",
    ):
        assert line in said
    assert sorted(path.name for path in (folder / "out/music").iterdir()) == [
        *(f"held-out-{n}.mid" for n in (1, 2, 3)),
        "held-out.png",
    ]


def test_a_tuned_model_keeps_both_origins_and_is_finished_but_not_replaced(tuned):
    folder, words, _ = tuned
    assert read_header(folder / "out/model.safetensors").corpus == "slow + mine"
    assert "out/model.safetensors exists already" in refused(words, folder)
    trained = (folder / "out/run/metrics.csv").stat().st_mtime_ns
    model = (folder / "out/model.safetensors").read_bytes()
    for name in ("model.safetensors", "gain.json", "music/held-out-2.mid"):
        (folder / "out" / name).unlink()
    ok(words, folder)
    assert (folder / "out/model.safetensors").read_bytes() == model
    assert (folder / "out/music/held-out-2.mid").exists()
    assert (folder / "out/run/metrics.csv").stat().st_mtime_ns == trained


def test_ctrl_c_says_where_the_model_is_and_the_same_command_resumes(tuned, monkeypatch, capsys):
    folder, words, _ = tuned
    monkeypatch.chdir(folder)
    config = settings("tune", *words[2:], "out=cut")
    with signalled(12, signal.SIGINT), pytest.raises(KeyboardInterrupt):
        tune(config)
    (model,) = re.findall(r"^(\S+): the model so far", capsys.readouterr().out, re.MULTILINE)
    assert read_header(Path(model)).corpus == "slow + mine"
    assert not (folder / "cut/model.safetensors").exists()
    assert tune(config).is_file()
    assert "resuming" in capsys.readouterr().out


def test_ctrl_c_after_the_training_says_so_too(tuned, monkeypatch, capsys):
    folder, words, _ = tuned
    monkeypatch.chdir(folder)
    config = settings("tune", *words[2:], "out=late")

    def stopped(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as during:
        during.setattr("musictx.commands.tune.generate", stopped)
        with pytest.raises(KeyboardInterrupt):
            tune(config)
    (model,) = re.findall(r"^(\S+): the model so far; late/model.safetensors comes", capsys.readouterr().out, re.M)
    assert read_header(Path(model)).corpus == "slow + mine"
    trained = (folder / "late/run/metrics.csv").stat().st_mtime_ns
    assert tune(config).is_file()
    assert (folder / "late/run/metrics.csv").stat().st_mtime_ns == trained


def test_wrong_input_is_one_line_and_files_of_a_person_stay(tmp_path, world, voices, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for n in range(3):
        write_clockwork(tmp_path / f"few/{n}.mid", n)
    (tmp_path / "other").mkdir()
    (tmp_path / "other/held-out.mid").write_text("mine")
    (tmp_path / "out.txt").write_text("mine")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/diary.md").write_text("mine")
    for words, said in (
        (["out=other"], "held-out.mid exists already"),
        (["out=notes"], "^out=notes: it is not the folder of a tuned model .*diary.md"),
        (["out=notes", "overwrite=true"], "^out=notes: it is not the folder of a tuned model .*diary.md"),
        (["out=few/deeper"], "^out=few/deeper: "),
        ([], "^too few "),
        ([f"bundle={voices}"], "encoder_decoder "),
        (["path=no-such"], "no-such"),
        (["out=out.txt/deeper"], "^out=out.txt/deeper: "),
    ):
        with pytest.raises(UserError, match=said):
            tune(settings("tune", "path=few", f"bundle={world.bundle}", "out=out", *words))
    assert not (tmp_path / "out/run").exists()
    assert [path.name for path in (tmp_path / "notes").iterdir()] == ["diary.md"]


def test_two_pieces_measure_and_copies_stay_together():
    keys = [f"piece {n % 20}" for n in range(40)]
    splits = held_out(keys, random_seed=0)
    assert len({key for key, split in zip(keys, splits, strict=True) if split == "test"}) == 2
    assert len({key for key, split in zip(keys, splits, strict=True) if split == "validation"}) == 2
    assert len(set(zip(keys, splits, strict=True))) == 20
    assert splits != held_out(keys, random_seed=1)
    assert sorted(held_out(list("abcd"), 0)) == ["test", "test", "train", "validation"]
    with pytest.raises(StoreError):
        held_out(list("abcc"), 0)


def test_passages_cover_each_piece():
    split = Split(np.arange(700, dtype=np.uint16), np.array([0, 200, 700]), ["one", "two"])
    passages, piece = passages_of(split)
    assert [len(each) for each in passages] == [200, PASSAGE, 500 - PASSAGE]
    assert piece.tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("low", "high", "of_pieces", "passages", "better"),
    [
        (-0.3, -0.1, [-0.2, -0.2], 10, True),
        (-0.3, -0.1, [-0.2, -0.2], 9, False),
        (-0.3, 0.01, [-0.2, -0.1], 99, False),
        (-0.3, -0.1, [-0.4, 0.01], 99, False),
    ],
)
def test_better_needs_the_interval_every_piece_and_enough_passages(low, high, of_pieces, passages, better):
    assert Gain(2.0, 1.8, Interval(-0.2, low, high), of_pieces, passages).is_better is better


def test_a_model_of_scores_learns_scores_and_goes_on_with_one(tmp_path):
    (tmp_path / "mine").mkdir()
    for n in range(5):
        line = tuple(Note(24 * k, 24, 60 + (k * k + n * k) % 13) for k in range(40))
        song = Notation((Part("Voice", 73, line),), tuple(Bar(96 * k, 4, 4) for k in range(10)), 960)
        (tmp_path / "mine" / f"{n}.mid").write_bytes(to_midi(song))
    write_score_model(tmp_path / "score.safetensors", fills=True)
    out = ok(["musictx", "tune", "mine", "bundle=score.safetensors", "out=tuned", "max_steps=2"], tmp_path).stdout
    assert "tokenizer score" in out
    seed, new = (
        from_midi((tmp_path / f"tuned/{name}.mid").read_bytes())[0] for name in ("held-out", "music/held-out-1")
    )
    assert len(new.bars) == len(seed.bars) + 8
