"""studies/evidence.py: every command that it gives exists."""

import shutil
import sys

import evidence
from conftest import ROOT


def test_each_part_runs_scripts_that_are_there(monkeypatch, tmp_path):
    called, placed, scored = list[str](), list[str](), list[bool]()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MUSICTX_SHOTS", "")  # which the script changes
    monkeypatch.setattr(evidence, "stores", lambda archives, _: archives)
    monkeypatch.setattr(evidence, "call", called.append)
    monkeypatch.setattr(shutil, "copy", lambda _, shown: placed.append(shown))
    monkeypatch.setattr(evidence, "score_piano", lambda *of: scored.append(of[-1]))
    words = ["--archive", "m.zip", "--pop", "p.zip", "--only", "likelihood", "page", "alive", "guidance"]
    monkeypatch.setattr(sys, "argv", ["evidence.py", *words])
    evidence.main()
    scripts = [next(word for word in command.split() if word.endswith(".py")) for command in called]
    assert scripts == ["tests/web/test_browser.py", "studies/alive.py", "studies/guidance.py"]
    assert all((ROOT / name).is_file() for name in [*scripts, *placed])
    assert (len(placed), scored) == (3, [False])
    assert not any("--test" in command for command in called)
