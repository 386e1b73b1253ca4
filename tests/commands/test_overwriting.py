"""No command writes over what is there unless a person asks for it, and each says so before its work."""

import ast
import os
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from shutil import copytree

import pytest

import musictx
from musictx.cli import names
from musictx.commands.prepare import CORPORA, command
from musictx.config.app import settings
from musictx.config.command import find
from musictx.errors import UserError
from musictx.files import check_new

OWN_FOLDERS = {  # they write a folder of theirs, which they look through before they begin
    *("train", "tune", "demo", *(f"prepare_{corpus}" for corpus in CORPORA)),
}
WRITTEN = {"out", "output", "record"}


def commands():
    for name in names():
        module = import_module(f"musictx.commands.{name}")
        yield from [command(corpus) for corpus in CORPORA] if name == "prepare" else [module.COMMAND]


@pytest.mark.parametrize("one", list(commands()), ids=lambda one: one.name)
def test_each_command_that_writes_can_be_told_to_overwrite_and_else_does_not(one):
    settings = {each.name for each in fields(one.schema)}
    if one.name in OWN_FOLDERS or not settings & WRITTEN:
        return
    assert "overwrite" in settings
    assert hasattr(one.run, "__wrapped__"), "only_new holds its files back"


BESIDE = {  # files that only we see, in folders of ours
    *("web/stage.py", "web/uploads.py", "data/store.py"),
}


def test_every_file_is_written_through_one_door():
    root = Path(musictx.__file__).parent
    found = []
    for path in root.rglob("*.py"):
        calls = (each for each in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(each, ast.Call))
        for to in (each.func for each in calls if isinstance(each.func, ast.Attribute)):
            if to.attr in ("write_text", "write_bytes") and ast.unparse(to.value) != "partial":
                found.append(path.relative_to(root).as_posix())
    assert {*found} <= BESIDE


@pytest.fixture
def place(world, tmp_path, monkeypatch):
    """A folder with a store and a file, in which commands run."""
    monkeypatch.chdir(tmp_path)
    copytree(world.store, tmp_path / "st")
    (tmp_path / "a.mid").write_bytes(world.seed.read_bytes())
    return tmp_path


WRITES = {  # a command, and a file that it would write
    "inspect store=st": "st-histograms.png",
    "inspect store=st out=o.png": "o.png",
    "evaluate bundle=BUNDLE data.path=st out=f.json": "f.json",
    "render midi=a.mid out=o.png": "o.png",
    "render midi=a.mid out=o.wav": "o.wav",
    "generate bundle=BUNDLE seed_midi=a.mid out=o length_seconds=1": "o/a-1.mid",
    "generate bundle=BUNDLE seed_midi=a.mid out=o length_seconds=1 png=true": "o/a.png",
    "attend bundle=BUNDLE midi=a.mid out=o": "o/a-heads.png",
    "similar bundle=BUNDLE midi=a.mid store=st out=o": "o/similar.json",
    "compare runs=[BUNDLE] store=st out=o": "o/gain.png",
    "listen bundles=[BUNDLE] store=st out=o.html": "o.html",
    "jam bundle=BUNDLE input=a.mid output=o.mid": "o.mid",
    "jam bundle=BUNDLE input=a.mid output=p.mid record=o.mid": "o.mid",
}


def run(words, world, *more):
    name, *rest = words.replace("BUNDLE", str(world.bundle)).split()
    if name == "train":
        musictx.train(*rest, *more)
    else:
        find(name).run(settings(name, *rest, *more))


@pytest.mark.parametrize("kind", ["file", "dangling", "loop"])
@pytest.mark.parametrize("words", WRITES)
def test_what_is_there_is_said_before_the_work_and_stays(words, kind, place, world, capsys):
    path = place / WRITES[words]
    path.parent.mkdir(exist_ok=True)
    if kind == "file":
        path.write_text("mine")
    else:
        path.symlink_to(path.name if kind == "loop" else "nowhere")
    before = sorted(place.rglob("*"))
    with pytest.raises(UserError, match="exists already"):
        run(words, world)
    assert sorted(place.rglob("*")) == before
    assert path.is_symlink() if kind != "file" else path.read_text() == "mine"


@pytest.mark.parametrize(
    "words", ["inspect store=st", "render midi=a.mid out=o.png", "evaluate bundle=BUNDLE data.path=st out=f.json"]
)
def test_whoever_asks_for_it_writes_over_it(words, place, world):
    path = place / WRITES[words]
    path.symlink_to(path.name)
    run(words, world, "overwrite=true")
    assert path.is_file()
    assert not path.is_symlink()
    whole = path.read_bytes()
    path.write_text("mine")
    run(words, world, "overwrite=true")
    assert path.read_bytes() == whole


FOLDERS = [
    *("generate bundle=BUNDLE seed_midi=a.mid", "attend bundle=BUNDLE midi=a.mid", "similar midi=a.mid store=st"),
    *(
        "compare runs=[BUNDLE] store=st",
        "train data.path=st trainer.max_steps=1",
        "demo store=st",
        "accompany melody=a.mid",
    ),
]


@pytest.mark.parametrize("kind", ["file", "dangling", "loop"])
@pytest.mark.parametrize("words", FOLDERS)
def test_what_is_in_the_way_of_a_folder_is_said_before_the_work(words, kind, place, world):
    (place / "o").write_text("mine") if kind == "file" else (place / "o").symlink_to("o" if kind == "loop" else "no")
    before = sorted(place.rglob("*"))
    with pytest.raises(UserError, match=r"^out=o: "):
        run(words, world, "out=o")
    assert sorted(place.rglob("*")) == before


def test_a_store_is_not_prepared_into_a_link_to_itself(place):
    (place / "o").symlink_to("o")
    with pytest.raises(UserError, match="^out=o: it is a link to itself"):
        musictx.prepare("folder", path=".", out="o")


@pytest.mark.parametrize("overwrite", [False, True])
def test_where_no_file_can_be_nothing_begins(tmp_path, overwrite):
    (tmp_path / "file").touch()
    (tmp_path / "folder.png").mkdir()
    for name, reason in (("file/a.png", "a file is in its way"), ("folder.png", "it is a folder")):
        with pytest.raises(UserError, match=reason):
            check_new(overwrite, tmp_path / name)
    check_new(overwrite, tmp_path / "new/deep/a.png")
    assert sorted(os.listdir(tmp_path)) == ["file", "folder.png"]
