"""What the house promises to those who come in: commands that exist, one version, links that lead somewhere."""

import re
import tomllib

import pytest
import yaml
from conftest import ROOT

from musictx.analysis.likelihood import negative_log_likelihood
from musictx.data.store import Store
from musictx.playing.opening import open_bundle
from musictx.playing.player import Player

MAKE = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", ".github/PULL_REQUEST_TEMPLATE.md", "docs/extending.md"]


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


def test_the_workflow_runs_the_two_commands_on_two_pythons():
    (job,) = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())["jobs"].values()
    commands = [step["run"].split()[:2] for step in job["steps"] if "run" in step]
    assert [words for words in commands if words[0] == "make"] == [["make", "test"], ["make", "demo"]]
    assert job["strategy"]["matrix"]["python"] == ["3.11", "3.12"]
    assert job["timeout-minutes"] <= 90


def test_what_is_checked_before_a_commit_is_what_make_lint_checks():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    tools = {re.sub(r"^\.venv/bin/", "", hook["entry"]).split(" --")[0].strip() for hook in hooks}
    linted = re.search(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)[1]
    assert tools == {
        re.sub(r"^\$\(BIN\)/", "", line.strip()).split(" --")[0].removesuffix(" .") for line in linted.splitlines()
    }


def test_a_store_and_a_bundle_of_0_1_are_read_as_they_were():
    """CHANGELOG.md promises it. The files are never made anew: what cannot read them breaks the promise."""
    frozen = ROOT / "tests" / "frozen" / "0.1"
    store, opened = Store(frozen / "store"), open_bundle(frozen / "model.safetensors")
    tokens = {name: (len(info.pieces), info.tokens) for name, info in store.manifest.splits.items()}
    assert tokens == {"train": (4, 1084), "validation": (1, 259), "test": (1, 260)}
    assert store.tokenizer.decode(store.split("test")[0]).pitch[:8].tolist() == [79, 53, 62, 53, 57, 48, 50, 74]
    scored = negative_log_likelihood(opened.model, store.split("validation"), store.tokenizer, 32)
    assert scored.nll == pytest.approx(5.95908, abs=1e-4)
    player = Player(opened.model, opened.tokenizer, opened.header)
    (music,) = player.continue_score(None, length_tokens=24, seed=3)
    assert music.score.pitch.tolist() == [10, 99, 6, 86, 88, 105, 4, 50, 84, 89, 95, 107, 111]
