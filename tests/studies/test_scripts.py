"""All scripts of studies/: where they may write, and that the commands of rows and of docstrings can be given."""

import re
import shlex
import sys
from argparse import ArgumentParser
from importlib import import_module
from pathlib import Path

import pages
import pytest
import report
import shared
from conftest import ROOT
from trials import KEPT, state, trial

from musictx.config import register
from musictx.config.app import settings
from musictx.config.command import OWN, find
from musictx.config.words import sort_words
from musictx.errors import UserError
from musictx.model.header import read_header
from musictx.model.packaged import BUNDLES, FOLDER, bundle_path

STUDIES = {path.stem: path.read_text() for path in sorted((ROOT / "studies").glob("*.py"))}
SCRIPTS = [name for name, text in STUDIES.items() if "__main__" in text]
WRITERS = [name for name in SCRIPTS if name != "report"]  # which writes its page and its rows, as it says
INPUTS = {"apart_from", "archives", "beside", "store", "stores", "midi", *shared.ARCHIVES}
COMMANDS = {row["command"] for row in report.all_rows() if row["command"] and not pages.is_history(row)}
COMMAND = re.compile(r"^    (?:\w+=\S+ )*python studies/(\w+)\.py([^#\n]*)", re.MULTILINE)


class Read(Exception):
    """What a script has read of its command, before it does anything."""


def parser_of(name, monkeypatch):
    def stop(parser, *_):
        raise Read(parser)

    with monkeypatch.context() as within:
        within.setattr(ArgumentParser, "parse_args", stop)
        within.setattr(sys, "argv", [f"{name}.py"])
        with pytest.raises(Read) as found:
            import_module(name).main()
    return found.value.args[0]


def read(name, words, monkeypatch):
    """The options that a script reads of these words, without a look at files."""
    parse = ArgumentParser.parse_args

    def stop(parser, given=None):
        raise Read(parse(parser, given))

    with monkeypatch.context() as within:
        within.setattr(ArgumentParser, "parse_args", stop)
        within.setattr(sys, "argv", [f"{name}.py", *words])
        with pytest.raises(Read) as found:
            import_module(name).main()
    return found.value.args[0]


@pytest.mark.parametrize("name", WRITERS)
def test_a_script_has_one_place_to_write_which_is_its_own(name, monkeypatch):
    parser = parser_of(name, monkeypatch)
    paths = {action.dest for action in parser._actions if action.type is Path}
    assert paths - INPUTS == {"out"}
    out = parser.get_default("out")
    assert (out.parent, parser.get_default("overwrite")) == (Path("outputs"), False)
    assert out not in {parser_of(each, monkeypatch).get_default("out") for each in WRITERS if each != name}


@pytest.fixture
def words(tmp_path, monkeypatch):
    """`words(name, out)`: a command that only lacks a place to write."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(shared, "Store", lambda *_: pytest.fail("it began to work"))

    def words(name, out):
        needed = [action.dest for action in parser_of(name, monkeypatch)._actions if action.required]
        for each in needed:
            Path(each).touch()
        return [*(word for each in needed for word in (f"--{each}", each)), "--out", out]

    return words


@pytest.mark.parametrize("name", WRITERS)
def test_no_script_writes_into_the_package_nor_where_other_files_are(name, words, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/music.mid").touch()
    (tmp_path / "link").symlink_to(FOLDER)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / shared.MARK).write_text("another.py\n")
    (tmp_path / "other/runs.json").touch()
    before = state(*KEPT)
    for out in (FOLDER, FOLDER / "new", FOLDER.parent, "link", "link/new"):
        for more in ([], ["--overwrite"]):
            with pytest.raises(UserError, match="is inside the package"):
                trial(import_module(name), *words(name, out), *more)
    for out in ("mine", "other", ".", ROOT / "studies/results", ROOT / "docs"):
        with pytest.raises(UserError, match=rf"--out \S+ has files that {name}\.py did not make, as .*--overwrite"):
            trial(import_module(name), *words(name, out))
    with pytest.raises(UserError, match=r"music\.mid is a file"):
        trial(import_module(name), *words(name, "mine/music.mid"))
    assert state(*KEPT) == before
    assert not (FOLDER / "new").exists()
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["music.mid"]


def test_a_folder_stays_a_scripts_own_and_says_what_it_has(tmp_path, capsys):
    out = tmp_path / "a/b"
    shared.take(out, "a.py", False)
    shared.take(out, "a.py", False)
    assert capsys.readouterr().out == ""
    (out / "deep").mkdir()
    (out / "deep/runs.json").touch()
    shared.take(out, "a.py", False)
    assert capsys.readouterr().out.startswith(f"{out}: found 1 files; what is there is not made again")
    with pytest.raises(UserError, match=r"deep/runs\.json"):
        shared.take(out, "b.py", False)
    shared.take(out, "b.py", True)
    shared.take(out, "b.py", False)


def test_settings_that_a_script_gives_itself_are_refused(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["x.py", "trainer.lr=1", "++out=there", "--test"])
    assert shared.asked(shared.options("", "test"))[1] == ["trainer.lr=1", "++out=there"]
    with pytest.raises(UserError, match=r"\+\+out=there: the script says this itself"):
        shared.asked(shared.options("", "test"), "out")


@pytest.mark.parametrize("command", sorted(each for each in COMMANDS if "musictx " in each))
def test_musictx_can_read_the_command_of_a_row(command, monkeypatch):
    name, *words = shlex.split(command.partition("musictx ")[2])
    if name.endswith(".py"):
        found = import_module(Path(name).stem).COMMAND
        monkeypatch.setitem(OWN, found.name, found)
        register(found)
        name = found.name
    settings(name, *sort_words(find(name), words)[0])


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_can_read_the_commands_of_its_docstring(name, monkeypatch):
    doc = import_module(name).__doc__ or ""
    assert COMMAND.search(doc), "it says how it is run"
    for script, words in COMMAND.findall(doc):
        assert read(script, shlex.split(words), monkeypatch)


def test_a_strength_that_a_row_or_a_bundle_claims_is_tried(monkeypatch):
    claimed = dict[str, set[float]]()
    for row in report.all_rows():
        if row["command"] in COMMANDS and "studies/guidance.py" in row["command"]:
            said = re.findall(r"guidance (\d[\d.]*)", row["claim"])
            said += [row["figure"]] * row["claim"].startswith("seed guidance")
            claimed.setdefault(row["command"], set()).update(map(float, said))
    models = dict[str, list[float]]()
    for command, strengths in claimed.items():
        args = read("guidance", shlex.split(command.partition(".py ")[2]), monkeypatch)
        assert strengths <= {*args.strengths}, command
        models |= dict.fromkeys(args.models, args.strengths)
    for name in BUNDLES:
        own = read_header(bundle_path(name)).seed_guidance
        assert own is None or own in models[name]
