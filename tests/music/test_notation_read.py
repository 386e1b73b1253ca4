"""Scores of notation programs, read in five formats."""

import io
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from xml.etree import ElementTree

import pytest
from notated import ABC, KERN, MEI, NOTE, XML, notes

from musictx.music.notation.midi import to_midi
from musictx.music.notation.parts import Bar, Clef, Key, Tempo
from musictx.music.notation.read import read_notation
from musictx.music.notation.write import to_musicxml
from musictx.music.read import read_tracks, whole


def test_humdrum_has_its_parts_upbeat_ties_and_key():
    notation, losses = read_notation(KERN.encode(), "humdrum")
    lower, upper = sorted(notes(notation))[0], sorted(notes(notation))[1]
    assert lower == ((0, 24, 43), (24, 48, 55), (72, 24, 50), (96, 72, 43))
    assert upper == ((0, 24, 74), (24, 36, 71), (60, 12, 69), (72, 24, 66), (96, 72, 67))
    assert (notation.bars, notation.end) == ((Bar(0, 3, 4), Bar(24, 3, 4), Bar(96, 3, 4)), 168)
    assert (notation.keys, dict(losses)) == ((Key(0, 1),), {"grace": 1})


def test_a_reference_that_is_none_does_not_matter():
    text = "!!!ENC: Bach\n!!!ONB:\n!!!no colon\n" + KERN
    assert read_notation(text.encode(), "humdrum") == read_notation(KERN.encode(), "humdrum")


def test_a_name_of_a_key_is_no_signature_where_there_is_one():
    named = KERN.replace("*k[f#]\t*k[f#]\n", "*k[f#]\t*k[f#]\n*e-:\t*B-:mix\n")
    assert read_notation(named.encode(), "humdrum") == read_notation(KERN.encode(), "humdrum")
    named = KERN.replace("*k[f#]\t*k[f#]", "*e-:\t*e-:")
    assert read_notation(named.encode(), "humdrum")[0].keys == (Key(0, -6, "minor"),)


KEYS = {
    "humdrum": "**kern\n*clefGv2\n*k[b-]\n*d:\n*M2/4\n=1\n4d\n*a:\n4e\n=2\n*clefF4\n*k[]\n*a:\n2A\n==\n*-\n",
    "abc": "X:1\nM:2/4\nL:1/4\nK:Dm clef=treble-8\nd e|[K:Am clef=bass] A2|\n",
}


@pytest.mark.parametrize("kind", KEYS)
def test_keys_have_their_mode_and_staves_their_clefs(kind):
    notation, _ = read_notation(KEYS[kind].encode(), kind)
    assert notation.keys == (Key(0, -1, "minor"), Key(48, 0, "minor"))
    assert notation.parts[0].clefs == (Clef(0, "G", 2, -1), Clef(48, "F", 4))


def test_an_instrument_that_transposes_is_read_as_it_sounds_and_packed_as_plain():
    text = XML.format(notes=NOTE.format("D", 6) + NOTE.format("E", 2) * 3)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        others = "'oboe&apos;s.xml'><rootfile full-path=\"part.xml\""
        roots = (
            f"<rootfile full-path='./a/../s%26.xml'><rootfile full-path={others}"  # no XML, as some programs write it
        )
        file.writestr("META-INF/container.xml", roots)
        file.writestr("__MACOSX/._s.xml", b"\0\1")
        file.writestr("part.xml", "<score-partwise/>")
        file.writestr("s&.xml", text)
    for data in (text.encode(), text.encode("utf-16"), packed.getvalue()):
        notation, _ = read_notation(data, "musicxml")
        assert notes(notation) == [((0, 24, 60), (24, 8, 62), (32, 8, 62), (40, 8, 62))]
        assert (notation.keys, notation.tempi) == ((Key(0, 0),), (Tempo(0, 90.0),))


def test_words_for_a_tempo_in_each_spine_are_one():
    text = "**kern\t**kern\n*M4/4\t*M4/4\n*MM[Andante]\t*MM[Andante]\n=1\t=1\n1c\t1e\n==\t==\n*-\t*-\n"
    assert read_notation(text.encode(), "humdrum")[1] == {"wordy": 1}


