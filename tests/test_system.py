"""Where a system has no locks, limits and counts of memory, music is still read, learned, made and heard."""

from conftest import QUICK, ROOT, TINY, ok, write_tunes

from musictx.data.parallel.journal import Journal

HIDE = """
import builtins, os, signal, sys
before = builtins.__import__
def own(name, globals=None, *rest, **how):
    if name in ("fcntl", "resource") and (globals or {}).get("__name__", "").startswith("musictx"):
        raise ImportError(f"no module named {name}")
    return before(name, globals, *rest, **how)
builtins.__import__ = own
def no_proc(event, args):
    if event == "open" and str(args[0]).startswith("/proc"):
        if sys._getframe(1).f_globals.get("__name__", "").startswith("musictx"):
            raise FileNotFoundError(args[0])
sys.addaudithook(no_proc)
for module, name in ((os, "sched_getaffinity"), (signal, "setitimer")):
    if hasattr(module, name):
        delattr(module, name)
"""


# one process does all: most of its time goes into what it imports
DO = """
import sys
from pathlib import Path
import musictx.web.server
import musictx.system as system
from musictx.cli import main
from musictx.config.web import Limits
from musictx.web.uploads import Uploads, read_upload
for line in Path("commands").read_text().splitlines():
    sys.argv = line.split()
    main()
    print("---")
uploads = Uploads(Path("uploads"), Limits())
path = uploads.keep("tune.mid", Path("midi/sub0/tune 0.mid").read_bytes())
music = read_upload(uploads.take(path), path.name, Limits())
print(music.name, len(music.score), system.peak_gib(), system.LIMITS, system.usable_cores() > 0)
"""
COMMANDS = f"""\
musictx prepare folder path=midi out=store test_fraction=0
musictx train data.path=store out=run {" ".join([*TINY, *QUICK])}
musictx generate seed_midi=chorale bundle=run/model.safetensors length_seconds=1 wav=true out=o
musictx jam input=elise bundle=run/model.safetensors reply_seconds=1 output=session.mid
"""


def test_a_store_is_made_and_learned_music_is_made_and_heard_and_the_page_reads_an_upload(tmp_path):
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden/sitecustomize.py").write_text(HIDE)
    (tmp_path / "do.py").write_text(DO)
    (tmp_path / "commands").write_text(COMMANDS)
    write_tunes(tmp_path / "midi", 2)
    done = ok([tmp_path / "do.py"], tmp_path, PYTHONPATH=f"{tmp_path / 'hidden'}:{ROOT}")
    prepared, trained, _, _, read = done.stdout.split("---\n")
    assert prepared.count("nothing keeps a bad file from taking too much time or memory") == 1
    assert "2 files in, 2 kept, 0 left out" in prepared
    assert "cannot be locked" in trained
    assert {path.suffix for path in (tmp_path / "o").iterdir()} == {".mid", ".wav"}
    assert (tmp_path / "session.mid").stat().st_size > 100
    said, *facts = read.splitlines()
    assert "nothing keeps a bad file from taking too much time or memory" in said, done.stderr
    assert facts == ["tune 60 None False True"], done.stderr


def test_a_preparation_that_cannot_be_locked_says_so_and_continues(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("musictx.system.fcntl", None)
    with Journal(tmp_path / "store", "recipe").locked():
        assert "cannot be locked" in capsys.readouterr().out
