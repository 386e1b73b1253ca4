"""`make docs`: what its check finds, planted; the docstrings as they are; the pages of the front door."""

import re
import shutil
import sys

from conftest import ROOT

import musictx

sys.path.insert(0, str(ROOT / "tools"))
from docstrings import ERRORS, mistakes
from reference import dead_links, render, write


def test_no_docstring_is_mistaken():
    assert mistakes(ROOT) == []


SILENT = "    pass\n"
PLANTED = {  # of a name that `import musictx` gives: what is put in the place of what, and the line that tells
    "Score": [
        ("by `factor`", "by `slower`", "Score.stretch: `slower` is not there"),
        ('        """When the last note ends; 0 without notes."""\n', "", "Score.duration_s: no docstring"),
        ('"""No notes."""', '"""No\n        notes."""', "Score.empty: say it in one line"),
        (
            "too.\n\n        Raises:\n            ",
            "too.\n\n        Raises ",
            "Score.transpose: write Raises as a",
        ),
    ],
    "Music": [("score: Score  # all of its notes", "score: Score", "Music.score: no comment behind it")],
    "Player": [("    `bundle` is", "    `bundles` is", "load: `bundles` is not there")],
    "UserError": [('    """Notes or ids that a vocabulary cannot hold."""\n', SILENT, "TokenError: no docstring")],
}
ANYWHERE = {
    "`primers`": "`primers` is not there",
    "`musictx.Scores`": "`musictx.Scores` is not there",
    "`music/scores.py`": "`music/scores.py` is not there",
    "`musictx compose`": "`musictx compose` is not there",
    "`sead_midi=x`": "`sead_midi=x` is not there",
    "`Score.onsets_s`": "`Score.onsets_s` is not there",
    "`musictx\n    compose`": "`musictx compose` is not there",
    "`alone": "a backtick stands alone",
    "Raises NotesError.": "there is no NotesError",
}


def test_what_is_planted_is_told_with_its_place_and_nothing_else(tmp_path):
    shutil.copytree(ROOT / "musictx", tmp_path / "musictx", ignore=shutil.ignore_patterns("bundles", "__pycache__"))
    (tmp_path / "studies").symlink_to(ROOT / "studies")
    lines = []
    for name, changes in PLANTED.items():
        file = tmp_path / f"{musictx.PLACES[name].replace('.', '/')}.py"
        for old, new, line in changes:
            assert file.read_text().count(old) == 1, old
            file.write_text(file.read_text().replace(old, new))
            lines.append(f"{musictx.PLACES[name]}.{line}")
    (tmp_path / "musictx" / "more.py").write_text(
        "".join(f'def f{k}():\n    """Of {text}."""\n' for k, text in enumerate(ANYWHERE))
    )
    lines += ["musictx.more: no docstring", *(f"musictx.more.f{k}: {line}" for k, line in enumerate(ANYWHERE.values()))]
    told = mistakes(tmp_path)
    assert [line for line in lines if not any(each.startswith(line) for each in told)] == []
    assert len(told) == len(lines)


def test_the_front_door_comes_first_and_its_links_lead_somewhere(tmp_path):
    pages = render([musictx.__name__, ERRORS])
    assert list(pages) == ["musictx.html", f"{ERRORS.replace('.', '/')}.html", "index.html", "search.js"]
    assert "url=./musictx.html" in pages["index.html"]
    door = pages["musictx.html"]
    places = ("load", "Player.continue_midi", "Music.write", "Score.onset_s", "UserError", "train")
    assert re.findall(rf'id="({"|".join(places)})"', door) == [*places]  # in this order
    assert "when the new music begins" in door  # the comment behind a field
    assert '<a href="#Score">' in door
    assert list(dead_links(pages)) == []
    pages["musictx.html"] += '<a href="gone.html">x</a><a href="#Gone">x</a>'
    assert list(dead_links(pages)) == ["musictx.html: gone.html", "musictx.html: #Gone"]
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "old.html").touch()
    write(pages, tmp_path / "docs")
    assert {path.name for path in tmp_path.glob("docs/**/*") if path.is_file()} == {
        "musictx.html",
        "errors.html",
        "index.html",
        "search.js",
    }
    assert [path.name for path in tmp_path.iterdir()] == ["docs"]
