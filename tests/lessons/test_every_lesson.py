"""Each lesson is found without an import, small, and read from its command; what it teaches, its own test asserts."""

import ast
import re
import subprocess
import sys

import numpy as np
import pytest
from conftest import ROOT

from musictx.commands.lesson import LessonConfig, lesson
from musictx.errors import ConfigError
from musictx.lessons import Finding, lessons, run
from musictx.lessons.hymns import chords, hymns, lines, names, tonics

ROOM = ROOT / "musictx/lessons"


def test_the_hymns_are_music_of_four_voices_and_no_tune_is_on_both_sides():
    assert len(hymns()) > 4 * len(hymns(held_out=True)) - 5
    for held_out in (False, True):
        assert len(hymns(held_out)) == len(names(held_out)) == len(tonics(held_out))
        for grid in hymns(held_out):
            assert grid.shape[1] == 4
            assert set(np.unique(grid)) <= {-1, *range(36, 85)}
    tunes = [{run for grid in hymns(each) for run in runs(grid[:, 0])} for each in (False, True)]
    assert not tunes[0] & tunes[1]  # whatever they are called
    called = [
        {re.sub(r"[\d_]", "", name.rpartition("-")[2]).casefold() for name in names(each)} for each in (False, True)
    ]
    assert not called[0] & called[1]
    found = {name: grid for each in (False, True) for name, grid in zip(names(each), hymns(each), strict=True)}
    eventide = found["Abide_With_Me-Eventide"][:32:8].tolist()  # a half note a step, in E flat
    assert eventide == [[67, 63, 58, 51], [67, 62, 58, 46], [63, 63, 55, 48], [70, 63, 51, 43]]
    assert (lines(8) > 0).all()
    assert chords(4)[0].shape[1:] == (4, 4)


def runs(line):
    """Twelve intervals between notes of other pitch, in any key and rhythm."""
    steps = np.diff(line[line > 0])
    steps = steps[steps != 0]
    return {tuple(steps[n : n + 12].tolist()) for n in range(len(steps) - 11)}


def test_a_list_imports_no_lesson_and_no_pytorch():
    check = "from musictx.lessons import lessons; lessons(); import sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check]).returncode == 0


@pytest.mark.parametrize("name", lessons())
def test_a_lesson_is_one_small_file_of_one_idea(name):
    text = (ROOM / f"{name}.py").read_text()
    assert 40 <= text.count("\n") <= 180
    assert len(lessons()[name]) > 20
    assert (ast.get_docstring(ast.parse(text)) or "").count("\n") >= 2  # the formula, and its source


@pytest.mark.parametrize("name", lessons())
def test_the_page_has_each_lesson_with_its_picture(name):
    page = (ROOT / "docs/lessons.md").read_text()
    assert f"\n## {name}\n" in page
    assert f"(img/lessons/{name}.png)" in page
    assert (ROOT / f"docs/img/lessons/{name}.png").read_bytes().startswith(b"\x89PNG")


def test_a_lesson_is_the_same_each_time_and_names_files_that_are_there():
    first, again = run("scale", 0.1), run("scale", 0.1)
    assert isinstance(first, Finding)
    assert first.rows == again.rows


def test_the_command_lists_runs_and_refuses(tmp_path, capsys):
    lesson(LessonConfig())
    said = capsys.readouterr().out
    assert all(name in said for name in lessons())
    lesson(LessonConfig(name="scale", out=str(tmp_path / "new")))
    assert (tmp_path / "new/scale.png").stat().st_size > 5_000
    assert "lessons/scale.py" in capsys.readouterr().out
    with pytest.raises(ConfigError, match="name"):
        lesson(LessonConfig(name="scales", out=str(tmp_path)))
    with pytest.raises(ConfigError, match="format"):
        lesson(LessonConfig(name="scale", out=str(tmp_path), format="jpg"))


def test_only_its_command_imports_the_room():
    for file in (ROOT / "musictx").rglob("*.py"):
        if file.parent != ROOM and file.name != "lesson.py":
            assert "musictx.lessons" not in file.read_text(), file


def test_each_file_that_a_lesson_says_to_read_is_there():
    for name in lessons():
        for path in re.findall(r'"(\w+/[\w/]+\.py)"', (ROOM / f"{name}.py").read_text()):
            assert (ROOT / "musictx" / path).exists(), (name, path)


def test_the_map_leads_from_each_lesson_to_what_is_there():
    text = (ROOT / "docs/lessons.md").read_text().partition("## The map")[2]
    rows = [line.split("|")[2:6] for line in text.splitlines() if "](#" in line]
    assert {name for lesson, *_ in rows for name in re.findall(r"#(\w+)\)", lesson)} >= set(lessons())
    for name, toolkit, command, picture in rows:
        (which,) = re.findall(r"#(\w+)\)", name)
        paths = re.findall(r"`([\w/]+\.py)`", toolkit)
        assert not paths or any(f'"{path}"' in (ROOM / f"{which}.py").read_text() for path in paths), which
        for name, path in re.findall(r"`(\w+)`, `([\w/]+\.py)`", toolkit):
            defined = {getattr(node, "name", "") for node in ast.parse((ROOT / "musictx" / path).read_text()).body}
            assert name in defined or f"{name}:" in (ROOT / "musictx" / path).read_text(), (name, path)
        for kind in re.findall(r"\b(model|experiment)=(\w+)", command):
            assert (ROOT / "conf" / kind[0] / f"{kind[1]}.yaml").exists(), kind
        for name in re.findall(r"musictx (\w+)", command):
            assert (ROOT / "musictx/commands" / f"{name}.py").exists(), name
        assert "](img/lessons/" in picture
