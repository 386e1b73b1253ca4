import os

import numpy as np
import pytest

from musictx.data.parallel.journal import CHUNK_FILES, Journal, chunks_of
from musictx.data.source import Item
from musictx.errors import UserError

MARK = bytes(256)


def item(name, stamp="stamp"):
    return Item(name, stamp, lambda limit: b"")


def result(k):
    return np.full(3, k, np.uint16).tobytes(), 1.5, MARK


def test_what_was_written_is_read_whatever_the_order(tmp_path):
    chunks = chunks_of([item(f"{k:03d}") for k in range(3 * CHUNK_FILES)])
    assert [len(chunk) for chunk in chunks] == [32, 32, 32]
    journal = Journal(tmp_path / "store", "recipe")
    with journal.lock():
        for c in (2, 0, 1):
            results = [result(32 * c + k) for k in range(32)]
            results[5] = "no notes"
            journal.write(chunks[c], results)
    again = Journal(tmp_path / "store", "recipe")
    assert all(again.done(chunk) for chunk in chunks)
    pieces, dropped = again.read(chunks)
    assert [p.name for p in pieces] == [f"{k:03d}" for k in range(96) if k % 32 != 5]
    assert all(p.ids.tolist() == [int(p.name)] * 3 and p.seconds == 1.5 for p in pieces)
    assert dropped == [("005", "no notes"), ("037", "no notes"), ("069", "no notes")]
    assert not Journal(tmp_path / "store", "another recipe").done(chunks[0])
    assert not again.done([item(each.name, stamp="changed") for each in chunks[0]])
    again.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damaged", ["*.json", "*.ids"])
def test_damage_counts_as_not_done(tmp_path, damaged):
    (chunk,) = chunks_of([item("a")])
    journal = Journal(tmp_path / "store", "r")
    with journal.lock():
        journal.write(chunk, [result(7)])
    (file,) = journal.folder.glob(damaged)
    os.truncate(file, 4)
    again = Journal(tmp_path / "store", "r")
    assert not again.done(chunk)
    with again.lock():
        again.write(chunk, [result(9)])
    assert again.done(chunk)
    assert again.read([chunk])[0][0].ids.tolist() == [9, 9, 9]


def test_two_runs_do_not_write_one_store(tmp_path):
    with (
        Journal(tmp_path / "store", "r").lock(),
        pytest.raises(UserError, match=r"\.store\.work"),
        Journal(tmp_path / "store", "s").lock(),
    ):
        pass


def test_a_file_that_could_not_be_opened_is_tried_again(tmp_path):
    (chunk,) = chunks_of([item("a"), item("b")])
    journal = Journal(tmp_path / "store", "r")
    with journal.lock():
        journal.write(chunk, [result(1), "cannot be read: Permission denied"])
    assert not Journal(tmp_path / "store", "r").done(chunk)


def test_a_journal_of_more_chunks_than_a_process_may_open_files_is_read(tmp_path):
    resource = pytest.importorskip("resource")
    chunks = [(item(str(k)),) for k in range(200)]
    journal = Journal(tmp_path / "store", "r")
    with journal.lock():
        for k, chunk in enumerate(chunks):
            journal.write(chunk, [result(k)])
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (128, before[1]))
        try:
            pieces, _ = journal.read(chunks)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert [piece.ids.tolist() for piece in pieces] == [[k] * 3 for k in range(200)]
