"""The two staves of a keyboard are one instrument, by whatever names programs tell them apart."""

import re
from dataclasses import replace
from xml.sax.saxutils import unescape

import pytest

from musictx.music.notation.midi import from_midi, to_midi
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Note, Part
from musictx.music.notation.read import read_notation
from musictx.music.notation.write import to_musicxml
from musictx.tokenizers.score import slots
from musictx.tokenizers.score.slots import slots_of

RIGHT = (Note(0, 48, 72), Note(0, 48, 76), Note(48, 48, 74))
LEFT = (Note(0, 24, 36), Note(24, 24, 64), Note(24, 24, 67), Note(48, 48, 43))  # goes far above middle C too


def hands(*names: str, program: int = 0) -> Notation:
    parts = tuple(Part(name, program, notes) for name, notes in zip(names, (RIGHT, LEFT), strict=True))
    return Notation(parts, (Bar(0, 4, 4),), 96)


@pytest.mark.parametrize(
    ("upper", "lower", "name"),
    [
        ("Right Hand", "Left Hand", ""),
        ("Piano RH", "Piano LH", "Piano"),
        ("Piano (R.H.)", "Piano (L.H.)", "Piano"),
        ("E-Piano - Right", "E-Piano - Left", "E-Piano"),
        ("Piano_right", "Piano_left", "Piano"),
        ("Piano 1", "Piano 2", "Piano"),
        ("Track 1", "Track 2", ""),
        ("treble", "bass", ""),
        ("upper:", "lower:", ""),
        ("Klavier rechte Hand", "Klavier linke Hand", "Klavier"),
        ("Main droite", "Main gauche", ""),
        ("", "", ""),
        ("Piano", "Piano", "Piano"),
        ("Piano 2 RH", "Piano 2 LH", "Piano 2"),
        ("Grand Piano [Staff 1]", "Grand Piano [Staff 2]", "Grand Piano"),
        ("R&B Piano RH", "R&B Piano LH", "R&B Piano"),
    ],
)
def test_hands_are_one_keyboard_by_any_names(upper, lower, name):
    score, _ = from_midi(to_midi(hands(upper, lower)))
    assert score.keyboards == [(0, 1)]
    assert not score.divided
    text, _ = to_musicxml(score)
    assert text.count(b"<score-part ") == 1
    assert set(re.findall(r"<part-name>(.*?)</part-name>", unescape(text.decode()))) <= {name}
    again, _ = read_notation(text, "musicxml")
    assert [part.notes for part in again.parts] == [RIGHT, LEFT]


@pytest.mark.parametrize(
    ("upper", "lower", "program"),
    [("Melody", "Chords", 0), ("Piano", "Bass", 0), ("Violin RH", "Piano LH", 0), ("Right Hand", "Left Hand", 24)],
)
def test_other_names_and_sounds_are_two_instruments(upper, lower, program):
    assert from_midi(to_midi(hands(upper, lower, program=program)))[0].keyboards == []


@pytest.mark.parametrize(("first", "second"), [("Left", "Right"), ("Piano LH", "Piano RH"), ("", "")])
def test_the_lower_hand_may_come_first(first, second):
    """Its track stays the first one, and the models hear it as the left hand."""
    parts = Part(first, 0, LEFT), Part(second, 0, RIGHT)
    score, _ = from_midi(to_midi(Notation(parts, (Bar(0, 4, 4),), 96)))
    assert slots_of(score) == [slots.LEFT, slots.RIGHT]
    assert not score.divided
    again, _ = read_notation(to_musicxml(score)[0], "musicxml")
    assert [part.notes for part in again.parts] == [LEFT, RIGHT]


def test_tracks_of_hands_keep_their_names():
    score, _ = from_midi(to_midi(hands("Piano RH", "Piano LH")))
    assert [part.name for part in from_midi(to_midi(score))[0].parts] == ["Piano RH", "Piano LH"]


def test_numbered_names_are_two_pianos_where_each_has_both_hands_and_two_singers_where_each_is_a_line():
    both = tuple(sorted((*RIGHT, *LEFT)))
    lower = tuple(note._replace(pitch=note.pitch - 1) for note in both)
    lines = (Note(0, 48, 72), Note(48, 48, 74)), (Note(0, 48, 65), Note(48, 48, 67))
    for names, music, count in (
        (("Piano 1", "Piano 2"), (both, lower), 2),
        (("Piano 1", "Piano 2"), (lower, both), 2),
        (("Soprano 1", "Soprano 2"), lines, 0),
        (("Piano 1", "Piano 2", "Piano 3"), (RIGHT, LEFT, LEFT), 0),
    ):
        parts = tuple(Part(name, 0, notes) for name, notes in zip(names, music, strict=False))
        score = Notation(parts, (Bar(0, 4, 4),), 96)
        assert (score.keyboards, len(score.divided)) == ([], count)
        assert [part.name for part in read_notation(to_musicxml(score)[0], "musicxml")[0].parts] == [*names]


@pytest.mark.parametrize("names", [("RH", "LH") * 2, ("I RH", "I LH", "II RH", "II LH"), ("LH", "RH") * 2])
def test_named_hands_are_keyboards_also_where_each_is_a_line(names):
    line = {"R": (Note(0, 48, 72), Note(48, 48, 74)), "L": (Note(0, 48, 43), Note(48, 48, 45))}
    parts = tuple(Part(name, 0, line[name[-2]]) for name in names)
    pairs = Notation(parts, (Bar(0, 4, 4),), 96).keyboards
    assert pairs == [(n, n + 1) if names[0][-2] == "R" else (n + 1, n) for n in (0, 2)]
    choir = tuple(replace(part, name="") for part in parts)
    assert Notation(choir, (Bar(0, 4, 4),), 96).keyboards == []
