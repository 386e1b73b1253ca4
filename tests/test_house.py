"""What the house promises to those who come in: commands that exist, one version, links that lead somewhere."""

import ast
import os
import re
import subprocess
import tomllib
from functools import cache
from multiprocessing import Process

import pytest
import yaml
from conftest import ROOT
from lightning import LightningModule, Trainer
from quick import only_quick

MAKE = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
PYTORCHS = {"_step_supports_amp_scaling"}  # a name of its own, which an optimizer of ours has
PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", ".github/PULL_REQUEST_TEMPLATE.md", "docs/extending.md"]
PAGES += [f"docs/{name}.md" for name in ("words", "structure", "data", "training", "models")]
PACKAGE = ROOT / "musictx"


def names_of(file):
    """The names that a module defines: its classes, functions, attributes and settings."""
    nodes = list(ast.walk(ast.parse(file.read_text())))
    yield from (node.name for node in nodes if isinstance(node, ast.ClassDef | ast.FunctionDef))
    yield from (node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))


def test_the_changelog_ends_with_the_version_that_is_built():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    newest = re.findall(r"^## (\S+),", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[0]
    assert newest == version


@pytest.mark.parametrize("page", PAGES)
def test_every_link_and_every_make_target_of_a_page_is_there(page):
    text = (ROOT / page).read_text()
    for link in re.findall(r"\]\((?!https?://|#)([^)]+)\)", text):
        assert ((ROOT / page).parent / link.partition("#")[0]).exists(), link
    for target in re.findall(r"`?\bmake (\w+)\b(?=`|  #|$)", text, flags=re.MULTILINE):
        assert target in MAKE, target


def test_each_word_stands_once_and_every_file_name_and_setting_it_gives_is_there():
    entries = re.findall(r"^- \*\*(.+?)\*\*: (.*)$", (ROOT / "docs" / "words.md").read_text(), flags=re.MULTILINE)
    words = [word for word, _ in entries]
    assert sorted(words) == sorted(set(words))
    assert len(words) > 70
    schemas = [*(PACKAGE / "config").glob("*.py"), PACKAGE / "sampling" / "settings.py"]
    settings = {name for file in schemas for name in names_of(file)}
    for word, meaning in entries:
        given = re.findall(r"`([^`]+)`", meaning)
        paths = [PACKAGE / name for name in given if name.endswith(".py")]
        assert paths or word == "room", f"{word}: where does it live?"
        names = {name for path in paths for name in names_of(path)}  # each path is opened, so it exists
        for name in given:
            if setting := re.fullmatch(r"(?:\w+\.)?(\w+)=\w*", name):
                assert setting[1] in settings, f"{word}: no setting {name}"
            elif not name.endswith((".py", "/")):
                assert name in names, f"{word}: {name} is in none of its files"


@pytest.mark.parametrize("page", ["words", "structure", "extending"])
def test_every_file_that_a_page_names_is_there(page):
    named = re.findall(r"`([\w/]+\.(?:py|js))`", (ROOT / "docs" / f"{page}.md").read_text())
    assert len(named) > 15
    folders = [ROOT, PACKAGE]
    if page == "extending":  # its tables leave out the folder that they are about, and a person's file is in none
        folders += [PACKAGE / "tokenizers", PACKAGE / "model" / "position"]
        named.remove("blanks.py")
    assert not [name for name in named if not any((folder / name).exists() for folder in folders)]


def test_the_workflow_runs_the_two_commands_on_two_pythons():
    (job,) = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())["jobs"].values()
    commands = [step["run"].split()[:2] for step in job["steps"] if "run" in step]
    assert [words for words in commands if words[0] == "make"] == [["make", "test"], ["make", "demo"]]
    assert job["strategy"]["matrix"]["python"] == ["3.11", "3.12"]
    assert job["timeout-minutes"] <= 90


def test_what_is_checked_before_a_commit_is_what_make_lint_checks():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    tools = {re.sub(r"^\.venv/bin/", "", hook["entry"]).split(" --")[0].strip() for hook in hooks}
    (linted,) = re.findall(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    assert tools == {
        re.sub(r"^\$\(BIN\)/", "", line.strip()).split(" --")[0].removesuffix(" .") for line in linted.splitlines()
    }


@pytest.mark.parametrize(
    ("what", "act"),
    [
        ("starts a process", lambda: subprocess.run(["true"])),
        ("starts a process", lambda: Process(target=print).start()),
        ("starts a process", lambda: os.fork() or os._exit(0)),
        ("trains", lambda: Trainer(logger=False, enable_checkpointing=False, accelerator="cpu").fit(LightningModule())),
    ],
)
def test_make_quick_leaves_a_test_where_it_would_start_a_process_or_train(what, act):
    assert re.search(r"^quick:(?:.*\n)(?:\t.*\n)*\t.*pytest .*--quick", (ROOT / "Makefile").read_text(), re.MULTILINE)
    with only_quick(), pytest.raises(pytest.skip.Exception, match=f"^not quick: it {what}$"):
        act()


def defined(tree):
    """Names that begin with one underscore."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.alias) and not isinstance(getattr(node, "ctx", None), ast.Load | ast.Del):
            names = [getattr(node, key, None) for key in ("name", "id", "attr")]
            yield from (name for name in names if name and re.match("_[a-zA-Z]", name))


def named(tree):
    """What a file takes from elsewhere: attributes, imports, and the end of a dotted name in quotes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value.rpartition(".")[2]


@cache
def parsed(folder):
    files = {path: ast.parse(path.read_text()) for path in (ROOT / folder).rglob("*.py")}
    assert files, folder
    return files


def test_no_test_goes_through_a_private_door_of_the_package():
    private = {name for tree in parsed("musictx").values() for name in defined(tree)} - PYTORCHS
    assert len(private) > 200
    for folder in ("tests", "studies"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text()
            if private.intersection(re.findall(r"\b_\w+", text)):  # to parse all the others takes a second
                tree = ast.parse(text)
                assert private.intersection(named(tree)) - {*defined(tree)} == set(), path


def test_no_result_names_a_place_of_the_machine_that_made_it():
    results = sorted((ROOT / "studies/results").rglob("*.json"))
    assert results
    for path in results:
        assert not re.findall(r'": "/[^"]*"', path.read_text()), path


def test_no_helper_is_written_twice():
    """What two test files need stands in one, which both import."""
    written: dict[str, list[str]] = {}
    for path, tree in parsed("tests").items():
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("test_"):
                body = [ast.dump(each) for each in node.body[ast.get_docstring(node) is not None :]]
                written.setdefault("".join(body), []).append(f"{path.name}: {node.name}")
    assert [places for places in written.values() if len(places) > 1] == []
