"""Words and signs of a score: its title and composer come back, and a line says what else is left out."""

import pytest

from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Note, Part
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


NOTE = "<note{}><pitch><step>{}</step><octave>4</octave></pitch><duration>4</duration><notations>{}</notations></note>"
HEAD = """<score-partwise><identification><creator type="composer">A</creator><creator type="lyricist">B</creator>
<creator type="arranger">C</creator><rights>D</rights></identification><part-list><score-part id="P1">
<part-name>Flute</part-name>{}</score-part></part-list><part id="P1"><measure number="1"><attributes>
<divisions>4</divisions><time><beats>{}</beats><beat-type>4</beat-type></time></attributes>{}</measure>
<measure number="2">{}</measure></part></score-partwise>"""
BAR = NOTE.format("", "C", "") * 4


@pytest.mark.parametrize(
    ("signs", "kind"),
    [
        ("<articulations><staccato/><accent/></articulations>", "articulations"),
        ("<fermata/><technical><fingering>3</fingering></technical>", "articulations"),
        ("<ornaments><trill-mark/><mordent/></ornaments>", "ornaments"),
        ('<ornaments><tremolo type="single">3</tremolo></ornaments><arpeggiate/>', "ornaments"),
        ('<slur type="start" number="1"/>', ""),
    ],
)
def test_signs_of_notes_are_counted_and_slurs_are_not(signs, kind):
    for chord in ("", "<chord/>"):  # also where a chord has them
        first = NOTE.format("", "C", signs) + NOTE.format("", "E", "").replace("<pitch", chord + "<pitch")
        _, losses = read_notation(HEAD.format("", 4, first, BAR).encode(), "musicxml")
        assert losses == ({kind: 2} if kind else {})


@pytest.mark.parametrize(
    ("begins", "ends", "kind"),
    [
        ('<octave-shift type="down" size="8"/>', '<octave-shift type="stop" size="8"/>', "spans"),
        ('<pedal type="start" line="yes"/>', '<pedal type="stop" line="yes"/>', "spans"),
        ('<wedge type="crescendo"/>', '<wedge type="stop"/>', "dynamics"),
    ],
)
def test_lines_over_the_staff_are_counted_and_move_no_note(begins, ends, kind):
    begin, end = (f"<direction><direction-type>{each}</direction-type></direction>" for each in (begins, ends))
    plain, none = read_notation(HEAD.format("", 4, BAR, BAR).encode(), "musicxml")
    found, losses = read_notation(HEAD.format("", 4, begin + BAR + end, BAR).encode(), "musicxml")
    assert (found, losses, none) == (plain, {kind: 1}, {})


@pytest.mark.parametrize(
    ("element", "kind"),
    [
        ("<figured-bass><figure><figure-number>6</figure-number></figure></figured-bass>", "figures"),
        ('<barline location="left"><bar-style>light-light</bar-style></barline>', "doubles"),
        (NOTE.format("", "C", "<lyric/>").replace("<lyric/>", ""), "extenders"),
    ],
)
def test_figures_double_bar_lines_and_lines_after_syllables_are_counted(element, kind):
    if kind == "extenders":
        element = element.replace("</note>", "<lyric><text>la</text><extend/></lyric></note>")
    bar = NOTE.format("", "C", "") * 3 if kind == "extenders" else BAR
    assert read_notation(HEAD.format("", 4, BAR, element + bar).encode(), "musicxml")[1] == {kind: 1}


def test_brackets_of_groups_are_counted_and_braces_are_not():
    for symbol, losses in (("bracket", {"brackets": 1}), ("brace", {})):
        group = f'<part-group type="start" number="1"><group-symbol>{symbol}</group-symbol></part-group><score-part'
        text = HEAD.format("", 4, BAR, BAR).replace("<score-part ", group + " ", 1)
        text = text.replace("</part-list>", '<part-group type="stop" number="1"/></part-list>')
        assert read_notation(text.encode(), "musicxml")[1] == losses


def test_a_meter_that_is_a_sum_is_one_number_and_a_line_says_so():
    plain, none = read_notation(HEAD.format("", 5, BAR + NOTE.format("", "C", ""), "").encode(), "musicxml")
    found, losses = read_notation(HEAD.format("", "3+2", BAR + NOTE.format("", "C", ""), "").encode(), "musicxml")
    assert (found, losses, none) == (plain, {"sums": 1}, {})


def test_notes_that_are_not_printed_are_left_out_and_hidden_rests_are_no_loss():
    hidden = NOTE.format(' print-object="no"', "G", "")
    voice = (hidden * 2).replace("<duration", "<voice>2</voice><duration") + "<backup><duration>8</duration></backup>"
    plain, _ = read_notation(HEAD.format("", 4, BAR, BAR).encode(), "musicxml")
    found, losses = read_notation(HEAD.format("", 4, voice + BAR, BAR).encode(), "musicxml")
    assert (found, losses) == (plain, {"hidden": 2})
    rest = '<note print-object="no"><rest/><duration>4</duration></note>'
    assert read_notation(HEAD.format("", 4, BAR, rest + BAR[: len(BAR) // 4 * 3]).encode(), "musicxml")[1] == {}


@pytest.mark.parametrize("abbreviation", ["Fl.", ""])
def test_people_rights_and_abbreviations_come_back_and_the_end_has_a_final_line(abbreviation):
    said = f"<part-abbreviation>{abbreviation}</part-abbreviation>" * bool(abbreviation)
    notation, losses = read_notation(HEAD.format(said, 4, BAR, BAR).encode(), "musicxml")
    assert (notation.composer, notation.lyricist, notation.arranger, notation.rights) == ("A", "B", "C", "D")
    assert (notation.parts[0].abbreviation, losses) == (abbreviation, {})
    written, _ = to_musicxml(notation)
    assert read_notation(written, "musicxml") == (notation, {})
    assert written.count(b"light-heavy") == 1


def test_decorations_of_abc_are_counted_by_kinds():
    tune = (
        'X:1\nL:1/4\nK:C\n!trill!C ~D TE !p!F|!crescendo(!G A!crescendo)! !fermata!B .c|!segno!c !8va(!c!8va)! "H"d e|'
    )
    losses = {"ornaments": 3, "dynamics": 2, "articulations": 2, "repeats": 1, "spans": 1, "words": 1}
    assert read_notation(tune.encode(), "abc")[1] == losses
    assert read_notation(b"X:1\nL:1/4\nK:C\n.(CD) E.-E|.|FGAB|", "abc")[1] == {}


def test_signs_of_humdrum_are_counted():
    kern = "!!!LYR: B\n!!!LAR: C\n**kern\n*M4/4\n=1\n4c'\n4dT\n4e;\n4f\n=||\n1g\n==\n*-\n"
    notation, losses = read_notation(kern.encode(), "humdrum")
    assert (notation.lyricist, notation.arranger) == ("B", "C")
    assert losses == {"articulations": 2, "ornaments": 1, "doubles": 1}


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
