"""Bars of a person's MusicXML that come back as they are, beside new ones."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kept_bars import NOTE, SIGNS, attributes, bars_of, continued, filled, note, read, score, whole

from musictx.errors import UserError
from musictx.music.notation.kept import as_it_is, with_kept
from musictx.music.notation.notation import Notation, Source
from musictx.music.notation.parts import Bar, Key, Note, Part
from musictx.music.notation.read import read_notation
from musictx.music.notation.write import to_musicxml

TIED = '<tie type="{0}"/>', '<notations><tied type="{0}"/></notations>'
SLASHES = '<attributes><measure-style><slash type="start"/></measure-style></attributes>'
FINAL = '<barline location="right"><bar-style>light-heavy</bar-style></barline>'
RICH = [
    "<print><page-layout/></print>"
    + attributes(4)
    + SIGNS.format("<dynamics><p/></dynamics>")
    + SIGNS.format("<words>Adagio</words>")
    + SIGNS.format('<wedge type="crescendo"/>')
    + "<note><grace/><pitch><step>B</step><octave>4</octave></pitch><voice>1</voice></note>"
    + note(
        length=8, more='<notations><slur type="start" number="1"/><articulations><accent/></articulations></notations>'
    )
    + note("D", length=8, more="<lyric><syllabic>single</syllabic><text>Ah</text><extend/></lyric>"),
    note(length=16, more='<notations><slur type="stop" number="1"/><fermata/></notations>')
    + SIGNS.format('<wedge type="stop"/>'),
    SLASHES + note("E", length=12) + "<note><unpitched/><duration>4</duration><voice>1</voice></note>" + FINAL,
]


def test_all_signs_of_given_bars_stay_when_a_score_goes_on():
    text = score(RICH, [attributes(2, clef="F4") + note("C", 3, 8), note("C", 3, 8), note("C", 3, 8)])
    notation = continued(read(text), 2)
    made = whole(notation)
    assert bars_of(made)[:2] == bars_of(text)[:2]
    plain = RICH[2].replace(SLASHES, "").replace(FINAL, "")  # new bars have no slashes, and no line ends the music
    assert bars_of(made)[2] == bars_of(score(["", "", plain]))[2]
    assert bars_of(made, 1)[:3] == bars_of(text, 1)
    assert len(bars_of(made)) == len(bars_of(made, 1)) == 5
    again = read(made)
    assert again == replace(notation, title="new")
    assert [part.clefs for part in again.parts] == [part.clefs for part in notation.parts]


def test_new_bars_have_the_signature_of_their_own_part():
    horn = [attributes(sharps=0, semitones=-7) + note(), note()]
    flute = [attributes(sharps=-3) + note(), note("E")]
    unsigned = horn[0].replace("<key><fifths>0</fifths></key>", "")
    for first in (horn, [unsigned, horn[1]]):
        text = score(flute, first, flute)
        for changed in (continued(read(text)), filled(read(text), 0, parts=(0, 1, 2))):
            made = whole(changed)
            assert [[bar.count("<key>") for bar in bars_of(made, n)[1:]] for n in (0, 1, 2)] == [
                [0] * (len(changed.bars) - 1)
            ] * 3
            assert read(made).parts[1].keys == read(text).parts[1].keys != read(text).keys


@pytest.mark.parametrize("new", [(), (0,), (1,), (2,), (0, 1, 2)])
def test_new_bars_have_no_key_beside_one_that_names_its_notes(new):
    free = "<key><key-step>B</key-step><key-alter>-0.5</key-alter></key>"
    first = attributes().replace("<key><fifths>0</fifths></key>", free)
    for bars in [[first + note(), note("D"), note("E")], [attributes() + note(), first + note("D"), note("E")]]:
        notation = read(score(bars, [attributes() + note()] * 3))
        notation = continued(filled(notation, *new) if new else notation, 2)
        keys = [
            [each.tag for each in bar.findall("attributes/key/*")]
            for bar in ElementTree.fromstring(whole(notation)).iter("measure")
        ]
        given = [["key-step", "key-alter"] if free in bar else ["fifths"] if "<key>" in bar else [] for bar in bars]
        assert keys[:5] == [*given, [], []]
        asked = replace(notation, keys=(*notation.keys, Key(384, 1)))
        assert [key.text for key in ElementTree.fromstring(whole(asked)).findall("part")[0].iter("fifths")][-1] == "1"


def test_a_line_that_goes_into_new_bars_ends_and_others_stay():
    text = score(RICH)
    made = whole(filled(read(text), 1))
    assert "slur" not in made
    assert "wedge" not in made
    assert "accent" in made
    assert "slur" in whole(filled(read(text), 2))
    assert bars_of(whole(filled(read(text), 2)))[:2] == bars_of(text)[:2]


@st.composite
def scores(draw):
    """A clarinet and a second staff, whose divisions, key, meter, clef and transposition change from bar to bar."""
    count = draw(st.integers(2, 5))
    meters = draw(st.lists(st.sampled_from([2, 3, 4]), min_size=count, max_size=count))
    keys = draw(st.lists(st.integers(-4, 4), min_size=count, max_size=count))
    parts = []
    for _ in range(draw(st.integers(1, 2))):
        instruments = draw(st.sampled_from([[0], [-2], [-3], [-2, -3, -9, 2]]))
        bars = []
        for beats, sharps in zip(meters, keys, strict=True):
            divisions, clef = draw(st.sampled_from([1, 2, 6])), draw(st.sampled_from(["G2", "F4", "C3"]))
            semitones = draw(st.sampled_from(instruments))  # a player may change the instrument
            own = sharps - 12 * round(semitones * 7 / 12) * -1 - 7 * semitones if semitones else sharps
            said = attributes(divisions, own, beats, clef, semitones)
            length = divisions * beats
            bars.append(said + note(draw(st.sampled_from("CDEFGAB")), draw(st.sampled_from([3, 4, 5])), length))
        parts.append(bars)
    changed = draw(st.sets(st.integers(0, count - 1)))
    return score(*parts), changed, draw(st.sets(st.integers(0, len(parts) - 1), min_size=1))


@settings(max_examples=25)
@given(made=scores(), more=st.integers(0, 2))
def test_whichever_bars_are_new_the_score_says_the_same(made, more):
    text, bars, parts = made
    notation = read(text)
    notation = filled(notation, *bars, parts=parts)
    notation = continued(notation, more) if more else notation
    again = read(whole(notation))
    assert again == read(to_musicxml(notation, "new")[0].decode())
    assert [part.clefs for part in again.parts] == [part.clefs for part in notation.parts]
    assert [part.transposed for part in again.parts] == [part.transposed for part in notation.parts]
    old = [bars_of(text, n) for n in range(len(notation.parts))]
    new = [bars_of(whole(notation), n) for n in range(len(notation.parts))]
    for n, (before, after) in enumerate(zip(old, new, strict=True)):
        kept = [k for k in range(len(before)) if k not in bars or n not in parts]
        assert [before[k] for k in kept] == [after[k] for k in kept]


@pytest.mark.parametrize("step", ["C", "D"])
def test_a_note_that_is_tied_into_a_new_bar_is_written_anew_and_one_that_stays_is_not(step):
    start, stop = (part.format("start") for part in TIED), (part.format("stop") for part in TIED)
    tie, sign = start
    end, end_sign = stop
    first = NOTE.format("", "C", 5, 4, sign).replace("<voice>", f"{tie}<voice>")
    second = NOTE.format("", step, 5, 4, end_sign).replace("<voice>", f"{end}<voice>")
    notation = read(score([attributes() + first, second, note("G")]))
    again = read(whole(filled(notation, 1)))
    assert again.parts[0].notes[0] == Note(0, 96, 72)
    assert again.parts[0].notes[1] == Note(96, 24, 61)


def test_an_excerpt_goes_on_in_the_numbers_of_its_bars_and_keeps_its_title():
    head = "<work><work-title>Mine</work-title></work><defaults/>"
    made = whole(continued(read(score([attributes() + note(), note(), note()], head=head)), 2))
    numbers = [bar.get("number") for bar in ElementTree.fromstring(made).iter("measure")]
    assert numbers == ["17", "18", "19", "20", "21"]
    assert ElementTree.fromstring(made).findtext("work/work-title") == "Mine"
    assert "<defaults" in made


WIDE = score([attributes() + note(octave=2) + "<backup><duration>4</duration></backup>" + note(octave=6)])


def test_a_new_part_comes_beside_the_given_ones_and_a_staff_that_was_divided_is_one_again():
    text = score([attributes() + note(), note()], [attributes() + note("E"), note("E")])
    notation = read(text)
    piano = Part("Piano", 0, (Note(0, 96, 40),))
    made = whole(replace(notation, parts=(notation.parts[0], piano, notation.parts[1])))
    again = read(made)
    assert [part.name for part in again.parts] == ["Part 0", "Piano", "Part 1"]
    assert again.parts[1].notes == piano.notes
    assert [bars_of(made, n) for n in (0, 2)] == [bars_of(text, 0), bars_of(text, 1)]
    wide = read(WIDE).on_two_staves()
    assert len(wide.parts) == 2
    assert bars_of(whole(wide.on_given_staves())) == bars_of(WIDE)
    longer = continued(wide).on_given_staves()
    assert [part.notes for part in read(whole(longer)).parts] == [part.notes for part in longer.parts]
    assert bars_of(whole(longer))[:1] == bars_of(WIDE)


def test_a_score_that_is_ordered_by_bars_stays_too():
    bar = attributes() + SIGNS.format("<dynamics><f/></dynamics>") + note()
    names = '<part-list><score-part id="P0"><part-name>A</part-name></score-part></part-list>'
    text = f'<score-timewise>{names}<measure number="1"><part id="P0">{bar}</part></measure></score-timewise>'
    made = whole(continued(read(text)))
    assert bars_of(made)[0] == bars_of(score([bar]))[0]


def test_other_music_has_no_source():
    notation = Notation((Part("", 0, (Note(0, 96, 60),)),), (Bar(0, 4, 4),), 96)
    text, _ = to_musicxml(notation)
    assert with_kept(text, notation) == text


@pytest.mark.parametrize(
    ("numbers", "own"),
    [
        ((17, 18, 19), [17, 18, 19]),
        ((1, 2, 3), [1, 2, 3]),
        ((5, 7, 9), [5, 7, 9]),
        ((0, 1, 2), [0, 1, 2]),  # of whole bars
        ((1, 2, 1), [1, 2, 3]),  # a second movement
        ((1, 2, 2**70), [1, 2, 3]),
        ((-2, -1, 0), [1, 2, 3]),
    ],
)
def test_bars_have_the_numbers_of_the_page(numbers, own):
    bars = "".join(f'<measure number="{n}">{attributes() * (not k)}{note()}</measure>' for k, n in enumerate(numbers))
    notation = read(score([""]).replace('<measure number="1"></measure>', bars))
    assert notation.numbers == own
    again = read(to_musicxml(notation)[0].decode())
    assert again.numbers == notation.numbers


def test_tablature_of_a_staff_is_heard_once_and_stays():
    two = (
        attributes()
        .replace("<clef>", "<staves>2</staves><clef number='1'>")
        .replace("</attributes>", "<clef number='2'><sign>TAB</sign><line>5</line></clef></attributes>")
    )
    frets = "<staff>2</staff><notations><technical><string>2</string><fret>1</fret></technical></notations>"
    bar = note(more="<staff>1</staff>") + "<backup><duration>4</duration></backup>" + note(more=frets)
    text = score([attributes() + note("E"), note("E")], [two + bar, bar])
    notation, losses = read_notation(text.encode(), "musicxml")
    assert [part.notes for part in notation.parts] == [
        (Note(0, 96, 76), Note(96, 96, 76)),
        (Note(0, 96, 72), Note(96, 96, 72)),
    ]
    assert losses["tablatures"] == 1
    chord = Note(192, 48, 60), Note(192, 48, 64), Note(240, 48, 67)
    longer = continued(notation)
    guitar = replace(longer.parts[1], notes=(*notation.parts[1].notes, *chord))
    made = whole(replace(longer, parts=(longer.parts[0], guitar)))
    assert [bars_of(made, n)[:2] for n in (0, 1)] == [bars_of(text, 0), bars_of(text, 1)]
    again, losses = read_notation(made.encode(), "musicxml")
    assert [part.notes for part in again.parts] == [longer.parts[0].notes, guitar.notes]
    assert losses["tablatures"] == 1
    differs = read(
        text.replace(
            "<step>C</step><octave>5</octave></pitch><duration>4</duration><voice>1</voice><staff>2",
            "<step>D</step><octave>5</octave></pitch><duration>4</duration><voice>1</voice><staff>2",
        )
    )
    assert len(differs.parts) == 3


def test_bars_that_are_cut_away_do_not_come_back_under_new_ones():
    words = [SIGNS.format(f"<words>w{n}</words>") for n in range(4)]
    rest = "<note><rest/><duration>4</duration><voice>1</voice></note>"
    text = score(
        [attributes() + note(), note(), note(), note()],
        [attributes() + words[0] + rest, *(w + rest for w in words[1:])],
    )
    begun = read(text).first_bars(2)
    bars = (*begun.bars, Bar(192, 4, 4), Bar(288, 4, 4))
    flute = replace(begun.parts[0], notes=(*begun.parts[0].notes, Note(192, 96, 72)))  # the same as before
    made = whole(replace(begun, parts=(flute, begun.parts[1]), bars=bars, end=384))
    assert [f"w{n}" in made for n in range(4)] == [True, True, False, False]
    assert bars_of(made)[:2] == bars_of(text)[:2]
    assert read(made).parts[0].notes == flute.notes


LEFT = '<barline location="left">{}<repeat direction="forward"/></barline>'
RIGHT = '<barline location="right"><ending number="1" type="stop"/><repeat direction="backward"/></barline>'
VOLTA = '<barline location="left"><ending number="1" type="start"/></barline>'


@pytest.mark.parametrize("new", [(1,), (2,), (0, 1, 2), (1, 3)])
def test_repeats_and_endings_stay_also_around_new_bars(new):
    bars = [attributes() + LEFT.format("") + note(), VOLTA + note("D") + RIGHT, note("E"), note("F") + FINAL]
    text = score(bars, bars)
    notation = read(text)
    made = whole(filled(notation, *new))
    for part in (0, 1):
        lines = [
            [(sign.tag, *sorted(sign.attrib.items())) for sign in bar.iter() if sign.tag in ("repeat", "ending")]
            for bar in ElementTree.fromstring(made).findall("part")[part]
        ]
        given = [
            [(sign.tag, *sorted(sign.attrib.items())) for sign in bar.iter() if sign.tag in ("repeat", "ending")]
            for bar in ElementTree.fromstring(text).findall("part")[part]
        ]
        assert lines == given
    assert made.count("light-heavy") == 2
    piano = Part("Piano", 0, (Note(0, 96, 40),))
    assert whole(replace(notation, parts=(*notation.parts, piano))).count("<repeat") == 6


def test_a_title_goes_into_the_work_that_is_there():
    text = score([attributes() + note()], head="<work><work-number>1</work-number></work>")
    work = ElementTree.fromstring(whole(continued(read(text)))).findall("work")
    assert [[(each.tag, each.text) for each in one] for one in work] == [[("work-number", "1"), ("work-title", "new")]]


SLUR = '<slur type="{}" number="1"/>'


@pytest.mark.parametrize("between", [("stop", "start"), ("start", "stop")])
@pytest.mark.parametrize("new", [0, 1, 2, 3])
def test_slurs_that_meet_at_a_note_are_two(new, between):
    signs: list[list[str]] = [["start"], [*between], ["stop"], []]
    bars = [note(more=f"<notations>{''.join(map(SLUR.format, each))}</notations>" * bool(each)) for each in signs]
    made = whole(filled(read(score([attributes() + bars[0], *bars[1:]])), new))
    left = [[sign.get("type", "") for sign in bar.iter("slur")] for bar in ElementTree.fromstring(made).iter("measure")]
    first, second = [new not in (at, at + 1) for at in (0, 1)]
    assert [sorted(each) for each in left] == [
        ["start"] * first,
        ["start"] * second + ["stop"] * first,
        ["stop"] * second,
        [],
    ]


def test_a_document_type_and_links_stay_and_deep_elements_are_refused():
    kind = '<!DOCTYPE score-partwise PUBLIC "-//Recordare//DTD MusicXML 4.0 Partwise//EN" "http://www.musicxml.org/dtds/partwise.dtd">'
    link = '<credit xmlns:xlink="http://www.w3.org/1999/xlink"><link xlink:href="a"/></credit>'
    text = kind + score([attributes() + note()], head=link)
    notation = read(text)
    assert notation.source is not None
    made = as_it_is(notation.source).decode()
    assert kind in made
    assert 'xlink:href="a"' in made
    deep = score([attributes() + note()], head="<miscellaneous>" * 5000 + "</miscellaneous>" * 5000)
    with pytest.raises(UserError, match="thousands"):
        as_it_is(Source(deep, (), (), 0))


def test_after_a_hidden_meter_none_is_shown():
    half = '<attributes><time print-object="no"><beats>2</beats><beat-type>4</beat-type></time></attributes>'
    whole_again = half.replace(">2<", ">4<")
    bars = [attributes() + note(), half + note(length=2), note(length=2), whole_again + note(), note("D")]
    for new in range(5):
        made = ElementTree.fromstring(whole(filled(read(score(bars)), new)))
        first, *others = [time.get("print-object") for time in made.iter("time")]
        assert (first, {*others} <= {"no"}) == (None, True)


def test_new_notes_name_the_sound_that_the_part_has_there():
    named = [f'<instrument id="P0-I{n}"/>' for n in (1, 2)]
    bars = [attributes() + note(more=named[0]), note(more=named[0]), note(more=named[1])]
    given = read(score(bars, [attributes() + note()] + [note()] * 2))
    ids = [re.findall(r'instrument id="P0-I(\d)"', bar) for bar in bars_of(whole(continued(given)))]
    assert ids == [["1"], ["1"], ["2"], ["2"]]
    ids = [re.findall(r'instrument id="P0-I(\d)"', bar) for bar in bars_of(whole(filled(given, 1)))]
    assert ids == [["1"], ["1"], ["2"]]
    assert "instrument" not in "".join(bars_of(whole(continued(given)), part=1))
