"""Humdrum with voices that split and words below them."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musictx.errors import MidiError
from musictx.music.notation.read import read_notation


def read(*lines: str):
    return read_notation(("\n".join(line.replace(" ", "\t") for line in lines) + "\n").encode(), "humdrum")


def heard(notation):
    return [[(x.onset, x.length, x.pitch) for x in part.notes] for part in notation.parts]


def test_a_voice_that_splits_twice_keeps_its_notes():
    notation, losses = read(
        "**kern **dynam **kern",
        "*M3/4 * *M3/4",
        "=1 =1 =1",
        "4C f 4g",
        "* * *^",
        "4D . 8e 8c",
        ". . qd .",
        ". . 8f 8d",
        "=2 =2 =2 =2",
        "* * *^ *",
        "2.E . 4g 4a [2.c",  # music21 loses the second one, and those after it come too soon
        ". p . . .",
        ". . 8%3b 2r .",
        ". . 8b . .",
        "* * *v *v *",
        "=3 =3 =3 =3",
        "* * *x *x",
        "2.C . 2.c] 2.e",
        "* * *v *v",
        "=4 =4 =4",
        "4D . 4f",
        "*- *- *-",
    )
    assert heard(notation) == [
        [(0, 24, 67), (24, 12, 60), (24, 12, 64), (36, 12, 62), (36, 12, 65)]
        + [(48, 24, 67), (48, 24, 69), (48, 144, 60), (72, 36, 71), (108, 12, 71), (120, 72, 64), (192, 24, 65)],
        [(0, 24, 48), (24, 24, 50), (48, 72, 52), (120, 72, 48), (192, 24, 50)],
    ]
    assert [bar.onset for bar in notation.bars] == [0, 48, 120, 192]
    assert losses == {"spines": 1, "grace": 1}


def test_words_lie_below_the_notes_of_the_spine_before_them():
    notation, losses = read(
        "**kern **kern **text **text **fing",
        "4C 4g Hal- Praise 1",
        "* *^ * * *",
        "4D 4e 4c -le- him, .",
        ". . . lost . .",
        "4E 4d 4c _ _ 2",
        "4F 4r 4c -lu- . .",
        "* *v *v * * *",
        "4G 4g -jah | .",
        "*- *- *- *- *-",
    )
    assert [(x.onset, x.verse, x.text, x.begins, x.ends) for x in notation.parts[0].lyrics] == [
        (0, 1, "Hal", True, False),
        (0, 2, "Praise", True, True),
        (24, 1, "le", False, False),
        (24, 2, "him,", True, True),
        (72, 1, "lu", False, False),
        (96, 1, "jah", False, True),
    ]
    assert not notation.parts[1].lyrics
    assert losses == {"lyrics": 1, "spines": 1}


@given(st.lists(st.lists(st.sampled_from([1, 2, 4, 8]), min_size=1, max_size=6), min_size=2, max_size=5))
@settings(max_examples=15, deadline=None)
def test_voices_of_one_spine_have_all_their_notes(voices):
    """Each voice splits from the one before, and sounds for a whole bar."""
    starts = [sorted({round(96 * sum(each[:n]) / sum(each)) // 6 * 6 for n in range(len(each))}) for each in voices]
    lines = ["**kern", "*M4/4", "=1"] + ["\t".join(["*"] * n + ["*^"]) for n in range(len(voices) - 1)]
    for now in sorted({0}.union(*starts)):
        tokens = []
        for n, mine in enumerate(starts):
            lengths = dict(zip(mine, (b - a for a, b in pairwise([*mine, 96])), strict=True))
            tokens.append(f"96%{lengths[now]}{'CDEFG'[n]}" if now in lengths else ".")
        lines.append("\t".join(tokens))
    lines += ["\t".join("=2" for _ in voices), "\t".join("*v" for _ in voices), "4B", "*-", ""]
    found = heard(read_notation("\n".join(lines).encode(), "humdrum")[0])[0]
    expected = {
        (a, b - a, pitch)
        for mine, pitch in zip(starts, (48, 50, 52, 53, 55), strict=False)
        for a, b in pairwise([*mine, 96])
    }
    assert {*found} == expected | {(96, 24, 59)}


def test_spines_that_do_not_fit_are_refused():
    with pytest.raises(MidiError, match="line 3 has 1 spine in place of 2"):
        read("**kern **kern", "4C 4D", "4E")
    for note in ("0" * 100_000 + "c", "4d" + "." * 100_000):
        with pytest.raises(MidiError, match="line 2 has a note of too many signs"):
            read("**kern", note)
    halves = ["**kern"] + ["\t".join(["*^"] * 2**n) for n in range(9)] + ["\t".join(["4C"] * 512)]
    with pytest.raises(MidiError, match="more than 500 spines"):
        read(*halves)
    many = [*halves[:9], "\t".join(["*v"] * 256), *["4C"] * 20_000]
    with pytest.raises(MidiError, match="256 voices"):
        read(*many)


@pytest.mark.parametrize(
    ("lines", "notes"),
    [
        ("**kern\t**kern\n1c\t1e\t\n \n1d\t\t1f\n*-\t*-\n", [[(0, 96, 64), (96, 96, 65)], [(0, 96, 60), (96, 96, 62)]]),
        ("**kern\r1c\r*-\r", [[(0, 96, 60)]]),
        ("**kern\n1c\n*-\n**kern\n1d\n*-\n", [[(0, 96, 60), (96, 96, 62)]]),
        (
            "**kern\n*M4/4\n=1\n2c\n*+\n*\t**kern\n2d\t2f\n=2\t=2\n1c\t1e\n*-\t*-\n",
            [[(48, 48, 65), (96, 96, 64)], [(0, 48, 60), (48, 48, 62), (96, 96, 60)]],
        ),
    ],
)
def test_humdrum_as_people_write_it(lines, notes):
    notation, losses = read_notation(lines.encode(), "humdrum")
    assert (heard(notation), losses) == (notes, {})


def test_a_staff_has_its_printed_name_and_its_sound():
    notation, _ = read(
        "**kern **kern **kern **kern",
        "*part3 *part3 *part2 *part1",
        "*Ipiano *Ipiano *Ialto *",
        '*I"Klavier *I"Fortepiano *I"ALTVS. *I"Violine',
        "4C 4c 4a 4e",
        "*- *- *- *-",
    )
    assert [(part.name, part.program) for part in notation.parts] == [
        ("Violine", 40),
        ("ALTVS.", 53),
        ("Fortepiano", 0),
        ("Fortepiano", 0),
    ]
    coded, _ = read("**kern **kern", "*Ivioln *Ivox", "4c 4e", "*- *-")
    assert [part.program for part in coded.parts] == [53, 40]
