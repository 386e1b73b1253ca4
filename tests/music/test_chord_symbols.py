"""Chord symbols of lead sheets: their names and notes, from MusicXML and ABC, and back."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import chord_symbols

from musictx.music.harmony import parse_chord
from musictx.music.notation.chord_symbols import KINDS, ChordSymbol, element_of, symbol_named, symbol_of
from musictx.music.notation.midi import lost_in_midi
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Note, Part
from musictx.music.notation.read import read_notation
from musictx.music.notation.write import to_musicxml
from musictx.viz.engraving import TEXT, WIDTH, engrave, pages_of, text_fonts

HARMONY = "<harmony><root><root-step>{}</root-step></root><kind{}>{}</kind>{}</harmony>"
LATER = HARMONY.format("G", "", "major", "<offset>-12</offset>")
REST = "<note><rest/><duration>6</duration></note>"
LEAD = """<score-partwise><part-list><score-part id="P1"><part-name>Clarinet</part-name></score-part></part-list>
<part id="P1"><measure number="1"><attributes><divisions>6</divisions>
<time><beats>4</beats><beat-type>4</beat-type></time><transpose>{}</transpose></attributes>
{}<note><pitch><step>D</step><octave>4</octave></pitch><duration>24</duration></note>{}</measure></part></score-partwise>"""


@given(chord_symbols(), st.integers(-6, 6))
def test_a_symbol_comes_back_from_its_element_also_transposed(symbols, fifths):
    for symbol in symbols:
        assert symbol_of(element_of(symbol)) == symbol
        there = symbol_of(element_of(symbol), fifths)
        assert there is not None
        assert symbol_of(element_of(there), -fifths) == symbol
        if symbol.classes is not None:
            assert there.classes == frozenset((each + 7 * fifths) % 12 for each in symbol.classes)


@pytest.mark.parametrize(
    ("name", "kind", "chord"),
    [
        ("Am7", "minor-seventh", "Am7"),
        ("B♭-7", "minor-seventh", "Bbm7"),
        ("F#dim", "diminished", "F#dim"),
        ("C/E", "major", "C"),
        ("G7sus4", "dominant", "G+C+D+F"),
        ("D6/9", "major-sixth", "D+E+F#+A+B"),
        ("E7(b9)", "dominant", "E+F+G#+B+D"),
        ("Aadd9/C#", "major", "A+B+C#+E"),
        ("Dbm7b5", "half-diminished", "Dbm7b5"),
        ("G7#5", "dominant", "G+B+D#+F"),
        ("C5", "power", "C+G"),
    ],
)
def test_a_name_has_the_notes_that_it_says(name, kind, chord):
    symbol = symbol_named(name)
    assert symbol is not None
    assert (symbol.kind, symbol.classes) == (kind, parse_chord(chord).classes)


def test_words_are_no_chord_and_an_unknown_kind_keeps_its_name():
    assert [symbol_named(each) for each in ("Fine", "^slowly", "2", "h", "")] == [None] * 5
    odd = symbol_named("C7alt")
    assert odd == ChordSymbol(0, "C", "other", "7alt")
    assert odd.classes is None
    silent = symbol_named("N.C.")
    assert silent is not None
    assert silent.classes is None
    assert len({*KINDS}) == len({notes for notes, *_ in KINDS.values()})


def test_musicxml_has_its_symbols_at_their_places_as_they_sound():
    first = HARMONY.format("D", ' text="-7"', "minor-seventh", "<bass><bass-step>F</bass-step></bass>")
    later = HARMONY.format("B", "", "pedal", "<inversion>1</inversion><offset>-9</offset>")
    function = "<harmony><function>V</function><kind>major</kind></harmony>"
    text = LEAD.format("<diatonic>-1</diatonic><chromatic>-2</chromatic>", first, later + function)
    notation, losses = read_notation(text.encode(), "musicxml")
    symbols = (ChordSymbol(0, "C", "minor-seventh", "-7", "Eb"), ChordSymbol(60, "A", "pedal"))
    assert (notation.symbols, dict(losses)) == (symbols, {"symbols": 1})
    written, losses = to_musicxml(notation)
    assert read_notation(written, "musicxml") == (notation, {})
    assert (len(ElementTree.fromstring(written).findall(".//harmony")), losses) == (2, {})
    assert read_notation(text.replace("<diatonic>-1</diatonic>", "").encode(), "musicxml")[0] == notation


def test_symbols_of_one_place_share_their_note():
    """As lead sheets write them: all before a long note, without offsets."""
    tune = (Note(0, 96, 60), Note(96, 72, 62), Note(168, 24, 64), Note(360, 96, 65))  # the last is tied over a bar line
    bars = tuple(Bar(at, 4, 4) for at in range(0, 480, 96))
    places = {0: "CG", 96: "CGA", 168: "F", 192: "CG", 240: "D", 360: "CG"}
    symbols = tuple(ChordSymbol(at, root, "major") for at, roots in places.items() for root in roots)
    text, _ = to_musicxml(Notation((Part("", 0, tune), Part("", 0, (Note(0, 24, 40),))), bars, 480, symbols=symbols))
    first = re.search(rb"(?s)<measure.*?<note>", text)
    assert first is not None
    assert (first[0].count(b"<harmony>"), first[0].count(b"<offset")) == (2, 0)
    notation, losses = read_notation(text, "musicxml")
    found = {each.onset: each.root for each in notation.symbols}
    assert "".join(found.values()) == "CGCGAFCGDCG"
    assert [*found] == [0, 48, 96, 120, 144, 168, 192, 216, 240, 360, 372]
    assert not losses
    assert read_notation(to_musicxml(notation)[0], "musicxml")[0].symbols == notation.symbols


def test_of_two_staves_the_symbols_of_the_higher_count():
    """Else what two staves say at one place would be spread, as if both came one after the other."""
    head, body = LEAD.replace("<transpose>{}</transpose>", "").split("</part-list>\n")
    first = body.format(HARMONY.format("C", "", "major", ""), "").removesuffix("</score-partwise>")
    second = body.format(HARMONY.format("C", ' text="M"', "major", ""), LATER).replace("P1", "P2")
    text = head + '<score-part id="P2"><part-name/></score-part></part-list>' + first + second
    notation, losses = read_notation(text.encode(), "musicxml")
    assert [(each.onset, each.root, each.text) for each in notation.symbols] == [(0, "C", ""), (48, "G", "")]
    assert losses == {"symbols": 1}


@pytest.mark.parametrize(
    ("text", "degrees", "printed"),
    [
        ("7b9", [(9, -1, "add")], ""),
        ("9sus", [(7, 0, "add"), (9, 0, "add")], ""),
        ("m7", [(5, -1, "alter")], "5"),
        ("", [(9, -1, "add")], "9"),
    ],
)
def test_a_page_says_a_degree_once(text, degrees, printed):
    symbol = ChordSymbol(0, "D", "dominant", text, "", tuple(degrees))
    song = Notation((Part("", 0, (Note(0, 96, 60),)),), (Bar(0, 4, 4),), 96, symbols=(symbol,))
    written, _ = to_musicxml(song)
    assert read_notation(written, "musicxml")[0].symbols == (symbol,)
    (page,) = pages_of(written, is_long=True)
    texts = ElementTree.fromstring(page).iterfind(".//{*}g[@class='harm']//{*}text")
    words = "".join("".join("".join(each.itertext()) for each in texts).split())
    assert [re.sub(r"\D", "", each) for each in re.findall(r"\((.*?)\)", words)] == [*printed]


def test_abc_has_its_symbols_and_no_remarks():
    tune = 'X:1\nM:4/4\nL:1/4\nK:F\n"Bb/D"A2"C-7"z2|"^slowly""C7alt"[FA]2"(N.C.)"c2|["1" "F""G"A4:|\n'
    notation, losses = read_notation(tune.encode(), "abc")
    found = [(each.onset, each.root, each.kind, each.bass) for each in notation.symbols]
    assert found == [
        (0, "Bb", "major", "D"),
        (48, "C", "minor-seventh", ""),
        (96, "C", "other", ""),
        (144, "", "none", ""),
        (192, "F", "major", ""),
    ]
    assert losses["symbols"] == 1  # music21 reads one a note
    assert read_notation(to_musicxml(notation)[0], "musicxml")[0].symbols == notation.symbols


def test_a_symbol_within_the_bracket_of_a_chord_leaves_its_notes_together():
    notation, losses = read_notation(b'X:1\nM:4/4\nL:1/4\nK:C\n["C"CEG]2["F"F2A2]|["1" [CE]4|\n', "abc")
    assert [(each.onset, each.root) for each in notation.symbols] == [(0, "C"), (48, "F")]
    notes = [(note.onset, note.pitch) for note in notation.parts[0].notes]
    assert notes == [(0, 60), (0, 64), (0, 67), (48, 65), (48, 69), (96, 60), (96, 64)]
    assert not losses["symbols"]


@pytest.mark.parametrize("damage", ["", "x", "1e999", "9" * 5000])
def test_a_number_that_is_none_leaves_the_score(damage):
    more = f"<degree><degree-value>{damage}</degree-value><degree-alter>{damage}</degree-alter></degree>"
    harmony = HARMONY.format("C", "", "major", more).replace(
        "</root-step>", f"</root-step><root-alter>{damage}</root-alter>"
    )
    notation, _ = read_notation(
        LEAD.format("", harmony, "").replace("<transpose></transpose>", "").encode(), "musicxml"
    )
    assert notation.symbols == (ChordSymbol(0, "C", "major"),)


def test_more_kinds_of_symbols_than_any_tune_has_are_counted():
    names = [f"{root}{kind}" for root in "ABCDEFG" for kind in [*range(2, 20)]]
    tune = "X:1\nM:4/4\nL:1/4\nK:C\n" + "".join(f'"{name}"c4|' for name in names)
    notation, losses = read_notation(tune.encode(), "abc")
    assert len(notation.symbols) + losses["symbols"] == len(names)
    assert losses["symbols"] == len(names) - 84


def test_symbols_that_are_not_read_are_counted():
    spine = "**kern\t**mxhm\n*M4/4\t*\n1c\tC major\n*-\t*-\n"
    assert read_notation(spine.encode(), "humdrum")[1] == {"spines": 1}
    notation = Notation(
        (Part("", 0, (Note(0, 24, 60),)),), (Bar(0, 4, 4),), 96, symbols=(ChordSymbol(0, "C", "major"),)
    )
    assert lost_in_midi(notation) == {"unheld": 1}


def test_signs_of_symbols_are_drawn_with_their_font(tmp_path):
    resvg_py = pytest.importorskip("resvg_py")
    song = Notation((Part("", 0, (Note(0, 96, 60),)),), (Bar(0, 4, 4),), 96)
    for root, differs in (("B", False), ("Bb", True)):
        text = to_musicxml(replace(song, symbols=(ChordSymbol(0, root, "major"),)))[0]
        engrave(text, tmp_path / "song.png")
        how = {"background": "white", "font_files": text_fonts(), "serif_family": TEXT}
        boxes = resvg_py.svg_to_bytes(svg_string=pages_of(text, True)[0], width=WIDTH[".png"], **how)
        assert ((tmp_path / "song.png").read_bytes() != bytes(boxes)) == differs  # a letter without a font is a box
