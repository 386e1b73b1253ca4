import json
from shutil import copytree

import numpy as np
import pytest
from conftest import ok
from safetensors.numpy import load_file, save_file

from musictx.analysis.similarity import Index, load_index
from musictx.commands.similar import similar
from musictx.config.app import settings
from musictx.data.store import Store
from musictx.errors import UserError
from musictx.music.read import read_midi
from musictx.music.score import Score
from musictx.music.write import write_midi


@pytest.fixture(scope="module")
def searched(world, tmp_path_factory):
    """The folder of a search for the first training piece, in another key and tempo."""
    folder = tmp_path_factory.mktemp("searched")
    store = Store(world.store)
    piece = store.tokenizer.decode(np.asarray(store.split("train")[0]))
    write_midi(piece.transpose(3).stretch(1.1), folder / "my.mid")
    copytree(world.store, folder / "store")
    words = ["musictx", "similar", "midi=my.mid", "store=store", "passage_seconds=4", "most=3"]
    done = ok([*words, "out=found"], folder)
    return folder, words, store.split("train").names[0], done.stdout


def test_the_nearest_piece_is_the_same_in_another_key(searched):
    folder, _, name, said = searched
    found = json.loads((folder / "found/similar.json").read_text())
    assert found["pieces"][0]["name"] == name
    assert len(found["pieces"]) == len(found["passages"]) == 3
    assert found["passages"][0]["name"] == name
    assert abs(found["passages"][0]["of_s"] / 1.1 - found["passages"][0]["from_s"]) < 4
    likeness = [row["likeness"] for row in found["passages"]]
    assert likeness == sorted(likeness, reverse=True)
    assert name in said
    assert (folder / "found/my.png").read_bytes().startswith(b"\x89PNG")
    assert read_midi(folder / "found/my-1.mid").duration_s <= 4.1
    (index,) = folder.glob("store-similar-*.safetensors")
    assert f"{index.name}: kept for the next search" in said
    assert index.stat().st_mode == (folder / "found/similar.json").stat().st_mode  # others may read it


def test_a_second_search_hears_nothing_again_and_a_damaged_index_is_made_again(searched, monkeypatch, capsys):
    folder, words, *_ = searched
    monkeypatch.chdir(folder)
    (index,) = folder.glob("store-similar-*.safetensors")
    whole = index.read_bytes()
    similar(settings("similar", *words[2:], "out=again"))
    assert "kept for" not in capsys.readouterr().out
    index.write_bytes(whole[:-9])
    similar(settings("similar", *words[2:], "out=third"))
    assert "kept for the next search" in capsys.readouterr().out
    assert index.read_bytes() == whole


def test_a_damaged_index_is_none(searched, tmp_path):
    (index,) = searched[0].glob("store-similar-*.safetensors")
    kept, damaged = load_file(index), tmp_path / "damaged"
    width = kept["vectors"].shape[1]
    assert load_index(index, 8, width) is not None
    assert load_index(damaged, 8, width) is None
    for damage in (
        {"piece": kept["piece"] + 99},
        {"piece": kept["piece"].astype(np.float32)},
        {"from_s": kept["from_s"] * np.float32("nan")},
        {"vectors": kept["vectors"][:, :10].copy()},
        {"more": kept["piece"]},
    ):
        save_file(kept | damage, damaged)
        assert load_index(damaged, 8, width) is None


def test_mistakes_are_one_line(world, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_midi(Score(np.arange(2), np.arange(2) + 1, [60, 62], [80, 80]), tmp_path / "silent.mid")
    (tmp_path / "there").mkdir()
    (tmp_path / "there/similar.json").touch()
    for words, said in (
        (["midi=none.mid"], "none.mid"),
        (["midi=elise", "most=0"], "most=0: give 1 or more"),
        (["midi=elise", "passage_seconds=nan"], "passage_seconds=nan"),
        (["midi=silent.mid"], "silent.mid: no passage of four notes"),
        (["midi=elise", "bundle=harmoniser"], "bundle=harmoniser: "),
        (["midi=elise", "out=silent.mid"], "out=silent.mid: a file is in its way"),
        (["midi=elise", "out=there"], "there/similar.json exists already"),
    ):
        with pytest.raises(UserError, match=said):
            similar(settings("similar", f"store={world.store}", "out=o", *words))


def test_the_same_music_is_the_same_where_nothing_else_was_heard(searched, capsys, monkeypatch):
    folder, *_ = searched
    monkeypatch.chdir(folder)
    words = ["midi=found/my-1.mid", "store=store", "passage_seconds=4", "passages=1", "most=1"]
    for out in ("one", "one again"):  # heard, and as it was kept
        similar(settings("similar", *words, f"out={out}"))
        assert "all alike: likeness has nothing to compare with" in capsys.readouterr().out
        (found,) = json.loads((folder / out / "similar.json").read_text())["passages"]
        assert found["likeness"] > 0.5


def test_alike_passages_are_as_like_as_they_are():
    vector = np.linspace(-3, 5, 16, dtype=np.float32)
    for kept in (vector[None], np.stack([vector, vector, vector.astype(np.float16).astype(np.float32)])):
        index = Index(kept, np.zeros(len(kept), np.int32), np.zeros(len(kept), np.float32))
        for found in (index.passages(vector[None], ["a"], 1)[0], index.pieces(vector[None], ["a"], 1)):
            assert found[0].likeness == pytest.approx(1.0, abs=1e-5)
    assert not Index(np.stack([vector, -vector]), np.zeros(2, np.int32), np.zeros(2, np.float32)).is_uniform
