"""Where a system has no locks, limits and counts of memory, music is still read, learned, made and heard."""

import os
import subprocess
import sys

import pytest
from conftest import TINY, ok

from musictx.data.parallel.journal import Journal

HIDE = """
import builtins, os, signal, sys
before = builtins.__import__
def own(name, globals=None, *rest, **how):
    if name in ("fcntl", "resource") and (globals or {}).get("__name__", "").startswith("musictx"):
        raise ImportError(f"no module named {name}")
    return before(name, globals, *rest, **how)
builtins.__import__ = own
for module, name in ((os, "sched_getaffinity"), (os, "posix_fallocate"), (signal, "setitimer")):
    if hasattr(module, name):
        delattr(module, name)
"""


@pytest.fixture
def bare(tmp_path):
    """The environment of a system that has none of them."""
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden/sitecustomize.py").write_text(HIDE)
    return {"PYTHONPATH": str(tmp_path / "hidden")}


def test_music_is_made_and_heard(bare, tmp_path):
    words = ["seed_midi=chorale", "bundle=chorale", "length_seconds=1", "wav=true", "out=o"]
    ok(["musictx", "generate", *words], tmp_path, **bare)
    assert {path.suffix for path in (tmp_path / "o").iterdir()} == {".mid", ".wav"}
    ok(["musictx", "jam", "input=elise", "bundle=piano", "reply_seconds=1", "output=session.mid"], tmp_path, **bare)
    assert (tmp_path / "session.mid").stat().st_size > 100


def test_a_store_is_learned(bare, world, tmp_path):
    words = ["trainer=smoke", f"data.path={world.store}", "out=run", *TINY, "data.length=32", "trainer.batch_size=4"]
    done = ok(["musictx", "train", *words], tmp_path, **bare)
    assert "cannot be locked" in done.stdout


def test_a_preparation_that_cannot_be_locked_says_so_and_continues(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("musictx.system.fcntl", None)
    with Journal(tmp_path / "store", "recipe").locked():
        assert "cannot be locked" in capsys.readouterr().out


def test_the_page_is_there_and_nothing_is_counted(bare):
    code = """
import musictx.web.server
import musictx.system as system
print(system.peak_gib(), system.LIMITS, system.usable_cores() > 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | bare)
    assert done.stdout.split() == ["None", "False", "True"], done.stderr
