from types import SimpleNamespace

import pytest

from musictx.errors import UserError
from musictx.files import only_new, replacing


def test_a_file_appears_only_when_it_is_complete(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    with replacing(target) as partial:
        partial.write_text("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_a_failure_leaves_what_was_there_and_nothing_else(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    with pytest.raises(RuntimeError), replacing(target) as partial:  # noqa: PT012
        partial.write_text("half")
        raise RuntimeError
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_what_appears_meanwhile_stays_unless_overwrite_is_true(tmp_path):
    def task(config):
        with replacing(tmp_path / "a.txt") as partial:
            partial.write_text("ours")
            (tmp_path / "a.txt").write_text("theirs")

    with pytest.raises(UserError, match="a.txt was written"):
        only_new(task)(SimpleNamespace(overwrite=False))
    assert (tmp_path / "a.txt").read_text() == "theirs"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]
    only_new(task)(SimpleNamespace(overwrite=True))
    assert (tmp_path / "a.txt").read_text() == "ours"
