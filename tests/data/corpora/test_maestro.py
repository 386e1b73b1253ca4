import shutil
from dataclasses import replace

import pytest
from conftest import write_tunes
from strategies import SHARED_DATA, part_of

from musictx.config.prepare import PrepareMaestroConfig
from musictx.config.train import TokenizerConfig
from musictx.data.corpora.maestro import prepare_maestro
from musictx.errors import ConfigError, StoreError

TABLE = "canonical_composer,split,year,midi_filename\n" + "".join(
    f"X,{split},2004,sub{k % 2}/tune {k}.mid\n"
    for k, split in enumerate(["train", "train", "validation", "test", "train"])
)


@pytest.fixture
def archive(tmp_path):
    """MAESTRO's layout in small: one folder with a table and folders of years."""
    folder = tmp_path / "in" / "maestro-v2.0.0"
    write_tunes(folder, 6)  # one more than the table names
    (folder / "maestro-v2.0.0.csv").write_text(TABLE)
    return tmp_path / "in"


def prepare(path, tmp_path, **changes):
    usual = PrepareMaestroConfig(
        path=path and str(path),
        out=str(tmp_path / "store"),
        tokenizer=TokenizerConfig("performance"),
        workers=1,
        downloads=str(tmp_path),
    )
    return prepare_maestro(replace(usual, **changes))


def test_inner_folder_and_zip_give_the_same_store_on_the_official_split(archive, tmp_path):
    shutil.make_archive(str(tmp_path / "all"), "zip", archive)
    stores = []
    for path in (tmp_path / "all.zip", archive / "maestro-v2.0.0"):
        manifest = prepare(path, tmp_path, overwrite=True)
        stores.append({p.name: p.read_bytes() for p in (tmp_path / "store").glob("*.bin")})
    assert stores[0] == stores[1]
    assert manifest.corpus.name == "MAESTRO v2.0.0"
    assert manifest.corpus.licence == "CC BY-NC-SA 4.0"
    assert "ICLR 2019" in manifest.corpus.citation
    assert {name: info.pieces for name, info in manifest.splits.items()} == {
        "train": ["sub0/tune 0.mid", "sub0/tune 4.mid", "sub1/tune 1.mid"],
        "validation": ["sub0/tune 2.mid"],
        "test": ["sub1/tune 3.mid"],
    }


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("a,b\n1,2\n", "MAESTRO's table"),
        (TABLE + "X,train\n", "cut short"),
        ("split,midi_filename\ndev,sub0/tune 0.mid\n", "'dev'"),
        ("split,midi_filename\n", " 0 files, 0 "),
        (TABLE + "".join(f"X,train,2004,{k}\n" for k in "abcd"), " 9 files, 4 .*, a, b, c, …: "),
    ],
)
def test_a_table_that_is_not_that_of_the_files(archive, tmp_path, table, message):
    (archive / "maestro-v2.0.0" / "maestro-v2.0.0.csv").write_text(table)
    with pytest.raises(StoreError, match=message):
        prepare(archive, tmp_path)


def test_no_table_no_archive_no_such_version(archive, tmp_path):
    (archive / "maestro-v2.0.0" / "maestro-v2.0.0.csv").unlink()
    with pytest.raises(StoreError, match=r"^no maestro-v\*.csv in "):
        prepare(archive, tmp_path)
    (tmp_path / "x.zip").write_bytes(b"PK\x05\x06" + b"junk")
    with pytest.raises(ConfigError, match="^path=.*x.zip: "):
        prepare(tmp_path / "x.zip", tmp_path)
    with pytest.raises(ConfigError, match="^version=v4: "):
        prepare(None, tmp_path, version="v4")


@pytest.mark.skipif(not (SHARED_DATA / "maestro-v3.0.0-midi.zip").is_file(), reason="the corpus is not on this machine")
def test_a_part_of_maestro_v3(tmp_path):
    part = part_of(SHARED_DATA / "maestro-v3.0.0-midi.zip", tmp_path / "part.zip", 64)
    manifest = prepare(part, tmp_path)
    assert {name: (len(info.pieces), info.tokens) for name, info in manifest.splits.items()} == {
        "train": (15, 346_780),
        "validation": (3, 32_701),
        "test": (1, 14_734),
    }
    assert manifest.dropped == []
