import json
from dataclasses import replace

import pytest
from strategies import SHARED_DATA, part_of

from musictx.config.prepare import PrepareFolderConfig, SelectConfig
from musictx.config.train import TokenizerConfig
from musictx.data.corpora.folder import prepare_folder
from musictx.data.store import Store
from musictx.errors import ConfigError
from musictx.music.score import Score
from musictx.music.write import write_midi


def tune(root_pitch, shift=0):
    steps = [0, 4, 7, 12, root_pitch % 7, 2, 9, root_pitch % 5, 11, root_pitch % 3]
    return Score(range(10), range(1, 11), [root_pitch + s + shift for s in steps], [80] * 10)


@pytest.fixture
def folder(tmp_path):
    for k in range(6):
        write_midi(tune(50 + k), tmp_path / "in" / f"{k}.mid")
    write_midi(tune(50, shift=3), tmp_path / "in" / "deep" / "0 in another key.MID")
    (tmp_path / "in" / "notes.txt").write_text("words")
    (tmp_path / "in" / "broken.midi").write_text("not music")
    write_midi(Score.empty(), tmp_path / "in" / "silent.kar")
    return tmp_path / "in"


def prepare(folder, out, **changes):
    usual = PrepareFolderConfig(
        path=str(folder),
        out=str(out),
        tokenizer=TokenizerConfig("performance"),
        licence="mine",
        validation_fraction=0.2,
        test_fraction=0.2,
        random_seed=1,
        workers=1,
    )
    return prepare_folder(replace(usual, **changes))


def test_what_is_left_out_is_listed_and_copies_stay_together(folder, tmp_path):
    manifest = prepare(folder, tmp_path / "store")
    dropped = dict(manifest.dropped)
    assert dropped["silent.kar"] == "no notes"
    assert dropped["notes.txt"] == "another kind of file: not named .mid, .midi, .kar, .rmi"
    assert dropped["broken.midi"].startswith("not a MIDI file: it begins with b'not ")
    assert manifest.extra == {
        "files": 10,
        "kept": 7,
        "dropped_by_reason": {"not a MIDI file": 1, "another kind of file": 1, "no notes": 1},
        "near_duplicates": [["0.mid", "deep/0 in another key.MID"]],
        "near_duplicates_across_splits": 0,
        "seed": 1,
    }
    sides = [s for s, info in manifest.splits.items() if {"0.mid", "deep/0 in another key.MID"} & set(info.pieces)]
    assert len(sides) == 1
    assert sum(len(info.pieces) for info in manifest.splits.values()) == 7
    assert manifest.corpus.name == "in"
    assert Store(tmp_path / "store").manifest == manifest
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in", "store"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"validation_fraction": 0.6, "test_fraction": 0.6}, "validation_fraction=0.6: .*test_fraction=0.6 "),
        ({"validation_fraction": float("nan")}, "validation_fraction=nan: "),
        ({"validation_fraction": 0.0}, "validation_fraction=0.0: .*above 0$"),
        ({"random_seed": -1}, "random_seed=-1: give 0 or more"),
        ({"select": SelectConfig(tracks="all")}, "tracks=all: .*merge, piano"),
        ({"select": SelectConfig(programs=[0, 128])}, "programs=128: "),
        ({"scheduler": "tcp://127.0.0.1:9"}, "scheduler=.*not answer"),
        ({"scheduler": "nonsense://x"}, "scheduler=.*Dask address"),
        ({"workers": 0}, "workers=0: .*1 to "),
        ({"file_seconds": 1e-9}, "file_seconds=1e-09: .*from 0.1"),
        ({"memory_mb": 0}, "memory_mb=0: .*from 1 "),
        ({"file_mb": float("nan")}, "file_mb=nan: .*from 0.001"),
    ],
)
def test_what_cannot_work_is_refused_and_leaves_nothing(folder, tmp_path, monkeypatch, changes, message):
    monkeypatch.setattr("musictx.data.parallel.cluster.ANSWER_S", 0.5)
    with pytest.raises(ConfigError, match=f"^{message}"):
        prepare(folder, tmp_path / "store", **changes)
    assert [p.name for p in tmp_path.iterdir()] == ["in"]


@pytest.mark.skipif(not (SHARED_DATA / "odd-midi.zip").is_file(), reason="the corpus is not on this machine")
def test_odd_files_are_kept_or_listed_with_a_reason(tmp_path):
    """A fifth of them; tests/music/test_odd_files.py reads all."""
    part = part_of(SHARED_DATA / "odd-midi.zip", tmp_path / "odd.zip", 5)
    manifest = prepare(part, tmp_path / "store", workers=2)
    assert (manifest.extra["files"], manifest.extra["kept"], len(manifest.dropped)) == (110, 91, 19)
    assert manifest.extra["dropped_by_reason"] == {
        "not a MIDI file": 8,
        "damaged MIDI file": 5,
        "no notes": 4,
        "the file is empty": 1,
        "another kind of file": 1,
    }
    assert "Traceback" not in json.dumps(manifest.dropped)
