"""studies/evidence.py: every command that it gives exists, and what it makes is shown only where a person asks."""

import shutil
import subprocess
from pathlib import Path

import evidence
import pytest
import soundfile
from conftest import ROOT
from trials import trial

from musictx.errors import UserError


@pytest.fixture
def script(monkeypatch, tmp_path):
    """The script; its commands only make empty files. Returns the commands, whether each score has the test split, and
    the files that were copied."""
    called, scored, placed = list[list[str]](), list[bool](), list[Path]()
    made = [Path("o") / name for part in evidence.SHOWN.values() for name in part if "-test" not in name]

    def run(words, check):
        called.append(words[1:])
        for path in made:
            path.parent.mkdir(exist_ok=True)
            path.touch()
        return subprocess.CompletedProcess(words, 0)

    def ask(*words):
        trial(evidence, "--archive", "m.zip", "--pop", "p.zip", "--out", "o", *words)
        return called, scored, placed

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MUSICTX_SHOTS", "")  # which the script changes
    for name in ("m.zip", "p.zip"):
        Path(name).touch()
    monkeypatch.setattr(evidence, "stores", lambda archives, _: archives)
    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(evidence, "score_piano", lambda *of: scored.append(of[-1]))
    monkeypatch.setattr(soundfile, "read", lambda _: (0, 1))
    monkeypatch.setattr(soundfile, "write", lambda *_: None)
    monkeypatch.setattr(shutil, "copyfile", lambda _, shown: placed.append(shown))
    return ask


def test_each_part_runs_scripts_that_are_there(script):
    called, scored, placed = script("--only", "page", "alive", "guidance", "likelihood")
    scripts = [next(word for word in words if word.endswith(".py")) for words in called]
    assert scripts == ["tests/web/test_browser.py", "studies/alive.py", "studies/guidance.py"]
    assert all((ROOT / name).is_file() for name in scripts)
    assert called[1][1:] == ["--stores", "o/stores/maestro", "o/stores/pop", "--copies", "--out", "o/alive"]
    assert called[2][-2:] == ["--out", "o/guidance"]
    assert (scored, placed) == ([False], [])


def test_what_is_made_is_shown_if_a_person_asks(script):
    called, scored, placed = script("--test", "--place", "--only", "likelihood", "guidance")
    assert [words[-1] for words in called] == ["o/guidance", "--test"]
    assert scored == [True]
    names = ("piano-validation.json", "piano-test.json", "guidance/three.json")
    assert placed == [ROOT / "studies/results" / name for name in names]
    assert all(path.is_file() for part in evidence.SHOWN.values() for path in part.values())


def test_a_part_without_a_test_split_is_not_asked_for_it(script):
    with pytest.raises(UserError, match="--test: page, alive has no test split"):
        script("--test", "--only", "page", "alive")
