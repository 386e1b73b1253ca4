"""Tunes of ABC, as people write them."""

from collections import Counter

import pytest
from notated import ABC, notes

from musictx.music.notation.abc_voices import each_voice
from musictx.music.notation.read import read_notation


def test_each_voice_of_abc_is_a_part():
    assert len(each_voice(ABC, Counter())[0]) == 2
    notation, _ = read_notation(ABC.encode(), "abc")
    assert notes(notation) == [
        ((0, 24, 74), (24, 36, 71), (60, 12, 69), (72, 24, 66), (96, 72, 67)),
        ((0, 24, 55), (24, 48, 55), (72, 24, 50), (96, 72, 55)),
    ]
    assert [bar.onset for bar in notation.bars] == [0, 24, 96]


def abc_notes(body, head="X:1\nM:4/4\nL:1/4\n"):
    notation, losses = read_notation((head + body).encode(), "abc", "it")
    return [[(note.onset, note.pitch) for note in part.notes] for part in notation.parts], dict(losses)


@pytest.mark.parametrize(
    ("body", "voices", "losses"),
    [
        ("K:C\nCDE\nF:|\n", [[(0, 60), (24, 62), (48, 64), (72, 65)]], {"repeats": 1}),
        ("K:C\n[V:1]CD[V:2]EF|[V:1]EF|\n", [[(0, 60), (24, 62), (48, 64), (72, 65)], [(0, 64), (24, 65)]], {}),
        ("V:1\nV:2\nK:C\nC4|\nV:2\nE4|\n", [[(0, 60)], [(0, 64)]], {}),
        ("CD\n", [[(0, 60), (24, 62)]], {}),
        ('K:C\nC4:|["2-9" D4|]\n', [[(0, 60), (96, 62)]], {"repeats": 1}),
        ("K:C\nC4 & E4|D4|\n", [[(0, 60), (96, 62)]], {"overlay": 1}),
        ("K:C\n[V:1]F2[K:G]F2|\n[V:1][M:1/4][L:1/8]F2|F2|\n", [[(0, 65), (48, 66), (96, 66), (120, 66)]], {}),
        (
            "K:C\nV:1\nZ2|C4|\nV:2\n[M:2/4]Z|[M:C]Z|E2[Q:1/4=60]E2|\n",
            [[(192, 60)], [(144, 64), (192, 64)]],
            {"later": 1},
        ),
        ("K:C\nC4|\n\nX:2\nK:C\nE4|\n\nX:3\nK:C\nE4|\n", [[(0, 60)]], {"tunes": 2}),
    ],
)
def test_abc_as_people_write_it(body, voices, losses):
    assert abc_notes(body) == (voices, losses)


@pytest.mark.parametrize("mark", ".~HIJKLMNOPQRSTUVWhijklmnopqrstuvw")
def test_decorations_of_one_letter_leave_the_notes(mark):
    music = 'K:C\n"Cm7"{}C {}D {}^F{}[GB]|\nw:a b c d\n'
    plain = read_notation(f"X:1\nL:1/4\n{music.format(*4 * [''])}".encode(), "abc")
    decorated = read_notation(f"X:1\nL:1/4\n{music.format(*4 * [mark])}".encode(), "abc")
    assert decorated == plain
    assert len(plain[0].parts[0].lyrics) == 4
    assert plain[0].symbols


def test_abc_without_a_unit_has_eighths_or_in_a_short_meter_sixteenths():
    assert abc_notes("K:C\nCDE|\n", "X:1\nM:3/4\n")[0] == [[(0, 60), (12, 62), (24, 64)]]
    assert abc_notes("K:C\nCDE|\n", "X:1\nM:2/4\n")[0] == [[(0, 60), (6, 62), (12, 64)]]
