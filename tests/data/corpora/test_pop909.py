from dataclasses import replace
from hashlib import sha256

import numpy as np
import pytest
from songs import write_songs
from strategies import SHARED_DATA, part_of

from musictx.config.prepare import PreparePop909Config, SelectConfig
from musictx.config.train import TokenizerConfig
from musictx.data.corpora.pop909 import key_hashes, prepare_pop909
from musictx.data.store import Store
from musictx.errors import StoreError
from musictx.tokenizers import build_tokenizer
from musictx.tokenizers.performance.melody import VOICE


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


def test_songs_are_split_by_their_content_and_other_versions_are_left_alone(tmp_path):
    assert key_hashes(["c"]) == [sha256(b"c").hexdigest()]  # the splits of finished stores depend on it
    songs = write_songs(tmp_path / "in", 6)
    song = next(songs.rglob("*.mid"))
    (song.parent / "versions").mkdir()
    (song.parent / "versions" / "v1.mid").write_bytes(song.read_bytes())
    assert prepare(songs, tmp_path).extra["kept"] == 6
    song.parent.rename(tmp_path / "other")
    with pytest.raises(StoreError, match="POP909/001"):
        prepare(tmp_path / "other", tmp_path, overwrite=True)


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
def test_a_part_of_the_songs_and_their_tracks(tmp_path):
    part = part_of(SHARED_DATA / "pop909.zip", tmp_path / "part.zip", 20)
    manifest = prepare(part, tmp_path, select=SelectConfig(names=["PIANO"]))
    assert (manifest.extra["files"], manifest.extra["kept"]) == (45, 45)
    assert sum(info.tokens for info in manifest.splits.values()) == 190_263
