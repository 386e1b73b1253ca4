"""studies/evidence.py: every command that it gives exists."""

import sys
from pathlib import Path

import evidence
from conftest import ROOT


def test_each_part_runs_scripts_that_are_there_on_stores_that_it_made(monkeypatch, tmp_path):
    called: list[list[str]] = []
    placed: list[Path] = []
    scored: list[bool] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MUSICTX_SHOTS", "")  # which the script changes
    for name in ("studies", "data_prep", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.setattr(evidence, "ROOT", tmp_path)
    monkeypatch.setattr(evidence, "call", called.append)
    monkeypatch.setattr(evidence, "place", lambda made, shown: placed.append(shown))
    monkeypatch.setattr(evidence, "score_all", lambda *of: scored.append(of[-1]))
    words = ["evidence.py", "--archive", "m.zip", "--pop", "p.zip", "--only", "likelihood", "page", "fills", "alive"]
    monkeypatch.setattr(sys, "argv", [*words, "guidance"])
    evidence.run()
    scripts = [next(word for word in words if word.endswith(".py")) for words in called]
    assert [name.rpartition("/")[2] for name in scripts] == [
        *("maestro.py", "pop909.py", "test_browser.py", "fill.py", "alive.py", "guidance.py")
    ]
    assert all((ROOT / name).is_file() for name in scripts)
    assert called[0][1] == f"path={tmp_path / 'm.zip'}"
    assert len(placed) == 4
    assert all((ROOT / shown).is_file() for shown in placed)
    assert scored == [False]
    assert not any("--test" in words for words in called)
