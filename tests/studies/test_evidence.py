"""studies/evidence.py: every command exists, and the card says what the results say."""

import json
import sys
from pathlib import Path

import evidence
import pytest


def test_each_part_runs_scripts_that_are_there_on_stores_that_it_made(monkeypatch, tmp_path, capsys):
    called: list[list[str]] = []
    monkeypatch.setattr(evidence, "call", called.append)
    monkeypatch.setattr(evidence, "place", lambda made, shown: None)
    monkeypatch.setattr(evidence, "STORES", tmp_path)
    words = ["evidence.py", "--archive", "m.zip", "--pop", "p.zip", "--only", "fills", "guidance", "alive"]
    monkeypatch.setattr(sys, "argv", words)
    evidence.run()
    scripts = [Path(words[0]) for words in called]
    assert [path.name for path in scripts] == [*("maestro.py", "pop909.py", "fill.py", "guidance.py", "alive.py")]
    assert all(path.is_file() for path in scripts)
    assert not any("--test" in words for words in called)
    known = json.loads((evidence.RESULTS / "piano-validation.json").read_text())["per_token"][0]
    assert f"validation: nats a token {known:.3f} (" in capsys.readouterr().out


def test_a_part_that_does_not_exist_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["evidence.py", "--archive", "m.zip", "--pop", "p.zip", "--only", "sound"])
    with pytest.raises(SystemExit):
        evidence.run()
    assert "choose from" in capsys.readouterr().err