def test_mei_is_read():
    assert notes(read_notation(MEI.encode(), "mei")[0]) == [((0, 24, 60), (24, 24, 64))]


def test_movements_of_mei_after_the_first_are_counted():
    movement = MEI[MEI.index("<mdiv>") : MEI.index("</body>")]
    notation, losses = read_notation(MEI.replace("</body>", movement * 2 + "</body>").encode(), "mei")
    assert (notes(notation), dict(losses)) == ([((0, 24, 60), (24, 24, 64))], {"movements": 2})


def test_what_the_grid_lacks_gets_the_nearest_place_and_is_counted():
    quintuplet = "".join(NOTE.format(step, 6).replace("6<", "4.8<") for step in "CDEFG")
    _, losses = read_notation(
        XML.replace("<divisions>6", "<divisions>10").format(notes=quintuplet).encode(), "musicxml"
    )
    assert losses["finer"] > 0
    between = NOTE.format("D", 6).replace("</step>", "</step><alter>0.5</alter>")
    notation, losses = read_notation(XML.format(notes=between).encode(), "musicxml")
    assert notes(notation)[0][0].pitch in (60, 61)
    assert losses == {"between": 1}


MARK = "<metronome><beat-unit>quarter</beat-unit>{}<per-minute>{}</per-minute></metronome>"
MODULATION = "<metronome><beat-unit>quarter</beat-unit><beat-unit>quarter</beat-unit><beat-unit-dot/></metronome>"


@pytest.mark.parametrize(
    ("marks", "tempi", "wordy"),
    [
        (MARK.format("<beat-unit-dot/>", 60), (90.0,), 0),
        (MARK.format("", "ca. 60-66"), (60.0,), 0),
        (MARK.format("", "lento"), (120.0,), 1),
        ("<words>Allegro</words></direction-type><sound tempo='77'/><direction-type><words/>", (77.0,), 0),
        (MARK.format("", 100000), (1000.0,), 0),
        (MODULATION + "</direction-type><sound tempo='90'/><direction-type><words/>", (90.0,), 0),
        (MARK.format("", "fast") + "</direction-type><sound tempo='90'/><direction-type><words/>", (90.0,), 0),
        (MODULATION, (120.0,), 1),
    ],
)
def test_a_tempo_is_a_number_also_one_that_is_only_played(marks, tempi, wordy):
    text = XML.replace(XML[XML.index("<metronome>") : XML.index("</direction-type>")], marks)
    notation, losses = read_notation(text.format(notes=NOTE.format("D", 12)).encode(), "musicxml")
    assert tuple(each.quarters_a_minute for each in notation.tempi) == tempi
    assert losses["wordy"] == wordy


def test_cue_notes_are_silent_and_measures_of_parts_are_read():
    cue = NOTE.format("E", 6).replace("<note>", "<note><cue/>")
    more = NOTE.format("G", 6).replace("<note>", "<note><cue/><chord/>")
    text = XML.format(notes=NOTE.format("D", 6) + cue + more)
    for order in (text, text.replace("partwise", "timewise")):
        if order is not text:
            inner = order[order.index("<part id") : order.index("</score")]
            flipped = inner.replace('<part id="P1"><measure number="1">', '<measure number="1"><part id="P1">')
            order = order.replace(inner, flipped.replace("</measure></part>", "</part></measure>"))
        notation, losses = read_notation(order.encode(), "musicxml")
        assert (notes(notation), dict(losses)) == ([((0, 24, 60),)], {"cue": 2})


