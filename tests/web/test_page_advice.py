"""Whatever goes wrong, the page advises nothing that it lacks."""

import ast
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wishes import HYMN, quiet, voices

import musictx
from musictx.errors import SETTING, ConfigError, UserError
from musictx.generate.open_bundle import open_bundle
from musictx.web.advice import CONTROLS, on_page, page_clauses

WORDS = {"hint", "allowed", "why"}


def literals(node):
    """What a program may put there, `x` for what it computes."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)
    elif isinstance(node, ast.IfExp):
        yield from literals(node.body)
        yield from literals(node.orelse)


def advice():
    """All words of advice in the package that name a setting."""
    for path in Path(musictx.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "").endswith("Error"):
                given = [each.value for each in node.keywords if each.arg in WORDS]
                for each in (*given, *(node.args[1:] if getattr(node.func, "id", "") != "ConfigError" else ())):
                    yield from literals(each)
            elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in WORDS | {"advice"}:
                yield from literals(node.value)


ADVICE = sorted({text for text in advice() if SETTING.search(text)})
WITH_SETTINGS = st.sampled_from(ADVICE)
FIELDS = st.sampled_from(["density", "bar_seconds", "Continue.window", "Length.seconds", "strength", "top_p"])


def lacking(line):
    """Settings in a line that no control has."""
    labels = set(CONTROLS.values())
    return [m[0] for m in SETTING.finditer(line) if not any(f"{label}=" in line[: m.end()] for label in labels)]


def test_there_is_advice_to_try():
    assert len(ADVICE) > 40
    assert any("bar_seconds=" in text for text in ADVICE)


@given(WITH_SETTINGS, WITH_SETTINGS, WITH_SETTINGS, FIELDS)
def test_no_line_names_a_setting_that_the_page_lacks(one, other, third, field):
    for error in (ConfigError(field, got=5, allowed=one, why=other, hint=third), UserError("it is wrong", one)):
        line = on_page(error)
        assert lacking(line) == []
        assert not line.rstrip().endswith((",", ":", ";", " or"))


@pytest.mark.parametrize("text", ADVICE)
def test_each_advice_alone(text):
    assert lacking(on_page(UserError("it is wrong", text))) == []


def test_what_is_left_is_advice():
    long = ConfigError("chords", got="seed", why="x", allowed="less of it, or a longer bar_seconds=")
    assert on_page(long) == "chords=seed: x: give less of it"
    drums = UserError("a.mid: the seed has only drums", "drums=true takes them, or give one with other instruments")
    assert on_page(drums) == "a.mid: the seed has only drums: give one with other instruments"
    assert on_page(UserError("a=b, c=1.mid: not music", "give another out=")) == "a=b, c=1.mid: not music"
    assert on_page(ConfigError("lowest", got="C5", allowed="a note below highest=C3")) == (
        "lowest note=C5: give a note below highest note=C3"
    )
    assert on_page(ConfigError("max_tokens", got=5, allowed="more")).startswith("max tokens 5: give more")
    assert page_clauses("as it was, or not") == "as it was, or not"


def test_bars_of_chords_around_a_melody_are_said_without_the_command_line(world, tmp_path):
    from untrained import write_harmoniser

    from musictx.web.session import Session
    from musictx.web.studio import Studio

    below = open_bundle(write_harmoniser(tmp_path / "v.safetensors", hide_source=0.1), continues=False)
    studio = Studio({"hymns": open_bundle(world.hymn_bundle)}, tmp_path, harmoniser=below)
    _, said = studio.harmonise(studio.example(Session(), HYMN), voices(chords="G | D"), quiet)
    assert "a bar of chords lasts" in said
    assert lacking(said) == []


@pytest.mark.skipif(find_spec("gradio") is None, reason="needs the extra web: pip install 'musictx[web]'")
def test_the_page_has_every_control_that_a_line_may_name(world, filling, tmp_path, monkeypatch):
    from untrained import write_harmoniser

    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path))
    from musictx.web.page import Page
    from musictx.web.studio import Studio
    from musictx.web.uploads import Uploads

    below = open_bundle(write_harmoniser(tmp_path / "v.safetensors", hide_source=0.1), continues=False)
    studio = Studio({"able": open_bundle(filling)}, tmp_path, harmoniser=below)
    page = Page(studio, "", Uploads(tmp_path / "uploads", studio.limits))
    labels = [getattr(block, "label", None) or "" for block in page.blocks.blocks.values()]
    assert [name for name in CONTROLS.values() if not any(label.startswith(name) for label in labels)] == []
