"""MIREX's JSON: prompts that are read, generations that pass its checks, and what is refused."""

import json

import pytest

from musictx.errors import MidiError
from musictx.music.contest import generation, read_prompt
from musictx.music.notation.parts import Bar, Note


def prompt(tmp_path, *notes):
    path = tmp_path / "prompt.json"
    path.write_text(
        json.dumps({"prompt": [dict(zip(("start", "pitch", "duration"), note, strict=True)) for note in notes]})
    )
    return path


def test_a_prompt_is_five_bars_of_a_keyboard(tmp_path):
    found = read_prompt(prompt(tmp_path, (16, 72, 6), (16, 57, 14), (79, 60, 1), (12, 67, 4)))
    assert found.parts[0].notes == (Note(72, 24, 67), Note(96, 36, 72), Note(96, 84, 57), Note(474, 6, 60))
    assert found.keys == ()  # nobody said one
    assert (found.bars, found.end) == (tuple(Bar(96 * n, 4, 4) for n in range(5)), 480)


def test_a_generation_has_the_notes_of_the_twelve_bars_within_them():
    notes = [Note(480, 24, 40), Note(474, 6, 41), Note(1626, 96, 42), Note(482, 2, 43), Note(1632, 6, 44)]
    notes += [Note(492, 12, 40), Note(504, 6, 40)]  # while its key is down, and when it is up again
    found = json.loads(generation(notes))["generation"]
    assert found == [
        {"start": 80, "pitch": 40, "duration": 4},
        {"start": 80, "pitch": 43, "duration": 1},
        {"start": 84, "pitch": 40, "duration": 1},
        {"start": 271, "pitch": 42, "duration": 1},
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no JSON"),
        ("[" * 5000, "no JSON"),
        ("{}", "no list"),
        ('{"prompt": []}', "no list"),
        ('{"prompt": [3]}', "note 1 has start None"),
        ('{"prompt": [{"start": 80, "pitch": 60, "duration": 1}]}', "start 80"),
        ('{"prompt": [{"start": 0, "pitch": 128, "duration": 1}]}', "pitch 128"),
        ('{"prompt": [{"start": 0, "pitch": 60, "duration": 0}]}', "duration 0"),
        ('{"prompt": [{"start": true, "pitch": 60, "duration": 1}]}', "start True"),
        ('{"prompt": [{"start": 1.5, "pitch": 60, "duration": 1}]}', "start 1.5"),
    ],
)
def test_other_json_is_a_line(tmp_path, text, says):
    (tmp_path / "wrong.json").write_text(text)
    with pytest.raises(MidiError, match=says):
        read_prompt(tmp_path / "wrong.json")


def test_a_file_that_is_missing_or_huge_is_a_line(tmp_path):
    with pytest.raises(MidiError, match="No such file"):
        read_prompt(tmp_path / "none.json")
    (tmp_path / "huge.json").write_text(" " * 2**20 + "{}")
    with pytest.raises(MidiError, match="no list"):
        read_prompt(tmp_path / "huge.json")
