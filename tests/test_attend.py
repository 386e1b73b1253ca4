"""musictx attend, through the real command."""

import re

import pytest
from conftest import ok, refused

from musictx.attend import find_note
from musictx.errors import ConfigError
from musictx.notes.score import Score

SCORE = Score([0.0, 1.0, 1.0, 2.5], [1.0, 2.0, 2.0, 3.0], [60, 62, 64, 65], [80] * 4)


@pytest.mark.parametrize(
    ("at", "note"), [(None, 3), ("0", 0), ("0.5", 1), ("1.0", 1), ("1", 1), ("2.5", 3), ("note1", 0), ("note3", 2)]
)
def test_a_note_is_named_by_its_second_or_its_number(at, note):
    assert find_note(SCORE, at) == note


@pytest.mark.parametrize("at", ["2.6", "-1", "note0", "note5", "note1.5", "soon", "", "nan", "inf"])
def test_a_note_that_is_not_there(at):
    with pytest.raises(ConfigError, match=f"at={at}: give a second up to 2.50, .* or note1 to note4"):
        find_note(SCORE, at)


@pytest.mark.parametrize("name", ["tune", "hymn"])
def test_pictures_and_a_table(world, tmp_path, name):
    bundle, midi = (world.bundle, world.seed) if name == "tune" else (world.hymn_bundle, world.hymn)
    args = ["musictx", "attend", f"bundle={bundle}", f"midi={midi}", "out=look"]
    out = ok([*args, "layer=0", "at=3", "format=svg"], tmp_path).stdout
    stem = midi.stem
    assert sorted(p.name for p in (tmp_path / "look").iterdir()) == [f"{stem}-attention.svg", f"{stem}-heads.svg"]
    assert re.search(r"^note \d+ of \d+, at [34]\.\d\d s; means over \d+ notes up to it$", out, re.M)
    rows = re.findall(r"^0 +(\d) +(\d+\.\d\d) +(\d+\.\d)%", out, re.M)
    assert [row[0] for row in rows] == ["0", "1"]
    assert all(0 < float(s) < 4.5 and 0 < float(share) <= 100 for _, s, share in rows)
    assert "what it looks at, layer 0" in out
    text = (tmp_path / "look" / f"{stem}-attention.svg").read_text()
    assert "head 0, heaviest " in text
    assert "head 1, heaviest " in text
    line = refused([*args, "format=svg"], tmp_path)
    assert line.endswith(f"{stem}-attention.svg exists already: give another out= or overwrite=true")
    again = ok([*args, "format=svg", "overwrite=true", "layer=0", "head=1", "at=note9"], tmp_path).stdout
    assert "\nnote 9 of " in again
    tied = "hymn0.mid: of its 41 notes the grid of sixteenths hears 2 as held instead of struck again\n"
    assert (tied in again) == (name == "hymn")
    assert "layer 0 head 1" in again


@pytest.mark.parametrize(
    ("arg", "text"),
    [
        ("layer=1", "layer=1: the model has layers 0 to 0"),
        ("head=0", "head=0 of which layer\\? give layer=0 to 0 too"),
        ("at=99", "at=99: give a second up to .* or note1 to note"),
        ("format=bmp", "format=bmp: choose one of png, svg, pdf"),
        ("midi=none.mid", "none.mid: no such file"),
        ("motif_notes=0", "motif_notes=0: give 2 to 32"),
    ],
)
def test_mistakes_are_one_line(world, tmp_path, arg, text):
    args = [f"bundle={world.bundle}", f"midi={world.seed}", "out=look", "max_tokens=64", arg]
    assert re.search(text, refused(["musictx", "attend", *args], tmp_path))
    assert not (tmp_path / "look").exists()
