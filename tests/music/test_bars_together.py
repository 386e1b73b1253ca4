"""Bars that are too short or too long: what follows stays where it belongs."""

import pytest
from notated import NOTE, XML

from musictx.music.notation.read import read_notation
from musictx.music.notation.write import to_musicxml

HEAD = "X:1\nM:4/4\nL:1/4\nK:C\n"


def read(text, kind="abc"):
    notation, losses = read_notation(text.encode(), kind)
    return [[note.onset for note in part.notes] for part in notation.parts], dict(losses), notation


@pytest.mark.parametrize(
    ("upper", "lower", "onsets", "uneven"),
    [
        ("C4|CDE|C4|", "C4|C4|C4|", [[0, 96, 120, 144, 192], [0, 96, 192]], 1),
        ("C4|CDE|C4|", "C4|C4|", [[0, 96, 120, 144, 192], [0, 96]], 1),  # one ends before the other
        ("C4|CDE|C4|", "C4|C4|C2 & z E|", [[0, 96, 120, 144, 192], [0, 96, 192, 216]], 1),
        ("C4|CDE|", "C4|C4|", [[0, 96, 120, 144], [0, 96]], 0),  # nothing follows
        ("C/ & E/|C4|", "C|C4|", [[12, 12, 24], [0, 24]], 1),  # an upbeat ends with its bar
        ("C4|C4|", "[M:2/4]C2|C2|C2|C2|", [[0, 96], [0, 48, 96, 144]], 0),  # each has a meter of its own
    ],
)
def test_bars_of_all_voices_of_abc_begin_together(upper, lower, onsets, uneven):
    found, losses, notation = read(f"{HEAD}V:1\n{upper}\nV:2\n{lower}\n")
    assert (found, losses.get("uneven", 0)) == (onsets, uneven)
    assert len(notation.bars) == max(upper.count("|"), lower.count("|"))


def test_notes_of_humdrum_that_reach_over_bar_lines_stay_in_time():
    spines = "**kern\t**kern\n*M4/4\t*M4/4\n=1\t=1\n1C\t0c\n=2\t=2\n1D\t.\n=3\t=3\n1E\t1d\n==\t==\n*-\t*-\n"
    onsets, losses, notation = read(spines, "humdrum")
    assert (onsets, losses) == ([[0, 192], [0, 96, 192]], {})
    assert [bar.onset for bar in notation.bars] == [0, 96, 192]


def test_a_spine_that_lacks_time_moves_no_bar_lines():
    spines = "**kern\t**kern\n*M4/4\t*M4/4\n=1\t=1\n2.C\t1c\n=2\t=2\n1D\t1d\n=3\t=3\n1E\t1e\n==\t==\n*-\t*-\n"
    assert [bar.onset for bar in read(spines, "humdrum")[2].bars] == [0, 96, 192]


TRIPLET = "(3C/D/E/ F2 (3C/D/"
ODD = [0, 8, 16, 24, 72, 80, 90, 186]  # two units of rest before the next line


@pytest.mark.parametrize(
    ("music", "onsets", "lines"),
    [
        (f"{TRIPLET}|C4|D4|", ODD, [0, 90, 186]),
        (f"{TRIPLET}|C4 & z E|D4|", [*ODD[:7], 114, ODD[7]], [0, 90, 186]),
        ("(3:2:2C/D/|C4|D4|", [2, 10, 18, 114], [0, 18, 114]),  # an upbeat: the rest comes first
        ("C4|(3:2:2C/D/", [0, 96, 104], [0, 96]),
    ],
)
def test_only_a_bar_that_no_time_signature_can_say_gets_longer(music, onsets, lines):
    found, losses, notation = read(f"{HEAD}{music}\n")
    assert (found, losses) == ([onsets], {"odd": 1})
    assert [bar.onset for bar in notation.bars] == lines
    written, lost = to_musicxml(notation)
    assert not lost
    assert [bar.onset for bar in read(written.decode(), "musicxml")[2].bars] == lines
    assert not notation.end % 3


@pytest.mark.parametrize("kind", ["musicxml", "humdrum"])
def test_odd_bars_of_other_formats_get_longer_too(kind):
    text = "**kern\n*M2/4\n=1\n4c\n6c\n12c\n12c\n=2\n2d\n=3\n2e\n==\n*-\n"
    if kind == "musicxml":
        bars = "".join(f'</measure><measure number="{n}">{NOTE.format("D", 12)}' for n in (2, 3))
        text = XML.format(notes=NOTE.format("C", 6) + NOTE.format("C", 4) + NOTE.format("C", 2) * 2 + bars)
    onsets, losses, notation = read(text, kind)
    assert (onsets, losses) == ([[0, 24, 40, 48, 57, 105]], {"odd": 1})
    assert [bar.onset for bar in notation.bars] == [0, 57, 105]


@pytest.mark.parametrize(
    ("music", "third"),
    [("C2 (3E/F/|GA|", 90), ("C2 (3:2E/F/|GA|", 90), ("C2 (10E/F/|GA|", 78), ("C2 (3:2:3E/F/|GA|", 82)],
)
def test_a_tuplet_ends_with_its_bar_unless_it_says_how_many_notes_it_has(music, third):
    onsets, _, _ = read(HEAD + music)
    assert onsets[0][-1] == third
