from dataclasses import replace
from hashlib import sha256

import numpy as np
import pytest
from conftest import write_tunes
from songs import write_songs
from strategies import SHARED_DATA

from musictx.config.prepare import PreparePop909Config, SelectConfig
from musictx.config.train import TokenizerConfig
from musictx.data.corpora.pop909 import join, prepare_pop909
from musictx.data.store import Store
from musictx.errors import StoreError
from musictx.tokenizers import build_tokenizer
from musictx.tokenizers.performance.melody import VOICE


@pytest.fixture
def archive(tmp_path):
    """Six songs, two of them with another version, laid out as the official archive."""
    write_tunes(tmp_path / "tunes", 8)
    tunes = sorted((tmp_path / "tunes").rglob("*.mid"))
    places = [f"00{k}/00{k}.mid" for k in range(1, 7)] + ["001/versions/001-v1.mid", "002/versions/002-v1.mid"]
    for tune, place in zip(tunes, places, strict=True):
        target = tmp_path / "in" / "POP909" / place
        target.parent.mkdir(parents=True, exist_ok=True)
        tune.rename(target)
    return tmp_path / "in"


def prepare(path, tmp_path, **changes):
    usual = PreparePop909Config(
        path=str(path),
        out=str(tmp_path / "store"),
        tokenizer=TokenizerConfig("performance"),
        select=SelectConfig(),
        workers=1,
        validation_fraction=0.3,
    )
    return prepare_pop909(replace(usual, **changes))


def test_versions_are_left_alone_or_stay_with_their_song(archive, tmp_path):
    assert prepare(archive, tmp_path).extra["kept"] == 6
    manifest = prepare(archive, tmp_path, versions=True, overwrite=True)
    assert manifest.extra["kept"] == 8
    for song in ("001", "002"):
        sides = [n for n, info in manifest.splits.items() if any(f"/{song}/" in p for p in info.pieces)]
        assert len(sides) == 1


def test_songs_linked_by_content_share_a_key():
    keys = join(["001", "001", "002", "003"], ["a", "b", "b", "c"])
    assert keys[0] == keys[1] == keys[2] != keys[3]
    assert keys[3] == sha256(b"c").hexdigest()  # the splits of finished stores depend on it


def test_any_other_folder_is_refused(tmp_path):
    write_tunes(tmp_path / "in", 1)
    with pytest.raises(StoreError, match="POP909/001"):
        prepare(tmp_path / "in", tmp_path)


def test_the_melody_is_kept_where_the_tokenizer_knows_one(tmp_path):
    """The same files, and the same notes, in both encodings; which are the melody's, the store says for ever."""
    songs, melody = write_songs(tmp_path / "in", 6), TokenizerConfig("performance-melody")
    names = SelectConfig(names=["MELODY", "BRIDGE", "PIANO"])
    prepare(songs, tmp_path, tokenizer=melody, select=names)
    store = Store(tmp_path / "store", "performance-melody")
    with_melody = {p: store.tokenizer.decode(i) for p, i in every_piece(store)}
    assert len(with_melody) == 6
    prepare(songs, tmp_path, select=names, overwrite=True)
    plain, piano = Store(tmp_path / "store", "performance"), build_tokenizer("performance")
    for name, ids in every_piece(plain):
        music = with_melody[name]
        sung = music.select(music.program == VOICE)
        assert (len(sung), len(music)) == (16, 32)
        assert sung.pitch.min() >= 65 > music.select(music.program == 0).pitch.max()
        np.testing.assert_array_equal(piano.encode(music), ids)


def every_piece(store):
    for split in ("train", "validation", "test"):
        pieces = store.split(split)
        yield from zip(store.manifest.splits[split].pieces, pieces, strict=True)


@pytest.mark.skipif(not (SHARED_DATA / "pop909.zip").is_file(), reason="the corpus is not on this machine")
def test_all_songs_and_their_tracks(tmp_path):
    manifest = prepare(SHARED_DATA / "pop909.zip", tmp_path, select=SelectConfig(names=["PIANO"]), workers=2)
    assert (manifest.extra["files"], manifest.extra["kept"]) == (909, 909)
    assert sum(info.tokens for info in manifest.splits.values()) == 3_705_452
