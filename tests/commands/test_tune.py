"""musictx tune: a model learns a person's music, and says whether it did."""

import json

import numpy as np
import pytest
from conftest import ok, refused, run
from safetensors import safe_open

from musictx.analysis.bootstrap import Interval
from musictx.commands.tune import PASSAGE, Gain, cut, held_out
from musictx.data.store import Split
from musictx.errors import StoreError
from musictx.music.score import Score
from musictx.music.write import write_midi


def write_clockwork(path, seed, lowest=60, step_s=0.2, notes=350):
    """Five pitches in any order, all as long and as loud."""
    onset_s = np.arange(notes) * step_s
    pitch = lowest + np.random.default_rng(seed).choice([0, 2, 4, 7, 9], notes)
    write_midi(Score(onset_s, onset_s + 0.15, pitch, np.full(notes, 80)), path)


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """A model of slower tunes, an octave below."""
    folder = tmp_path_factory.mktemp("learned")
    for n in range(8):
        write_clockwork(folder / f"slow/tune {n}.mid", 100 + n, 48, 0.3)
    ok(["musictx", "prepare", "folder", "path=slow", "out=store"], folder)
    sizes = ["model.d_model=32", "model.n_layers=1", "model.n_heads=2", "model.d_ff=64", "model.dropout=0"]
    steps = ["data.length=128", "trainer.max_steps=80", "trainer.lr=1e-2", "trainer.validate_every=40"]
    ok(["musictx", "train", "data.path=store", "out=run", *sizes, *steps], folder)
    return folder / "run"


@pytest.fixture(scope="module")
def tuned(learned, tmp_path_factory):
    """Twelve tunes and three broken files, and what the command printed."""
    folder = tmp_path_factory.mktemp("tuned")
    for n in range(12):
        write_clockwork(folder / f"mine/tune {n}.mid", n)
    (folder / "mine/diary.mid").write_text("Dear diary")
    (folder / "mine/empty.mid").write_bytes(b"")
    write_midi(Score.empty(), folder / "mine/silent.mid")
    return folder, ok(["musictx", "tune", "path=mine", f"bundle={learned}", "out=out", "max_steps=30"], folder).stdout


def test_a_model_learns_and_says_so(tuned):
    folder, said = tuned
    found = json.loads((folder / "out/gain.json").read_text())
    assert found["after"] < found["before"] - 0.5
    assert max(found["of_pieces"]) < -0.5
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


def test_a_tuned_model_keeps_both_origins_and_is_finished_but_not_replaced(tuned, learned):
    folder, _ = tuned
    with safe_open(folder / "out/model.safetensors", "pt") as file:
        header = json.loads(file.metadata()["musictx"])
        names = list(file.keys())
    assert header["corpus"] == "slow + mine"
    assert not any("parametrizations" in name for name in names)
    words = ["musictx", "tune", "path=mine", f"bundle={learned}", "out=out", "max_steps=30"]
    assert "out/model.safetensors exists already" in refused(words, folder)
    trained = (folder / "out/run/metrics.csv").stat().st_mtime_ns
    model = (folder / "out/model.safetensors").read_bytes()
    for name in ("model.safetensors", "gain.json", "music/held-out-2.mid"):
        (folder / "out" / name).unlink()
    ok(["musictx", "tune", "path=mine", f"bundle={learned}", "out=out", "max_steps=30"], folder)
    assert (folder / "out/model.safetensors").read_bytes() == model
    assert (folder / "out/music/held-out-2.mid").exists()
    assert (folder / "out/run/metrics.csv").stat().st_mtime_ns == trained


def test_wrong_input_is_one_line_and_files_of_a_person_stay(tmp_path, world, voices):
    for n in range(3):
        write_clockwork(tmp_path / f"few/{n}.mid", n)
    (tmp_path / "other").mkdir()
    (tmp_path / "other/held-out.mid").write_text("mine")
    mine = ["musictx", "tune", "path=few", f"bundle={world.bundle}"]
    assert "held-out.mid exists already" in refused([*mine, "out=other"], tmp_path)
    assert "error: out=few/deeper: " in refused([*mine, "out=few/deeper"], tmp_path)
    tune = ["musictx", "tune", "out=out"]
    few = run([*tune, "path=few", f"bundle={world.bundle}"], tmp_path)
    assert few.returncode == 2
    assert few.stderr.splitlines()[-1].startswith("error: too few ")
    assert "encoder_decoder " in refused([*tune, "path=few", f"bundle={voices}"], tmp_path)
    assert "no-such" in refused([*tune, "path=no-such", f"bundle={world.bundle}"], tmp_path)
    (tmp_path / "out.txt").write_text("mine")
    assert "out=out.txt/deeper: " in refused(["musictx", "tune", "path=few", "out=out.txt/deeper"], tmp_path)
    assert not (tmp_path / "out/run").exists()


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
    passages, piece = cut(split)
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
