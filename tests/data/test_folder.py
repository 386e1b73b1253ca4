import pytest

from musictx.data.folder import find_midi, prepare_folder
from musictx.data.store import Store
from musictx.errors import StoreError
from musictx.notes.score import Score
from musictx.notes.write import write_midi


def tune(root_pitch, shift=0):
    steps = [0, 4, 7, 12, root_pitch % 7]
    return Score([0, 1, 2, 3, 4], [1, 2, 3, 4, 5], [root_pitch + s + shift for s in steps], [80] * 5)


@pytest.fixture
def folder(tmp_path):
    for k in range(6):
        write_midi(tune(50 + k), tmp_path / "in" / f"{k}.mid")
    write_midi(tune(50, shift=3), tmp_path / "in" / "deep" / "0 in another key.MID")
    (tmp_path / "in" / "notes.txt").write_text("not looked at")
    (tmp_path / "in" / "broken.midi").write_text("not music")
    write_midi(Score.empty(), tmp_path / "in" / "silent.kar")
    return tmp_path / "in"


def prepare(folder, out, **changes):
    settings = {"name": "", "licence": "mine", "validation_fraction": 0.2, "test_fraction": 0.2, "seed": 1}
    return prepare_folder(folder, out, "performance", workers=1, overwrite=False, **(settings | changes))


def test_midi_files_are_found_at_any_depth(folder):
    names = [name for name, _ in find_midi(folder)]
    assert names == sorted(
        ["0.mid", "1.mid", "2.mid", "3.mid", "4.mid", "5.mid", "broken.midi", "silent.kar", "deep/0 in another key.MID"]
    )


def test_what_is_left_out_is_listed_and_copies_stay_together(folder, tmp_path):
    manifest = prepare(folder, tmp_path / "store")
    dropped = dict(manifest.dropped)
    assert dropped["silent.kar"] == "no notes"
    assert dropped["broken.midi"].startswith("not a MIDI file: it begins with b'not ")
    assert manifest.extra == {"seed": 1, "duplicates": 1}
    sides = [s for s, info in manifest.splits.items() if {"0.mid", "deep/0 in another key.MID"} & set(info.pieces)]
    assert len(sides) == 1
    assert sum(len(info.pieces) for info in manifest.splits.values()) == 7
    assert manifest.corpus.name == "in"
    assert Store(tmp_path / "store").manifest == manifest


def test_every_seed_keeps_copies_together(folder, tmp_path):
    for seed in range(5):
        manifest = prepare(folder, tmp_path / f"s{seed}", seed=seed)
        both = {"0.mid", "deep/0 in another key.MID"}
        assert any(both <= set(info.pieces) for info in manifest.splits.values())


def test_too_few_pieces(tmp_path):
    write_midi(tune(50), tmp_path / "in" / "a.mid")
    with pytest.raises(StoreError, match="1 different pieces cannot fill the splits: at least 3 are needed"):
        prepare(tmp_path / "in", tmp_path / "store")
    assert not (tmp_path / "store").exists()