def test_a_note_of_a_chord_is_not_tied_where_its_neighbour_is():
    kern = "**kern\n*M4/4\n[4c 4e\n4c] 4e\n2r\n=2\n*-\n"
    found = notes(read_notation(kern.encode(), "humdrum")[0])
    assert found == [((0, 24, 64), (0, 48, 60), (24, 24, 64))]
    chord = "<chord/>".join(["<note>", NOTE.format("E", 6).removeprefix("<note>")])
    tied = [
        NOTE.format("C", 6).replace("</note>", f'<tie type="{kind}"/></note>') + chord for kind in ("start", "stop")
    ]
    found = notes(read_notation(XML.format(notes="".join(tied)).encode(), "musicxml")[0])
    assert found == [((0, 24, 62), (0, 48, 58), (24, 24, 62))]


def test_threads_that_read_and_write_leave_the_error_stream_as_it_was():
    before, notation = sys.stderr, read_notation(KERN.encode(), "humdrum")[0]
    with ThreadPoolExecutor(4) as pool:
        readings = [pool.submit(read_notation, KERN.encode(), "humdrum") for _ in range(12)]
        writings = [pool.submit(to_musicxml, notation) for _ in range(6)]
        assert all(work.result()[0] == notation for work in readings)
        assert all(read_notation(work.result()[0], "musicxml")[0].end == notation.end for work in writings)
    assert sys.stderr is before


@pytest.mark.parametrize(
    ("name", "text"), [("a.krn", KERN), ("a.abc", ABC), ("a.mei", MEI), ("", KERN), ("", ABC), ("", MEI)]
)
def test_notation_goes_through_the_door_of_midi(name, text):
    tracks = read_tracks(text.encode(), name)
    assert len(tracks.merge()) >= 2
    assert whole(text.encode(), name)[:4] == b"MThd"
    if text == KERN:
        assert "a grace note is left out" in tracks.remark()
        assert tracks.meter().whole_s == pytest.approx(0.5)  # bar 1 comes after the upbeat


def test_a_last_bar_that_is_empty_in_the_first_staff_is_one_bar():
    for line in ("2.GG\t.\n", ".\t2.g\n"):
        notation, _ = read_notation(KERN.replace("2.GG\t2.g\n", line).encode(), "humdrum")
        assert [bar.onset for bar in notation.bars] == [0, 24, 96]
        assert notation.end == 168


def test_bars_of_all_parts_begin_together():
    """As those of files whose triplets nobody marked: their bar is too long in one part."""
    head, part = XML.split('<part id="P1">')
    upper = part.removesuffix("</part></score-partwise>")
    bars = "".join(f'<measure number="{n}">{{}}</measure>' for n in (2, 3))
    long = upper.format(notes=NOTE.format("D", 6) * 3) + bars.format(NOTE.format("D", 12), NOTE.format("E", 12))
    short = upper.format(notes=NOTE.format("C", 12)) + bars.format(NOTE.format("C", 12), NOTE.format("F", 12))
    lower = head.replace("</score-part>", '</score-part><score-part id="P2"><part-name/></score-part>')
    text = f'{lower}<part id="P1">{long}</part><part id="P2">{short}</part></score-partwise>'
    notation, _ = read_notation(text.encode(), "musicxml")
    assert [[note.onset for note in part.notes] for part in notation.parts] == [[0, 24, 48, 72, 120], [0, 72, 120]]
    assert [bar.onset for bar in notation.bars] == [0, 72, 120]


@pytest.mark.parametrize("name", ["Clarinet", "Clarinet in A", "Flute"])
@pytest.mark.parametrize("steps", ["", "<diatonic>-2</diatonic>"])
def test_a_staff_sounds_as_its_file_says_and_not_as_its_name(name, steps):
    in_b_flat = "<transpose><chromatic>-2</chromatic></transpose>"
    in_a = f"<transpose>{steps}<chromatic>-3</chromatic></transpose>"
    instrument = f'<score-instrument id="I1"><instrument-name>{name}</instrument-name></score-instrument>'
    instrument += '<midi-instrument id="I1"><midi-program>72</midi-program></midi-instrument>'
    text = XML.replace(">Clarinet<", f">{name}<").replace("</score-part>", f"{instrument}</score-part>")
    later = f"<attributes><key><fifths>3</fifths></key>{in_b_flat}</attributes>"
    bars = f'{NOTE.format("C", 12)}</measure><measure number="2">{{}}{NOTE.format("C", 12)}'
    for first, pitch, sharps in (in_a, 57, 5), ("", 60, 2):
        changing = text.replace(in_b_flat, first).format(notes=bars.format(later))
        notation, _ = read_notation(changing.encode(), "musicxml")
        assert notes(notation) == [((0, 48, pitch), (48, 48, 58))]
        assert notation.keys == (Key(0, sharps), Key(48, 1))


