"""What our own refusals, hints and help advise a person to type works, as it is advised."""

import ast
import re
import shlex
from dataclasses import fields, is_dataclass
from functools import cache
from typing import get_type_hints

import pytest
from apps import APPS
from conftest import ROOT
from omegaconf import OmegaConf

from musictx.config.app import compose, to_schema
from musictx.config.command import find
from musictx.config.fields import setting_keys
from musictx.errors import ConfigError
from musictx.setting import find_setting

ADVISED = ("allowed", "hint")  # of an error; UserError has its hint as the second word
GIVEN = re.compile(r"(?<![\w.…/=-])((?:[A-Z]\w*\.)?[a-z]\w*(?:\.\w+)*)=('[^']*'|\[[^\]]*\]|\{[^}]*\}|[^\s;,)`'\[{]+)")
EXAMPLE = re.compile(r"as in '([^']+)'|as in ([^;]+)$|(?<!\w)'([^']+)'(?!\w)")


def text_of(node):
    """The text of a string, with … for what is put into it."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(each) or "…" for each in node.values)
    return " ; ".join(filter(None, map(text_of, ast.iter_child_nodes(node))))


def advice():
    """Every text of the package that advises, in an error or beside one."""
    for file in sorted((ROOT / "musictx").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Error"):
                yield from map(text_of, node.args[1:])
                yield from (text_of(word.value) for word in node.keywords if word.arg in ADVISED)
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in ADVISED:
                yield text_of(node.value)


@cache
def words():
    """Each `key=value` that is advised, and a command that has this setting."""
    found = {}
    for text in advice():
        for name, value in GIVEN.findall(text):
            for app in APPS:
                key = setting_keys(app).get(name, name)
                setting = find_setting(find(app).schema, key)
                if setting and not re.search("…|^[A-Z]+$|^'…", value):
                    found[f"{key}={value}", setting[1].metadata.get("meaning")] = app
    return sorted((app, word) for (word, _), app in found.items())


def accepted(app, word):
    """The value that a command gets of a word, as the shell hands it on."""
    (typed_word,) = shlex.split(word) if "'" in word else [word]
    config = compose(app, [typed_word])
    for key in OmegaConf.missing_keys(config):
        several = find(app).takes_several and key == find(app).main
        OmegaConf.update(config, key, ["x"] if several else "x")
    key = typed_word.partition("=")[0]
    value = OmegaConf.select(config, key)
    to_schema(config, find(app).schema)
    return value


def test_what_is_advised_is_enough_to_look_at():
    assert {"overwrite=true", "objective=infill"} <= {word for _, word in words()}
    assert len(words()) > 30


@pytest.mark.parametrize(("app", "word"), words())
def test_a_setting_that_an_error_advises_is_taken(app, word):
    accepted(app, word)


def texts(schema, prefix=""):
    """Each setting that may be text, with its meaning."""
    for each in fields(schema):
        kind = get_type_hints(schema)[each.name]
        if is_dataclass(kind):
            yield from texts(kind, f"{prefix}{each.name}.")
        elif "str" in str(kind) and "list" not in str(kind):
            yield f"{prefix}{each.name}", each.metadata.get("meaning", "")


SETTINGS = {(key, meaning): app for app in APPS for key, meaning in texts(find(app).schema)}  # each once


def test_examples_in_help_are_taken_as_they_are():
    seen = set()
    for (key, meaning), app in SETTINGS.items():
        for example in filter(None, (a or c for a, _, c in EXAMPLE.findall(meaning))):
            seen.add(example)
            assert accepted(app, f"{key}={shlex.quote(example)}") == example, (app, key)
    assert {"F# minor", "C | Am F | G7", "0 3, 10 8"} <= seen


JUDGED = [  # by their group, as soon as it is made
    (key, app)
    for (key, _), app in SETTINGS.items()
    if hasattr((find_setting(find(app).schema, key.partition(".")[0]) or "x")[0], "__post_init__")
]
NONSENSE = ("?!", "| |", "0 ?", "1 C")
SAID = re.compile(r"(as in|such as|^one of) ((?:'[^']*'|[^';(])+)")


def test_examples_in_refusals_are_taken_as_a_shell_hands_them_on():
    seen = {}
    for app, key, nonsense in [(app, key, each) for key, app in JUDGED for each in NONSENSE]:
        try:
            accepted(app, f"{key}={shlex.quote(nonsense)}")
        except ConfigError as refusal:
            for how, said in SAID.findall(refusal.allowed):
                for example in [said] if how == "as in" else re.split(", | or ", said):
                    (word,) = shlex.split(example.strip(" ,").removesuffix(", or null"))
                    seen[word] = key
                    accepted(app, f"{key}={shlex.quote(word)}")
    expected = {"rules.scale": "F# minor", "control.chords": "C | Am F | G7", "control.key": "F# major"}
    assert {word: key for key, word in expected.items()}.items() <= seen.items()
