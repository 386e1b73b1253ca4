"""`make docs`: the site is whole, needs no other place, and has the reference of all that there is."""

import os
import re
import sys
from pathlib import Path

import pytest
from apps import APPS
from conftest import ROOT

import musictx
from musictx.errors import UserError

sys.path.insert(0, str(ROOT / "tools"))
import website


@pytest.mark.parametrize(
    ("page", "text", "on_site"),
    [
        ("docs/play/a.md", "[a](../lessons.md#rnn)", "[a](../lessons.md#rnn)"),
        ("docs/play/a.md", "[a](../../LICENSE)", "[a](../repository/LICENSE)"),
        ("docs/results/a.md", "![a](../img/elise.png)", "![a](../img/elise.png)"),
        ("docs/index.md", '<audio src="img/elise-1.flac">', '<audio src="img/elise-1.flac">'),
        ("README.md", "[a](docs/lessons.md)", "[a](../lessons.md)"),
        (
            "docs/a.md",
            "`[1](nowhere.md)` [b](https://example.org) [c](#d)",
            "`[1](nowhere.md)` [b](https://example.org) [c](#d)",
        ),
    ],
)
def test_a_link_leads_to_the_file_that_it_leads_to_in_the_repository(page, text, on_site):
    assert website.linked(Path(page), text)[0] == on_site


def test_a_link_to_no_file_is_refused():
    with pytest.raises(UserError, match=r"docs/a\.md: \.\./nowhere\.py is no file"):
        website.linked(Path("docs/a.md"), "[a](../nowhere.py)")


def test_the_site_is_whole_and_asks_no_other_place(tmp_path):
    site = website.build(tmp_path).parent
    files = {path.relative_to(site).as_posix() for path in site.rglob("*")}
    texts = {path: path.read_text() for path in site.rglob("*.html") if path.name != "404.html"}
    assert len(texts) > 40
    for path, text in texts.items():
        asked = re.findall(r'<(?:script|link|img|audio|iframe)\b[^>]*?(?:src|href)="([^"]+)"', text)
        assert [each for each in asked if re.match("https?:|//", each)] == [], path
        for link in asked + re.findall(r'<a\b[^>]*?href="([^"]+)"', text):
            to = link.partition("#")[0].partition("?")[0]
            if to and not re.match(r"\w+:", to):
                there = os.path.relpath(os.path.normpath(path.parent / to), site)
                assert there == "." or there in files, (path, link)
    python = (site / "reference/python/index.html").read_text()
    for name in ("load", "Model.continue_midi", "Music.write", "Score.onset_s", "UserError", "train"):
        assert re.search(rf'id="musictx\.(?:\w+\.)*{name}"', python), name
    settings = (site / "reference/settings/index.html").read_text()
    assert {app.replace("_", "-") for app in APPS} <= set(re.findall(r'<h2 id="([\w-]+)"', settings))
    rooms = {file.parent.name for file in Path(musictx.__file__).parent.glob("*/__init__.py")}
    assert rooms == {page.name for page in (site / "reference/rooms").iterdir()}
