"""Lyrics of ABC, in lines below the notes."""

import pytest

from musictx.music.notation.read import read_notation
from musictx.music.notation.write import to_musicxml

HEAD = "X:1\nM:4/4\nL:1/4\nK:C\n"


def sung(tune: str) -> tuple[str, int]:
    """The syllables below each place, `-` where a word goes on, and how many are lost."""
    notation, losses = read_notation((HEAD + tune).encode(), "abc")
    back, unread = read_notation(to_musicxml(notation)[0], "musicxml")
    assert ([part.lyrics for part in back.parts], unread) == ([part.lyrics for part in notation.parts], {})
    each = [syllable for part in notation.parts for syllable in part.lyrics]
    words = (f"{'-' * (not x.begins)}{x.text}{'-' * (not x.ends)}" for x in each)
    found = (f"{x.onset // 24}:{x.verse}{word}" for x, word in zip(each, words, strict=True))
    return " ".join(found), losses["lyrics"]


@pytest.mark.parametrize(
    ("tune", "lyrics", "lost"),
    [
        ("CDEF|G4|\nw:Hal-le-lu-jah A men\n", "0:1Hal- 1:1-le- 2:1-lu- 3:1-jah 4:1A", 1),
        ("CDEF|\nw:1.~O * Lord_ x\nw:2.~I - a\\-b | y\n", "0:11. O 0:22. I- 2:1Lord 2:2-a-b", 2),
        ("CD|E2F2|\nw:a|b c\n", "0:1a 2:1b 4:1c", 0),
        ("CD|E2F2|\nw:a b|c\n", "0:1a 1:1b 2:1c", 0),
        ("C--D\nw:a\n", "0:1a", 0),
        ('{AB}"G7"C z "Am"[CEG]2|[1D4:|[2 E4|]\nw:a b c d\n', "0:1a 2:1b 4:1c 8:1d", 0),
        ("CDEF|\nw:Ky-ri-e e-\nGABc|\nw:le-i-son %so\n", "0:1Ky- 1:1-ri- 2:1-e 3:1e- 4:1-le- 5:1-i- 6:1-son", 0),
        ("CD[K:G]EF|\nw:a b c d\n", "0:1a 1:1b 2:1c 3:1d", 0),
        ("CD\\\nEF|\nw:a b c d\n", "0:1a 1:1b 2:1c 3:1d", 0),
        ("CDEF|\nGABc|\nw:a|b c d e f\n", "0:1a 4:1b 5:1c 6:1d 7:1e", 1),
        ("CDEF|\nw:a\nGABc|\nCDEF|\nw:b *|c\n", "0:1a 4:1b 8:1c", 0),
        ("CDEF|\nw:a b\n+:c d\nG4|\nw:e \\\nw:f\n", "0:1a 1:1b 2:1c 3:1d 4:1e", 1),
        ("CDEF|\nw:a\x01b \x02 c\nW:not below the notes\n", "0:1a b 2:1c", 4),
        ("C2D2-|D2(3EFG E|\nw:a b c d e f g\n", "0:1a 2:1b 4:1c 6:1d 6:1e 7:1f 8:1g", 0),
        ("w:a b\nCDEF|\n", "", 2),
    ],
)
def test_syllables_lie_below_their_notes(tune, lyrics, lost):
    assert sung(tune) == (lyrics, lost)


def test_voices_sing_their_own_and_lines_begin_anew():
    tune = (
        "[V:S] [Q:1/4=90] CD EF|\nw:a b c d\nw:e f g h\n[V:B] C,4|\nw:la\n[V:S] [Q:1/4=80] G2 A2|\nw:i k\n[V:B] D,4|\n"
    )
    lyrics, lost = sung(tune)
    assert lyrics == "0:1a 0:2e 1:1b 1:2f 2:1c 2:2g 3:1d 3:2h 4:1i 6:1k 0:1la"
    assert not lost
