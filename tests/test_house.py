"""Links, files and make targets that pages name, the version, results, and what `make quick` leaves out."""

import ast
import os
import re
import subprocess
import tomllib
from multiprocessing import Process

import pytest
from conftest import ROOT
from lightning import LightningModule, Trainer
from quick import only_quick

MAKE = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", ".github/PULL_REQUEST_TEMPLATE.md"]
PAGES += [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs").rglob("*.md"))]
PACKAGE = ROOT / "musictx"


def test_the_changelog_ends_with_the_version_that_is_built():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    newest = re.findall(r"^## (\S+),", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[0]
    assert newest == version


def places(text):
    """What a link may name within a page: its headings, as GitHub writes them, and its own anchors."""
    headings = re.findall(r"^#+ (.*)", text, flags=re.MULTILINE)
    named = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return named | set(re.findall(r'<a id="([^"]+)"></a>', text))


@pytest.mark.parametrize("page", PAGES)
def test_every_link_and_every_make_target_of_a_page_is_there(page):
    text = (ROOT / page).read_text()
    for link in re.findall(r"\]\((?!https?://)([^)]+)\)", text):
        path, _, place = link.partition("#")
        there = (ROOT / page).parent / path if path else ROOT / page
        assert there.exists(), link
        assert not place or place in places(there.read_text()), link
    for target in re.findall(r"`?\bmake (\w+)\b(?=`|  #|$)", text, flags=re.MULTILINE):
        assert target in MAKE, target


@pytest.mark.parametrize("page", ["words", "structure", "extend/tokenizer", "extend/position", "extend/model"])
def test_every_file_that_a_page_names_is_there(page):
    named = re.findall(r"`([\w/]+\.(?:py|js))`", (ROOT / "docs" / f"{page}.md").read_text())
    assert named
    folders = [ROOT, PACKAGE]
    if page.startswith("extend/"):  # a table leaves out the folder that it is about
        folders += [PACKAGE / "tokenizers", PACKAGE / "model" / "position"]
    assert not [name for name in named if not any((folder / name).exists() for folder in folders)]


@pytest.mark.parametrize(
    ("what", "act"),
    [
        ("process", lambda: subprocess.run(["true"])),
        ("process", lambda: Process(target=print).start()),
        ("process", lambda: os.fork() or os._exit(0)),
        ("trains", lambda: Trainer(logger=False, enable_checkpointing=False, accelerator="cpu").fit(LightningModule())),
    ],
)
def test_make_quick_leaves_a_test_where_it_would_start_a_process_or_train(what, act):
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(r"^quick:(?:.*\n)(?:\t.*\n)*\t.*\$\(PYTEST\) --quick", makefile, re.MULTILINE)
    with only_quick(), pytest.raises(pytest.skip.Exception, match=f"^not quick: .*{what}$"):
        act()


def test_every_line_that_is_printed_is_made_printable():
    """Names of files and of tracks come from strangers; `say` lets none of them steer the terminal."""
    files = [path for folder in (PACKAGE, ROOT / "studies", ROOT / "benchmarks") for path in folder.rglob("*.py")]
    assert len(files) > 200
    prints = {
        path.relative_to(ROOT).as_posix()
        for path in files
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Name) and node.id == "print"
    }
    assert prints == {"musictx/terminal.py"}


def test_no_result_names_a_place_of_the_machine_that_made_it():
    results = sorted((ROOT / "studies/results").rglob("*.json"))
    assert results
    for path in results:
        assert not re.findall(r'": "/[^"]*"', path.read_text()), path
