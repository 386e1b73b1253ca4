"""`--help` says every setting of every command, and what it means."""

from dataclasses import fields, is_dataclass

import pytest
from apps import APPS, SCHEMAS
from conftest import ROOT, refused

from musictx.cli import names as names_of_commands
from musictx.cli import rows
from musictx.config.app import command_help
from musictx.config.command import find
from musictx.config.model import schema_of
from musictx.config.train import TrainConfig

LSTM = ("train", ["model=lstm"], "recurrent")


def names(schema, model, prefix=""):
    for each in fields(schema):
        group = model if (schema, each.name) == (TrainConfig, "model") else each.type
        if is_dataclass(group):
            yield from names(group, model, f"{prefix}{each.name}.")
        else:
            yield f"{prefix}{each.name}"


def said(text):
    """Setting -> its meaning, as a person reads them."""
    out, name = {}, None
    for line in text.splitlines():
        if line.startswith("  ") and line[2] != " ":
            given, _, meaning = line.strip().partition("  ")
            name = given.partition("=")[0]
            out[name] = meaning.strip()
        elif line.startswith("    "):
            out[name] += f" {line.strip()}"
    return {name: meaning.strip() for name, meaning in out.items()}


@pytest.mark.parametrize(("app", "words", "kind"), [*((a, [], "transformer") for a in APPS), LSTM])
def test_every_setting_has_a_meaning(app, words, kind, monkeypatch):
    monkeypatch.setenv("COLUMNS", "90")
    text = command_help(find(app), words)
    meanings = said(text)
    settings = list(names(SCHEMAS[app], schema_of(kind)))
    assert [name for name in settings if not meanings.get(name)] == []
    assert not {"model.n_heads", "model.recall"} <= set(meanings)  # the settings of one kind alone
    assert text.startswith(f"musictx {app.replace('_', ' ')}: ")
    prose = [line for line in text.splitlines() if "=" not in line and "…" not in line]
    assert max(map(len, prose)) <= 90


def test_a_setting_is_said_with_its_value_and_a_group_with_its_presets(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    text = command_help(find("generate"), ["sampler=plain", "variations=7"])
    lines = text.splitlines()
    assert "  variations=7                    continuations of each seed" in lines
    assert any(line.startswith("  sampler.guard=false             ") for line in lines)
    assert "Presets: sampler=auto, nucleus, plain" in " ".join(text.split())
    meanings = said(text)
    assert meanings["seed_midi"].startswith("a file, a folder or a pattern")
    assert "  midi=???" in command_help(find("attend"), [])
    assert "20 seconds" in meanings["length_seconds"]
    many = said(command_help(find("train"), []))["experiment"]
    recipes = ", ".join(sorted(path.stem for path in (ROOT / "conf/experiment").iterdir()))
    assert many == f"many settings at once: {recipes}; null: none"


def test_help_of_a_command_with_words_that_are_mistaken(tmp_path):
    assert "trainer=tpu: " in refused(["musictx", "train", "--help", "trainer=tpu"], tmp_path)


def test_the_first_screen_has_a_line_for_every_command():
    lines = rows().splitlines()
    assert [line.split()[0] for line in lines] == names_of_commands()
    assert all(line[:17].strip() and len(line[17:]) > 20 and len(line) <= 120 for line in lines)
