import os
import re
import subprocess
import sys

import pytest
from conftest import ROOT, write_tunes

from musictx.config.prepare import PrepareFolderConfig
from musictx.config.train import TokenizerConfig
from musictx.data.corpora.folder import prepare_folder
from musictx.data.parallel.journal import CHUNK_FILES, Journal


@pytest.fixture
def tunes(tmp_path):
    write_tunes(tmp_path / "midi", CHUNK_FILES + 8)  # two chunks
    return tmp_path


def prepared(path, out, **changes):
    """The bytes of the store that is made."""
    config = PrepareFolderConfig(path=str(path), out=str(out), tokenizer=TokenizerConfig("performance"), **changes)
    prepare_folder(config)
    return {file.name: file.read_bytes() for file in sorted(out.iterdir())}


def test_an_interrupted_run_continues_and_ends_with_the_same_bytes(tunes, monkeypatch, capsys):
    whole = prepared(tunes / "midi", tunes / "whole", workers=1)
    write = Journal.write

    def write_and_stop(*args):
        write(*args)
        raise KeyboardInterrupt

    with monkeypatch.context() as interrupted:
        interrupted.setattr(Journal, "write", write_and_stop)
        with pytest.raises(KeyboardInterrupt):
            prepared(tunes / "midi", tunes / "cut", workers=2)
    assert not (tunes / "cut").exists()
    assert prepared(tunes / "midi", tunes / "cut", workers=2) == whole
    assert re.search("(32|8) of 40 files", capsys.readouterr().out)
    assert sorted(path.name for path in tunes.iterdir()) == ["cut", "midi", "whole"]


def test_a_store_below_the_files_it_is_made_of(tmp_path):
    write_tunes(tmp_path, 4)
    first = prepared(tmp_path, tmp_path / "store", workers=1)
    assert b'"dropped": []' in first["manifest.json"]
    assert prepared(tmp_path, tmp_path / "store", workers=1, overwrite=True) == first


def test_odd_names_of_folders_and_files_in_the_way(tmp_path):
    write_tunes(tmp_path / "midi", 4)
    os.rename(tmp_path / "midi", os.fsencode(tmp_path) + b"/mi\xff")
    (tmp_path / "pickle.py").write_text("raise SystemExit('not this one')")
    command: list[str | bytes]
    command = [sys.executable, str(ROOT / "data_prep/folder.py"), b"path=mi\xff", "out=store", "workers=1"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert '"name": "mi\\\\xff"' in (tmp_path / "store" / "manifest.json").read_text()
