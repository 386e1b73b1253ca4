from dataclasses import replace
from hashlib import sha256

import pytest
from songs import write_songs
from strategies import SHARED_DATA, part_of

from musictx.config.prepare import PreparePop909Config, SelectConfig
from musictx.config.train import TokenizerConfig
from musictx.data.corpora.pop909 import key_hashes, prepare_pop909
from musictx.data.store import Store
from musictx.errors import StoreError


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


def test_the_melody_is_a_part_of_the_piano_music(tmp_path):
    prepare(write_songs(tmp_path / "in", 6), tmp_path, select=PreparePop909Config().select)
    store = Store(tmp_path / "store", "performance")
    pieces = [store.tokenizer.decode(ids) for split in ("train", "validation", "test") for ids in store.split(split)]
    assert [(len(music), (music.pitch >= 65).sum()) for music in pieces] == [(32, 16)] * 6


@pytest.mark.skipif(not (SHARED_DATA / "pop909.zip").is_file(), reason="the corpus is not on this machine")
def test_a_part_of_the_songs_and_their_tracks(tmp_path):
    part = part_of(SHARED_DATA / "pop909.zip", tmp_path / "part.zip", 20)
    manifest = prepare(part, tmp_path, select=SelectConfig(names=["PIANO"]))
    assert (manifest.extra["files"], manifest.extra["kept"]) == (45, 45)
    assert sum(info.tokens for info in manifest.splits.values()) == 190_263
