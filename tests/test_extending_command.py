"""The command of docs/extend/command.md, as written there: a person's own file is a command."""

import re

import pytest
from conftest import ROOT, ok, refused

from musictx.music.read import read_midi

TEXT = (ROOT / "docs/extend/command.md").read_text()
(CODE,) = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
COMMANDS = [line.split() for line in re.findall(r"^    (musictx .*)$", TEXT, re.MULTILINE)]


@pytest.fixture
def place(world, tmp_path):
    (tmp_path / "transpose.py").write_text(CODE)
    (tmp_path / "my.mid").write_bytes(world.seed.read_bytes())
    return tmp_path


def test_it_runs_and_has_help(place):
    run, help_ = COMMANDS
    ok(run, place)
    assert (read_midi(place / "moved.mid").pitch == read_midi(place / "my.mid").pitch + 3).all()
    text = ok(help_, place).stdout
    assert "semitones=12" in text
    assert "how far up; a negative number moves down" in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["midi=my.mid", "semitones=99"], "semitones=99: give -24 to 24"),
        (["my.mid", "semitone=1"], "did you mean semitones"),
        (["my.mid", "other.mid"], "midi=my.mid: other.mid is a second word"),
        ([], "midi="),
    ],
)
def test_its_mistakes_are_one_line(place, words, said):
    assert said in refused(["musictx", "transpose.py", *words], place)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("x = 1", "no COMMAND"),
        ("1 / 0", "ZeroDivisionError"),
        (None, "no such file"),
        (CODE.replace('main="midi"', 'main="file"'), "'file'"),
    ],
)
def test_a_file_that_is_no_command(tmp_path, code, said):
    if code is not None:
        (tmp_path / "mine.py").write_text(code)
    assert said in refused(["musictx", "mine.py", "midi=x"], tmp_path)
