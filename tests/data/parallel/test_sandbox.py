import os
import signal
import time
from functools import partial
from pathlib import Path

import pytest

from musictx.data.parallel.sandbox import FileLimits, Sandbox, close_all, run_batch, say_what_is_missing
from musictx.errors import UserError


def mischief(data, folder=None):
    """What a file can do to its reader."""
    if data == b"segfault":
        os.kill(os.getpid(), signal.SIGSEGV)
    if data == b"exit":
        os._exit(3)
    if data == b"hang":
        time.sleep(60)
    if data == b"eat":
        return str(len(bytearray(600 * 2**20)))
    if data == b"raise":
        raise IndexError("list index\nout of range")
    if data == b"once" and not (Path(folder) / "tried").exists():
        (Path(folder) / "tried").touch()
        os._exit(1)
    return f"{data.decode()} is fine"


@pytest.fixture(autouse=True)
def no_reader_stays():
    yield
    close_all()


def test_each_misdeed_is_named_and_the_others_continue():
    files = [b"a", b"segfault", b"exit", b"b", b"eat", b"raise", b"c", b"hang", b"d"]
    assert run_batch(mischief, files, FileLimits(seconds=2, memory_mb=256)) == [
        "a is fine",
        "kills its reader: SIGSEGV",
        "kills its reader: exit status 3",
        "b is fine",
        "needs too much memory: more than 256 MB; memory_mb=… allows more",
        "unexpected error, please report it: IndexError: list index out of range",
        "c is fine",
        "takes too long: more than 2 s; file_seconds=… allows more",
        "d is fine",
    ]


def test_a_reader_that_dies_once_gets_a_second_try(tmp_path):
    assert run_batch(partial(mischief, folder=tmp_path), [b"once"], FileLimits(5, 256)) == ["once is fine"]
    assert (tmp_path / "tried").exists()


def test_a_reader_that_cannot_start_blames_no_file():
    with pytest.raises(UserError, match=r"UnpicklingError"):
        Sandbox(b"no pickle", FileLimits(5, 256))


def test_where_no_process_can_be_ended_this_one_reads(monkeypatch):
    monkeypatch.setattr("musictx.data.parallel.sandbox.APART", False)
    monkeypatch.setattr("musictx.data.parallel.sandbox.Sandbox", None)
    files = [b"a", b"raise", b"b"]
    wrong = "unexpected error, please report it: IndexError: list index out of range"
    assert run_batch(mischief, files, FileLimits(5, 256)) == ["a is fine", wrong, "b is fine"]


@pytest.mark.parametrize(
    ("apart", "limits", "said"),
    [(True, True, ""), (True, False, "taking too much memory\n"), (False, False, "from ending this program\n")],
)
def test_a_line_says_what_no_limit_stops(monkeypatch, capsys, apart, limits, said):
    monkeypatch.setattr("musictx.data.parallel.sandbox.APART", apart)
    monkeypatch.setattr("musictx.data.parallel.sandbox.LIMITS", limits)
    say_what_is_missing()
    out = capsys.readouterr().out
    assert out.endswith(said)
    assert bool(out) == bool(said)