def test_the_key_of_a_score_is_that_of_most_staves():
    horns = XML.replace("<fifths>2", "<fifths>0").replace("-2<", "-7<").format(notes=NOTE.format("C", 12))
    head, body = horns.split("</part-list>")
    part = body[: body.index("</part>") + 7].replace("-7<", "0<").replace("<fifths>0", "<fifths>-3")
    others = "".join(part.replace('"P1"', f'"P{n}"') for n in (2, 3))
    names = "".join(f'<score-part id="P{n}"><part-name>Viola</part-name></score-part>' for n in (2, 3))
    whole = f"{head}{names}</part-list>{body.replace('</score-', others + '</score-')}"
    notation, _ = read_notation(whole.encode(), "musicxml")
    assert notation.keys == (Key(0, -3),)
    assert [part.keys for part in notation.parts] == [(Key(0, -1),), None, None]
    unsigned = whole.replace("<key><fifths>0</fifths></key>", "")
    for text in whole, unsigned:  # players of horns read no signature
        given = read_notation(text.encode(), "musicxml")[0]
        written = ElementTree.fromstring(to_musicxml(given)[0])
        assert [each.text for each in written.iter("fifths")] == ["0", "-3", "-3"]
        assert [part.keys for part in read_notation(ElementTree.tostring(written), "musicxml")[0].parts] == [
            (Key(0, -1),),
            None,
            None,
        ]


FORWARD = "<forward><duration>{}</duration></forward>"
BACK = "<backup><duration>{}</duration></backup>"


@pytest.mark.parametrize(
    ("bar", "expected"),
    [
        (NOTE.format("C", 6) + FORWARD.format(6), [(0, 24, 58)]),
        (FORWARD.format(6) + NOTE.format("C", 3) + FORWARD.format(3), [(24, 12, 58)]),
        (NOTE.format("C", 6) + BACK.format(6) + NOTE.format("E", 3) + FORWARD.format(9), [(0, 12, 62), (0, 24, 58)]),
        (FORWARD.format(12), []),
    ],
)
def test_time_that_a_bar_only_goes_forward_counts(bar, expected):
    text = XML.format(notes=f'{bar}</measure><measure number="2">{NOTE.format("D", 12)}')
    notation, losses = read_notation(text.encode(), "musicxml")
    assert sorted(tuple(note) for note in notation.parts[0].notes) == sorted([*expected, (48, 48, 60)])
    assert (notation.bars, notation.end, losses) == ((Bar(0, 2, 4), Bar(48, 2, 4)), 96, {})


@pytest.mark.parametrize(
    ("tune", "tempi"),
    [
        ("c4|c4|[Q:1/4=60]c4|c4|", [(0, 120.0), (192, 60.0)]),
        ("[Q:1/4=60]c4|c4|c4|c4|", [(0, 60.0)]),
        ("c|[Q:1/4=60]c4|c4|[Q:1/4=90]c3|", [(0, 60.0), (216, 90.0)]),  # an upbeat has the first bar's
        ("c4|c4|c4|c4|", [(0, 120.0)]),
    ],
)
def test_a_tempo_holds_from_its_mark_on(tune, tempi):
    notation, _ = read_notation(f"X:1\nM:4/4\nL:1/4\nK:C\n{tune}\n".encode(), "abc")
    assert [each[:2] for each in notation.tempi] == tempi
    read = read_tracks(to_midi(notation), "it").tempo_map
    assert [round(60 / each) for each in read.tick_s * 480] == [round(speed) for _, speed in tempi]
