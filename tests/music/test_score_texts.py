"""Words and signs of a score: its title and composer come back, and a line says what else is left out."""

import pytest

from musictx.music.notation.notation import Bar, Notation, Note, Part
from musictx.music.notation.read import read_notation
from musictx.music.notation.write import to_musicxml
from musictx.music.repairs import say_repairs

SONG = """<score-partwise><work><work-title>My
 Song</work-title></work><identification><creator type="composer">Fanny &amp; Felix</creator></identification>
<part-list><score-part id="P1"><part-name>V</part-name></score-part></part-list>
<part id="P1"><measure number="1"><attributes><divisions>1</divisions></attributes>
<barline location="left"><repeat direction="forward"/></barline>
<direction><direction-type><rehearsal>A</rehearsal></direction-type></direction>
<direction><direction-type><words>dolce</words></direction-type></direction>
<direction><direction-type><dynamics><p/></dynamics></direction-type></direction>
<note><pitch><step>C</step><octave>4</octave></pitch><duration>4</duration>
<lyric number="1"><text>la</text></lyric><lyric number="2"><text>lo</text></lyric></note>
<barline location="right"><repeat direction="backward"/></barline></measure></part></score-partwise>"""


@pytest.mark.parametrize(
    ("text", "kind", "title", "composer", "losses"),
    [
        (SONG, "musicxml", "My Song", "Fanny & Felix", {"words": 2, "dynamics": 1, "repeats": 2}),
        (
            'X:1\nT:Air\nC:Trad.\nM:4/4\nL:1/4\nK:C\n"^slow"CDEF|GABc:|\nw:la-la *lu_ la\n',
            "abc",
            "Air",
            "Trad.",
            {"words": 1, "repeats": 1},
        ),
        (
            "!!!OTL: Air\n!!!COM: Bach\n!!no colon\n**kern\t**text\t**dynam\n*M4/4\t*\t*\n1c\tla\tp\n*-\t*-\t*-\n",
            "humdrum",
            "Air",
            "Bach",
            {"spines": 1},
        ),
    ],
)
def test_title_and_composer_come_back_and_the_rest_is_counted(text, kind, title, composer, losses):
    notation, lost = read_notation(text.encode(), kind)
    assert (notation.title, notation.composer, dict(lost)) == (title, composer, losses)
    written, _ = to_musicxml(notation, "another")
    again, lost = read_notation(written, "musicxml")
    assert (again.title, again.composer, lost) == (title, composer, {})


def test_a_score_without_a_title_gets_one_and_no_composer():
    notation = Notation((Part("V", 0, (Note(0, 96, 60),)),), (Bar(0, 4, 4),), 96)
    written, _ = to_musicxml(notation, "piece 1")
    again = read_notation(written, "musicxml")[0]
    assert (again.title, again.composer) == ("piece 1", "")
    assert b">Music21<" not in written


def test_the_losses_are_said():
    _, losses = read_notation(SONG.encode(), "musicxml")
    said = "; ".join(say_repairs(losses))
    assert "a dynamic mark is left out; 2 texts over the staves are left out" in said
    assert "2 repeat signs are left out: the music is read once" in said
