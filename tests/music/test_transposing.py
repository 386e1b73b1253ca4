"""Players of transposing instruments, who may change to another one."""

import re
from dataclasses import replace

import pytest
from kept_bars import attributes, bars_of, continued, filled, note, read, score, whole

from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Key, Note, Part, Transposed
from musictx.music.notation.write import to_musicxml

CLARINETS = (Transposed(0, -2), Transposed(96, -3))


def page(bar):
    """What a player reads in a bar: signs, the first note, and how it sounds if that is said."""
    found = [re.findall(rf"<{name}>(-?[0-9A-G]+)</{name}>", bar) for name in ("fifths", "step", "alter", "chromatic")]
    return [each[0] if each else "" for each in found]


def test_a_player_who_changes_the_instrument_reads_new_bars_for_the_last_one():
    clarinet = [attributes(sharps=2, semitones=-2) + note("D"), attributes(sharps=3, semitones=-3) + note("E")]
    reed = [attributes() + note(), attributes(sharps=3, semitones=-9) + note("A", 4)]
    notation = read(score(clarinet, reed, [attributes() + note(), note()]))
    assert [part.transposed for part in notation.parts] == [CLARINETS, (Transposed(96, -9),), ()]
    longer = continued(notation)
    made = whole(longer)
    assert [page(bars_of(made, n)[2]) for n in range(3)] == [["", "E", "-1", ""], ["", "A", "", ""], ["", "C", "", ""]]
    for new in (0, 1):
        changed = filled(longer, new, parts=(0, 1))
        made = whole(changed)
        assert [part.notes for part in read(made).parts] == [part.notes for part in changed.parts]
        assert [part.transposed for part in read(made).parts] == [part.transposed for part in notation.parts]
    assert "<instrument" not in made


def test_at_a_change_of_the_instrument_the_signs_of_its_player_change():
    notes = tuple(Note(96 * n, 96, 60) for n in range(3))
    part = Part("Clarinet", 71, notes, transposed=CLARINETS)
    notation = Notation((part,), tuple(Bar(96 * n, 4, 4) for n in range(3)), 288, keys=(Key(0, 1), Key(192, 0)))
    text = to_musicxml(notation)[0].decode()
    assert [page(bar)[0] for bar in bars_of(text)] == ["3", "-2", "-3"]
    assert [page(bar)[3] for bar in bars_of(text)] == ["-2", "-3", ""]
    again = read(text)
    assert (again.parts[0].notes, again.parts[0].transposed, again.keys) == (notes, CLARINETS, notation.keys)
    begun = again.first_bars(1)
    assert begun.parts[0].transposed == CLARINETS[:1]
    many = replace(notation, keys=(Key(0, 5), Key(96, -5)))  # eight flats to read
    assert [part.transposed for part in read(to_musicxml(many)[0].decode()).parts] == [()]


@pytest.mark.parametrize("semitones", [(-7, -10), (-10, -2), (-2, 3)])
def test_a_horn_without_signs_has_none_with_another_crook(semitones):
    first, second = (attributes(semitones=each).replace("<key><fifths>0</fifths></key>", "") for each in semitones)
    other = [attributes(sharps=1) + note("E"), note(), note()]
    made = whole(continued(filled(read(score([first + note(), second + note(), note()], other)), 1)))
    assert {page(bar)[0] for bar in bars_of(made)} <= {"", "0"}
