import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import cloudpickle
import psutil
import pytest

from musictx.data.parallel.sandbox import FileLimits, Readers, say_missing_limits
from musictx.errors import UserError

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # or each reader would import pytest


def mischief(data, name, folder=None):
    """What a file can do to its reader."""
    if data == b"segfault":
        os.kill(os.getpid(), signal.SIGSEGV)
    if data == b"hang":
        time.sleep(60)
    if data == b"half":  # an answer that breaks off: the pipe says 99 bytes, and one comes
        os.write(int(sys.argv[1]), bytes([0, 0, 0, 99, 1]))
        os._exit(3)
    if data == b"pid":
        return str(os.getpid())
    if data == b"eat":
        return str(len(bytearray(600 * 2**20)))
    if data == b"raise":
        raise IndexError("list index\nout of range")
    if data == b"once" and not (Path(folder) / "tried").exists():
        (Path(folder) / "tried").touch()
        os._exit(1)
    return f"{data.decode()} is fine" if name == "a.mid" else name


@pytest.fixture
def readers():
    made = Readers()
    yield made
    made.close()


def test_each_misdeed_is_named_the_others_continue_and_a_reader_that_dies_once_gets_a_second_try(readers, tmp_path):
    limits, read = FileLimits(seconds=1, memory_mb=256), partial(mischief, folder=tmp_path)
    files = [b"a", b"segfault", b"eat", b"raise", b"b", b"hang", b"once"]
    assert [readers.read(read, limits, file, "a.mid") for file in files] == [
        "a is fine",
        "kills its reader: SIGSEGV",
        "needs too much memory: more than 256 MB; memory_mb=… allows more",
        "unexpected error, please report it: IndexError: list index out of range",
        "b is fine",
        "takes too long: more than 1 s; file_seconds=… allows more",
        "once is fine",
    ]
    assert (tmp_path / "tried").exists()


def test_a_reader_that_dies_while_it_answers_or_waits_takes_no_other_with_it(readers):
    limits = FileLimits(seconds=20, memory_mb=256)
    with ThreadPoolExecutor() as threads:
        files = [b"half", b"a", b"half", b"b"]
        halves = [threads.submit(readers.read, mischief, limits, file, "a.mid") for file in files]
        answers = [half.result() for half in halves]
    assert answers == ["kills its reader: exit status 3", "a is fine", "kills its reader: exit status 3", "b is fine"]
    waits = int(readers.read(mischief, limits, b"pid", "a.mid"))
    os.kill(waits, signal.SIGKILL)
    psutil.wait_procs([process for process in psutil.Process().children() if process.pid == waits], timeout=20)
    assert readers.read(mischief, limits, b"c", "a.mid") == "c is fine"


def test_readers_that_are_closed_end_none_of_the_others_and_read_no_more(readers):
    others, limits = Readers(), FileLimits(seconds=20, memory_mb=256)
    with ThreadPoolExecutor() as threads:
        reading = threads.submit(others.read, mischief, limits, b"hang", "a.mid")
        assert readers.read(mischief, limits, b"a", "a.mid") == "a is fine"
        while not others._running:
            time.sleep(0.01)
        readers.close()
        assert not reading.done()
        others.close()
        assert reading.result() == "the work was ended"
    assert readers.read(mischief, limits, b"a", "a.mid") == "the work was ended"


class OnlyHere:
    def __call__(self, data, name):
        return "here"

    def __reduce__(self):
        return int, ("no number",)


def test_a_reader_that_cannot_start_blames_no_file(readers):
    with pytest.raises(UserError, match="could not start: ValueError"):
        readers.read(OnlyHere(), FileLimits(5, 256), b"a", "a.mid")


def test_where_no_process_can_be_ended_this_one_reads(readers, monkeypatch):
    monkeypatch.setattr("musictx.data.parallel.sandbox.APART", False)
    monkeypatch.setattr("musictx.data.parallel.sandbox.Sandbox", None)
    assert readers.read(mischief, FileLimits(5, 256), b"a", "a.mid") == "a is fine"
    assert "IndexError" in readers.read(mischief, FileLimits(5, 256), b"raise", "a.mid")


@pytest.mark.parametrize(
    ("apart", "limits", "said"),
    [(True, True, ""), (True, False, "taking too much memory\n"), (False, False, "from ending this program\n")],
)
def test_a_line_says_what_no_limit_stops(monkeypatch, capsys, apart, limits, said):
    monkeypatch.setattr("musictx.data.parallel.sandbox.APART", apart)
    monkeypatch.setattr("musictx.data.parallel.sandbox.LIMITS", limits)
    say_missing_limits()
    out = capsys.readouterr().out
    assert out.endswith(said)
    assert bool(out) == bool(said)
