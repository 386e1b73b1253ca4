import io
import json
import os
import pickle
from dataclasses import replace

import numpy as np
import pytest

from musictx.data.store import Corpus, Piece, Store, write_store
from musictx.errors import ConfigError, StoreError, UserError
from musictx.tokenizers import build_tokenizer
from musictx.training.run_folder import store_hash

TOK = build_tokenizer("performance")
CORPUS = Corpus("two tunes", "public domain")


def pieces(*lengths):
    return [Piece(f"p{i}", np.arange(n, dtype=np.uint16), n / 10) for i, n in enumerate(lengths)]


@pytest.fixture
def path(tmp_path):
    out = tmp_path / "store"
    write_store(out, TOK, CORPUS, {"train": pieces(5, 300), "validation": pieces(7)}, [("bad.mid", "no notes")])
    return out


def test_what_was_written_is_read(path):
    store = Store(path, "performance")
    train = store.split("train")
    assert [ids.tolist() for ids in train] == [list(range(5)), list(range(300))]
    assert train[0].dtype == np.uint16
    assert (store.manifest.splits["train"].tokens, store.manifest.splits["train"].seconds) == (305, 30.5)
    assert store.manifest.corpus == CORPUS
    assert store.manifest.dropped == [("bad.mid", "no notes")]
    assert sorted(p.name for p in path.parent.iterdir()) == ["store"]


def test_which_pieces_are_unfinished_is_kept_and_older_stores_have_none(path, tmp_path):
    assert Store(path).split("train").unfinished == set()
    manifest = json.loads((path / "manifest.json").read_text())
    del manifest["splits"]["train"]["unfinished"]  # a store of before
    (path / "manifest.json").write_text(json.dumps(manifest))
    assert Store(path).split("train").unfinished == set()
    cut = [replace(piece, unfinished=i == 1) for i, piece in enumerate(pieces(5, 300))]
    write_store(tmp_path / "cut", TOK, CORPUS, {"train": cut, "validation": pieces(7)}, [])
    assert Store(tmp_path / "cut").split("train").unfinished == {1}
    assert Store(tmp_path / "cut").split("validation").unfinished == set()
    assert store_hash(Store(tmp_path / "cut")) != store_hash(Store(path))


def test_another_tokenizer_or_version_is_refused(path):
    with pytest.raises(StoreError, match=r"performance \(\w{16}\), .*chorale"):
        Store(path, "chorale")
    manifest = path / "manifest.json"
    manifest.write_text(manifest.read_text().replace(TOK.vocab.fingerprint, "0" * 16))
    with pytest.raises(StoreError, match=r"performance \(0{16}\), .*performance \(\w{16}\)"):
        Store(path, "performance")


def test_a_store_is_not_overwritten_unasked_and_a_folder_of_other_things_never(path, tmp_path):
    splits = {"train": pieces(3), "validation": pieces(3)}
    with pytest.raises(ConfigError, match="overwrite=true"):
        write_store(path, TOK, CORPUS, splits, [])
    write_store(path, TOK, CORPUS, splits, [], overwrite=True)
    assert Store(path).manifest.splits["train"].tokens == 3
    (path / "thesis.ids.bin").write_text("words")
    with pytest.raises(ConfigError, match="thesis.ids.bin"):
        write_store(path, TOK, CORPUS, splits, [], overwrite=True)
    (tmp_path / "thesis.txt").write_text("words")
    with pytest.raises(ConfigError, match="^out="):
        write_store(tmp_path, TOK, CORPUS, splits, [], overwrite=True)
    assert (tmp_path / "thesis.txt").read_text() == "words"


def test_nothing_to_validate_on_is_refused_and_leaves_nothing(tmp_path):
    with pytest.raises(StoreError, match="validation split .*two tunes"):
        write_store(tmp_path / "store", TOK, CORPUS, {"train": pieces(3), "validation": []}, [])
    assert list(tmp_path.iterdir()) == []


def test_damage_is_said_in_one_line(path, tmp_path):
    with pytest.raises(StoreError, match="no manifest.json"):
        Store(tmp_path / "nothing")
    with pytest.raises(StoreError, match="'dev': .*train, validation"):
        Store(path).split("dev")
    (path / "train.ids.bin").write_bytes(b"\0" * 100)
    with pytest.raises(StoreError, match="50 tokens .* 305"):
        Store(path).split("train")
    whole = (path / "manifest.json").read_text()
    for content, said in ((json.dumps(json.loads(whole) | {"format": 99}), "format 99, .* 1$"), ("{", "is damaged")):
        (path / "manifest.json").write_text(content)
        with pytest.raises(StoreError, match=said):
            Store(path)


@pytest.mark.parametrize("odd", [None, [[1]], {"a": [1]}, 10**400])
def test_a_manifest_of_other_types_is_a_line(path, odd):
    whole = json.loads((path / "manifest.json").read_text())
    info, corpus = whole["splits"]["train"], whole["corpus"]
    manifests = [whole | {key: odd} for key in whole if key != "extra"]
    manifests += [whole | {"splits": {"train": info | {key: odd}}} for key in ("tokens", "pieces", "unfinished")]
    manifests += [whole | {"splits": splits} for splits in ({"train": odd}, {"../train": info})]
    manifests += [whole | {"corpus": corpus | {key: odd}} for key in corpus] + [whole | {"extra": {"files": odd}}]
    for manifest in manifests:
        (path / "manifest.json").write_text(json.dumps(manifest))
        with pytest.raises(UserError) as caught:
            Store(path)
        assert len(str(caught.value).splitlines()) == 1


def claiming(shape):
    """An array's file whose header claims a shape."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<i8", "fortran_order": False, "shape": shape})
    return file.getvalue() + bytes(8)


@pytest.mark.parametrize("offsets", [claiming((2**40,)), claiming((-1,)), b"PK\x03\x04", pickle.dumps([1])])
def test_offsets_that_are_no_array_of_the_file_are_a_line_without_advice(path, offsets):
    (path / "train.offsets.npy").write_bytes(offsets)
    with pytest.raises(StoreError, match="train split .*damaged") as caught:
        Store(path).split("train")
    assert "pickle" not in str(caught.value)
    (path / "train.offsets.npy").unlink()
    os.mkfifo(path / "train.offsets.npy")  # a pipe would be waited for
    with pytest.raises(StoreError, match="train split .*missing"):
        Store(path).split("train")


def test_a_store_put_aside_by_a_killed_run_survives_the_next_failure(path):
    path.rename(path.with_name(".store.old"))  # killed between the two renames
    broken = [Piece("p", "not an array", 1.0)]  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        write_store(path, TOK, CORPUS, {"train": broken, "validation": pieces(1)}, [], overwrite=True)
    assert Store(path).manifest.splits["train"].tokens == 305
    assert [p.name for p in path.parent.iterdir()] == ["store"]
