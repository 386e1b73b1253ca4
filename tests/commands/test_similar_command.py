import json

import numpy as np
import pytest
from conftest import ok, refused
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from musictx.analysis.nearest import load_index
from musictx.data.store import Store
from musictx.errors import StoreError
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
    words = ["musictx", "similar", "midi=my.mid", f"store={world.store}", "passage_seconds=4", "most=3", "index=heard"]
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
    assert "heard: kept for the next search" in said
    assert (folder / "heard").stat().st_mode == (folder / "found/similar.json").stat().st_mode  # others may read it


def test_a_second_search_hears_nothing_again_and_a_foreign_index_is_refused(searched, world):
    folder, words, *_ = searched
    assert "listening" not in ok([*words, "out=again"], folder).stdout
    assert "found/similar.json exists already" in refused([*words, "out=found"], folder)
    line = refused([*words, "out=other", "passages=5"], folder)
    assert "heard is the index of another store or model: give another index=" in line
    assert not (folder / "other").exists()


def test_a_damaged_index_is_refused(searched):
    heard, damaged = searched[0] / "heard", searched[0] / "damaged"
    kept = load_file(heard)
    with safe_open(heard, "numpy") as file:
        about = file.metadata()
    damaged.write_bytes(b"no index")
    with pytest.raises(StoreError, match="damaged is no index"):
        load_index(damaged, about["key"], 8, kept["vectors"].shape[1])
    for damage in (
        {"piece": kept["piece"] + 99},
        {"piece": kept["piece"].astype(np.float32)},
        {"from_s": kept["from_s"] * np.float32("nan")},
        {"vectors": kept["vectors"][:, :10].copy()},
    ):
        save_file(kept | damage, damaged, about)
        with pytest.raises(StoreError, match="damaged is damaged: give another index=, or delete it"):
            load_index(damaged, about["key"], 8, kept["vectors"].shape[1])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["midi=none.mid"], "none.mid"),
        (["midi=elise", "most=0"], "most=0: give 1 or more"),
        (["midi=elise", "passage_seconds=nan"], "passage_seconds=nan"),
        (["midi=silent.mid"], "silent.mid: no passage of four notes"),
        (["midi=elise", "bundle=harmoniser"], "bundle=harmoniser: "),
        (["midi=elise", "out=silent.mid"], "out=silent.mid: a file is in its way"),
        (["midi=elise", "index=silent.mid/x"], "index=silent.mid/x: a file is in its way"),
    ],
)
def test_mistakes_are_one_line(world, tmp_path, words, said):
    write_midi(Score(np.arange(2), np.arange(2) + 1, [60, 62], [80, 80]), tmp_path / "silent.mid")
    assert said in refused(["musictx", "similar", f"store={world.store}", "out=o", *words], tmp_path)
