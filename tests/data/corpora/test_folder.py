from dataclasses import replace

import pytest

from musictx.config.prepare import PrepareFolderConfig, SelectConfig
from musictx.config.train import TokenizerConfig
from musictx.data.corpora.folder import prepare_folder
from musictx.data.prepare import cause
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
    ("reason", "clause"),
    [
        ("no notes", "no notes"),
        ("not a MIDI file: it begins with b'not: a (", "not a MIDI file"),
        ("it cannot be read as notation (no element found: line 1, column 48)", "it cannot be read as notation"),
        ("it cannot be unpacked (File is not a zip file)", "it cannot be unpacked"),
    ],
)
def test_files_are_counted_by_a_whole_clause(reason, clause):
    assert cause(reason) == clause


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"validation_fraction": 0.6, "test_fraction": 0.6}, "validation_fraction=0.6: .*test_fraction=0.6$"),
        ({"validation_fraction": 0.0}, "validation_fraction=0.0: .*above 0 "),
        ({"select": SelectConfig(tracks="all")}, "tracks=all: .*merge, piano"),
        ({"select": SelectConfig(programs=[0, 128])}, "programs=128: "),
        ({"workers": 0}, "workers=0: .*1 to "),
        ({"file_seconds": 1e-9}, "file_seconds=1e-09: .*from 0.1"),
    ],
)
def test_what_cannot_work_is_refused_and_leaves_nothing(folder, tmp_path, changes, message):
    with pytest.raises(ConfigError, match=f"^{message}"):
        prepare(folder, tmp_path / "store", **changes)
    assert [p.name for p in tmp_path.iterdir()] == ["in"]


def test_a_split_of_ones_own_is_by_folder(folder, tmp_path):
    for k, name in enumerate(("a", "a/b", "test", "validation")):
        write_midi(tune(70 + k), folder / name / "x.mid")
    splits = prepare(folder, tmp_path / "store", validation="a/", test="test").splits
    assert splits["validation"].pieces == ["a/b/x.mid", "a/x.mid"]
    assert splits["test"].pieces == ["test/x.mid"]
    assert len(splits["train"].pieces) == 8
    splits = prepare(folder, tmp_path / "other", validation="validation").splits
    assert [len(splits[name].pieces) for name in ("train", "validation", "test")] == [10, 1, 0]
    for wrong, field in (
        ({"validation": "nowhere"}, "validation=nowhere: no MIDI file"),
        ({"validation": "a", "test": "a/b"}, "test=a/b: .* validation=a too"),
        ({"validation": "."}, "path=.*: all its files are held out"),
    ):
        with pytest.raises(ConfigError, match=field):
            prepare(folder, tmp_path / "none", **wrong)
