"""Scores of notation programs: read in five formats, written as MusicXML and as MIDI, and what is refused."""

import builtins
import io
import re
import sys
import zipfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from conftest import ok, refused
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from strategies import notations

from musictx.errors import MidiError, UserError
from musictx.music.midi_file import Event, EventFile, EventTrack, write_events
from musictx.music.notation.abc_voices import each_voice
from musictx.music.notation.midi import from_midi, to_midi
from musictx.music.notation.notation import Bar, Key, Notation, Note, Part, Tempo
from musictx.music.notation.read import read_notation
from musictx.music.notation.spelling import spelled
from musictx.music.notation.write import ONE, chords_of, in_voices, pieces, to_musicxml
from musictx.music.read import read_tracks, whole
from musictx.music.score import Score
from musictx.music.write import write_midi
from musictx.viz.engraving import write_notation

KERN = (
    "**kern\t**kern\n*M3/4\t*M3/4\n*k[f#]\t*k[f#]\n4GG\t4dd\n=1\t=1\n2G\t[4b\n.\t8b]\n.\t8a\n"
    "4D\tqg\n.\t4f#\n=2\t=2\n2.GG\t2.g\n==\t==\n*-\t*-\n"
)
ABC = "%abc\nX:1\nT:Air\nM:3/4\nL:1/4\nK:G\n[V:1] d | B3/2A/F | G3 |]\n[V:2] G, | G,2 D, | G,3 |]\n"
XML = """<?xml version="1.0"?><score-partwise version="4.0"><part-list>
<score-part id="P1"><part-name>Clarinet</part-name>
</score-part></part-list><part id="P1"><measure number="1"><attributes>
<divisions>6</divisions><key><fifths>2</fifths></key>
<time><beats>2</beats><beat-type>4</beat-type></time><transpose><chromatic>-2</chromatic></transpose></attributes>
<direction><direction-type><metronome><beat-unit>quarter</beat-unit><per-minute>90</per-minute>
</metronome></direction-type></direction>{notes}</measure></part></score-partwise>"""
NOTE = "<note><pitch><step>{}</step><octave>4</octave></pitch><duration>{}</duration></note>"
METER = "<beats>2</beats><beat-type>4<"
LONG = NOTE.format("C", 6 * 99_999)
MEI = """<mei xmlns="http://www.music-encoding.org/ns/mei"><music><body><mdiv><score><scoreDef meter.count="2"
meter.unit="4"><staffGrp><staffDef n="1" lines="5" clef.shape="G" clef.line="2"/></staffGrp></scoreDef>
<section><measure n="1"><staff n="1"><layer n="1"><note pname="c" oct="4" dur="4"/>
<note pname="e" oct="4" dur="4"/></layer></staff></measure></section></score>
</mdiv></body></music></mei>"""


def notes(notation):
    return [part.notes for part in notation.parts]


def test_humdrum_has_its_parts_upbeat_ties_and_key():
    notation, losses = read_notation(KERN.encode(), "humdrum")
    lower, upper = sorted(notes(notation))[0], sorted(notes(notation))[1]
    assert lower == ((0, 24, 43), (24, 48, 55), (72, 24, 50), (96, 72, 43))
    assert upper == ((0, 24, 74), (24, 36, 71), (60, 12, 69), (72, 24, 66), (96, 72, 67))
    assert (notation.bars, notation.end) == ((Bar(0, 3, 4), Bar(24, 3, 4), Bar(96, 3, 4)), 168)
    assert (notation.keys, dict(losses)) == ((Key(0, 1),), {"grace": 1})


def test_a_reference_that_is_none_does_not_matter():
    text = "!!!COM: Bach\n!!!ONB:\n!!!no colon\n" + KERN
    assert read_notation(text.encode(), "humdrum") == read_notation(KERN.encode(), "humdrum")


def test_a_name_of_a_key_is_no_signature_where_there_is_one():
    named = KERN.replace("*k[f#]\t*k[f#]\n", "*k[f#]\t*k[f#]\n*e-:\t*B-:mix\n")
    assert read_notation(named.encode(), "humdrum") == read_notation(KERN.encode(), "humdrum")
    named = KERN.replace("*k[f#]\t*k[f#]", "*e-:\t*e-:")
    assert read_notation(named.encode(), "humdrum")[0].keys == (Key(0, -6),)


def test_each_voice_of_abc_is_a_part():
    assert len(each_voice(ABC, Counter())) == 2
    notation, _ = read_notation(ABC.encode(), "abc")
    assert notes(notation) == [
        ((0, 24, 74), (24, 36, 71), (60, 12, 69), (72, 24, 66), (96, 72, 67)),
        ((0, 24, 55), (24, 48, 55), (72, 24, 50), (96, 72, 55)),
    ]
    assert [bar.onset for bar in notation.bars] == [0, 24, 96]


def test_an_instrument_that_transposes_is_read_as_it_sounds_and_packed_as_plain():
    text = XML.format(notes=NOTE.format("D", 6) + NOTE.format("E", 2) * 3)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr("META-INF/container.xml", "<rootfile full-path='s.xml'")  # no XML, as some programs write it
        file.writestr("s.xml", text)
    for data in (text.encode(), text.encode("utf-16"), packed.getvalue()):
        notation, _ = read_notation(data, "musicxml")
        assert notes(notation) == [((0, 24, 60), (24, 8, 62), (32, 8, 62), (40, 8, 62))]
        assert (notation.keys, notation.tempi) == ((Key(0, 0),), (Tempo(0, 90.0),))


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


@pytest.mark.parametrize(
    ("data", "kind", "says"),
    [
        (b'<!DOCTYPE x [<!ENTITY a "aaaa">]><score-partwise/>', "musicxml", "entities"),
        (b"<score-partwise><part", "musicxml", "cannot be read as notation"),
        (b"<score-partwise/>", "musicxml", "no notes|cannot be read"),
        (b"PK\x03\x04damaged", "musicxml", "cannot be unpacked"),
        (XML.format(notes="").encode(), "musicxml", "no notes"),
        (b"**kern\n*M4/4\n4r\n*-\n", "humdrum", "no notes"),
        (b"X:1\nK:C\nz4|\n", "abc", "no notes"),
        (b"X:1\nK:C\n" + b"Z999|" * 60 + b"C|\n", "abc", "50,000 bars of rests"),
        (b"**kern\n" + b"*^\n" * 5000, "humdrum", "cannot be read as notation|no notes"),
        (ABC.encode() + b"".join(b"[V:%d] C4|\n" % n for n in range(3, 200)), "abc", "staves, and at most"),
        (XML.format(notes=NOTE.format("C", 6 * 10**9)).encode(), "musicxml", "quarters"),
        (
            XML.replace(METER, "<beats>1</beats><beat-type>128<").format(notes=LONG).encode(),
            "musicxml",
            "bars of 1/128",
        ),
        (XML.replace(METER, "<beats>7</beats><beat-type>64<").format(notes=LONG).encode(), "musicxml", "bars of 7/64"),
        (XML.format(notes="<note><unpitched/><duration>6</duration></note>").encode(), "musicxml", "with a pitch"),
    ],
)
def test_no_score_is_refused_in_a_line(data, kind, says):
    with pytest.raises(MidiError, match=says) as refused:
        read_notation(data, kind, "it")
    assert "\n" not in str(refused.value)


def packed(text, how=zipfile.ZIP_DEFLATED):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", how) as file:
        file.writestr("s.xml", text)
    return data.getvalue()


@given(st.data())
def test_damage_is_refused_in_a_line_or_read(data):
    text = XML.format(notes=NOTE.format("D", 6)).encode()
    kinds = {"a.krn": KERN.encode(), "a.abc": ABC.encode(), "a.mei": MEI.encode(), "a.xml": text}
    kinds |= {"a.mxl": packed(text), "b.mxl": packed(text, zipfile.ZIP_LZMA)}
    name = data.draw(st.sampled_from([*kinds]))
    damaged = bytearray(kinds[name])
    for at in data.draw(st.lists(st.integers(0, len(damaged) - 1), min_size=1, max_size=5)):
        damaged[at] = data.draw(st.sampled_from(b'0189/|[]<>"=-^&: \n\tAFZafz\x00\xff'))
    said = ""
    try:
        read_tracks(bytes(damaged), name)
    except MidiError as error:
        said = str(error)
    assert "\n" not in said


def abc_notes(body, head="X:1\nM:4/4\nL:1/4\n"):
    notation, losses = read_notation((head + body).encode(), "abc", "it")
    return [[(note.onset, note.pitch) for note in part.notes] for part in notation.parts], dict(losses)


@pytest.mark.parametrize(
    ("body", "voices", "losses"),
    [
        ("K:C\nCDE\nF:|\n", [[(0, 60), (24, 62), (48, 64), (72, 65)]], {}),
        ("K:C\n[V:1]CD[V:2]EF|[V:1]EF|\n", [[(0, 60), (24, 62), (48, 64), (72, 65)], [(0, 64), (24, 65)]], {}),
        ("V:1\nV:2\nK:C\nC4|\nV:2\nE4|\n", [[(0, 60)], [(0, 64)]], {}),
        ("CD\n", [[(0, 60), (24, 62)]], {}),
        ('K:C\nC4:|["2-9" D4|]\n', [[(0, 60), (96, 62)]], {}),
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


def test_abc_without_a_unit_has_eighths_or_in_a_short_meter_sixteenths():
    assert abc_notes("K:C\nCDE|\n", "X:1\nM:3/4\n")[0] == [[(0, 60), (12, 62), (24, 64)]]
    assert abc_notes("K:C\nCDE|\n", "X:1\nM:2/4\n")[0] == [[(0, 60), (6, 62), (12, 64)]]


MARK = "<metronome><beat-unit>quarter</beat-unit>{}<per-minute>{}</per-minute></metronome>"


@pytest.mark.parametrize(
    ("marks", "tempi", "wordy"),
    [
        (MARK.format("<beat-unit-dot/>", 60), (90.0,), 0),
        (MARK.format("", "ca. 60"), (120.0,), 1),
        ("<words>Allegro</words></direction-type><sound tempo='77'/><direction-type><words/>", (77.0,), 0),
        (MARK.format("", 100000), (1000.0,), 0),
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


def midi_of(tracks, meta=()):
    """A file with a note of a quarter at each (channel, tick, pitch) of a track."""
    made = [EventTrack([Event(tick, data) for tick, data in meta], 0)]
    for track in tracks:
        events = [(tick, bytes([0x90 | channel, pitch, 80])) for channel, tick, pitch in track]
        events += [(tick + 480, bytes([0x80 | channel, pitch, 0])) for channel, tick, pitch in track]
        made.append(EventTrack([Event(*event) for event in sorted(events)], 0))
    return write_events(EventFile((480).to_bytes(2), made))


def test_drums_and_far_notes_of_a_midi_file():
    drum, note, unison = (9, 0, 36), (0, 0, 60), (1, 0, 60)
    notation, losses = from_midi(midi_of([[note], [drum, drum]]), "it")
    assert (notes(notation), dict(losses)) == ([((0, 24, 60),)], {"drums": 2})
    with pytest.raises(MidiError, match="no notes but drums"):
        from_midi(midi_of([[drum]]), "it")
    with pytest.raises(MidiError, match="100,000 quarters"):
        from_midi(midi_of([[note, (0, 480 * 10**5, 60)]]), "it")
    with pytest.raises(MidiError, match="bars of 7/128"):
        from_midi(midi_of([[note]], [(0, b"\xff\x58\x04\x07\x07\x18\x08")]), "it")
    with pytest.raises(MidiError, match="50,000 bars"):
        from_midi(midi_of([[note, (0, 480 * 9999, 60)]], [(0, b"\xff\x58\x04\x01\x05\x18\x08")]), "it")
    together, losses = from_midi(midi_of([[note, (0, 480, 62)], [unison]]), "it")  # a second voice's unison
    assert (notes(together), dict(losses)) == ([((0, 24, 60), (24, 24, 62))], {"shared": 1})
    assert len(from_midi(midi_of([[note], [(1, 0, 64)]]), "it")[0].parts) == 2


def test_of_two_meters_keys_or_tempi_at_one_tick_the_later_counts():
    said = [b"\x58\x04\x04\x02\x18\x08", b"\x58\x04\x03\x02\x18\x08", b"\x59\x02\x03\x00", b"\x59\x02\x01\x00"]
    said += [b"\x51\x03\x07\xa1\x20", b"\x51\x03\x0f\x42\x40"]
    notation, _ = from_midi(midi_of([[(0, 0, 60)]], [(0, b"\xff" + each) for each in said]), "it")
    assert (notation.bars, notation.keys, notation.tempi) == ((Bar(0, 3, 4),), (Key(0, 1),), (Tempo(0, 60.0),))


def test_a_tempo_of_midi_that_no_program_plays_is_bounded():
    note = (0, 0, 60)
    assert from_midi(midi_of([[note]], [(0, b"\xff\x51\x03\x00\x00\x01")]), "it")[0].tempi == (Tempo(0, 1000.0),)


def test_a_name_that_xml_cannot_say_is_written_without_it(tmp_path):
    part = Part("Pi\x01a\x00no\ud800", 0, (Note(0, 24, 60),))
    notation = Notation((part,), (Bar(0, 4, 4),), 96)
    write_notation(notation, tmp_path / "a.png", "\x02title")
    assert read_notation(to_musicxml(notation, "\x1b")[0], "musicxml")[0].parts[0].name == "Pi a no"


def test_what_is_packed_has_a_limit(monkeypatch):
    monkeypatch.setattr("musictx.music.notation.read.MOST_BYTES", 1000)
    with pytest.raises(MidiError, match="MB of notation"):
        read_notation(packed(" " * 10**6), "musicxml", "it")


@pytest.mark.parametrize("package", ["music21", "partitura"])
def test_without_a_package_its_name_is_said(monkeypatch, package):
    real = builtins.__import__

    def absent(name, *args, **kwargs):
        if name.partition(".")[0] == package:
            raise ImportError(name)
        return real(name, *args, **kwargs)

    notation, _ = read_notation(KERN.encode(), "humdrum")
    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(UserError, match=f"package {package}"):
        read_notation(KERN.encode(), "humdrum", "it") if package == "music21" else to_musicxml(notation)


@given(notations())
@settings(max_examples=15)
def test_a_score_comes_back_from_musicxml_and_what_does_not_is_counted(notation):
    text, losses = to_musicxml(notation)
    found, unread = read_notation(text, "musicxml")
    assert not unread
    assert [x.onset for x in found.bars] == [x.onset for x in notation.bars]
    if all(end - bar.onset == bar.full for bar, end in notation.spans):
        assert found.bars == notation.bars
    assert (found.end, found.keys, found.tempi) == (notation.end, notation.keys, notation.tempi)
    few = [voices_needed(part.notes) <= 4 for part in notation.parts]
    assert losses["voices"] == 0 or not all(few)
    lost = 0
    for mine, back in zip(notation.parts, found.parts, strict=True):
        assert (mine.name, mine.program) == (back.name, back.program)
        assert {(x.onset, x.pitch) for x in back.notes} == {(x.onset, x.pitch) for x in mine.notes}
        lost += len({*mine.notes} - {*back.notes})
    assert lost == losses.total()


def test_a_key_and_a_tempo_within_a_bar_move_no_note():
    music = tuple(Note(24 * n, 24, 60 + n) for n in range(8))
    keys, tempi = (Key(0, 1), Key(24, 2), Key(72, -3), Key(96, 0)), (Tempo(0, 100.0), Tempo(12, 90.0), Tempo(90, 80.0))
    notation = Notation((Part("a", 0, music),), (Bar(0, 4, 4), Bar(96, 4, 4)), 192, keys, tempi)
    assert read_notation(to_musicxml(notation)[0], "musicxml") == (notation, {})


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


def voices_needed(notes):
    """Most lengths that sound at one time."""
    spans = {(note.onset, note.offset) for note in notes}
    return max(sum(a <= at < b for a, b in spans) for at, _ in spans)


@given(notations())
def test_a_score_comes_back_from_midi(notation):
    data = to_midi(notation)
    found, losses = from_midi(data)
    lengths = {note.length for part in notation.parts for note in part.notes}
    if lengths <= {3, 4, 6, 8, 12, 16, 18, 24, 30, 48, 72}:  # a note of 23 units, say, is one of 24 that a DAW cut
        assert (notes(found), dict(losses)) == (notes(notation), {})
    last = max(note.offset for part in notation.parts for note in part.notes) - 2
    mine, back = ([x.onset for x in each.bars if x.onset < last] for each in (notation, found))
    assert back == mine
    assert (found.keys, [part.name for part in found.parts]) == (
        notation.keys,
        [part.name for part in notation.parts],
    )
    tracks = read_tracks(data, "it")
    onsets = sorted(seconds(notation, note.onset) for part in notation.parts for note in part.notes)
    assert np.allclose(tracks.merge().onset_s, onsets, atol=1e-3)


def seconds(notation, at):
    spans = pairwise([*notation.tempi, Tempo(at, 1.0)])
    return sum(max(min(after.onset, at) - now.onset, 0) / 24 * 60 / now.quarters_a_minute for now, after in spans)


def test_a_unison_of_two_lengths_is_counted_where_it_becomes_midi():
    kern = b"**kern\n*M4/4\n*^\n1c\t4c\n.\t2.e\n*v\t*v\n=2\n*-\n"
    assert notes(read_notation(kern, "humdrum")[0]) == [((0, 24, 60), (0, 96, 60), (24, 72, 64))]
    tracks = read_tracks(kern, "it.krn")
    assert (len(tracks.merge()), +tracks.repairs) == (2, {"unison": 1})


@pytest.mark.parametrize("bar", [Bar(0, 4, 3), Bar(0, 300, 4)])
def test_a_meter_that_midi_lacks_is_refused_by_name(bar):
    with pytest.raises(ValueError, match=f"bars of {bar.numerator}/{bar.denominator}"):
        to_midi(Notation((Part("", 0, (Note(0, 24, 60),)),), (bar,), bar.full))


def test_stems_of_two_voices_point_away_from_each_other():
    upper = [Note(12 * n, 12, 84) for n in range(8)]
    music = tuple(sorted([*upper, Note(0, 48, 60), Note(48, 48, 62)]))
    text = to_musicxml(Notation((Part("", 0, music),), (Bar(0, 4, 4),), 96))[0].decode()
    stems = re.findall(r"<step>(.)</step>(?:(?!</note>).)*<stem>(.*?)</stem>", text, re.DOTALL)
    assert stems == [("C", "up")] * 8 + [("C", "down"), ("D", "down")]


@given(st.integers(0, 95), st.integers(1, 400))
def test_pieces_are_note_heads_and_add_up(at, length):
    heads = list(pieces(at, length))
    assert sum(heads) == length
    assert {*heads} <= {*ONE}
    assert len(heads) <= 3 + length // 96 * 2 + 4


@given(notations())
def test_no_voice_overlaps_itself_and_no_note_is_lost(notation):
    for part, names in zip(notation.parts, spelled(notation), strict=True):
        voices = in_voices(chords_of(part.notes, names))
        assert len(voices) <= 4
        for voice in voices:
            assert all(a.offset <= b.onset for a, b in pairwise(voice))
        assert sum(len(chord.names) for voice in voices for chord in voice) == len(part.notes)


def test_a_performance_is_no_score_and_a_quantised_file_with_short_notes_is(tmp_path):
    rng = np.random.default_rng(0)
    onset = np.arange(40) * 0.31 + rng.uniform(0, 0.1, 40)
    path = tmp_path / "a.mid"
    write_midi(Score(onset, onset + 0.2, np.full(40, 60) + np.arange(40) % 12, np.full(40, 80)), path)
    with pytest.raises(MidiError, match="is a performance, not a score: .* of its 40 notes"):
        from_midi(path.read_bytes(), "it")
    on, off = np.arange(8) * 480, np.arange(8) * 480 + 455  # ticks: a gate of 95 %
    events = [e for a, b in zip(on, off, strict=True) for e in ((a, b"\x90\x3c\x50"), (b, b"\x80\x3c\x40"))]
    file = EventFile((480).to_bytes(2), [EventTrack([Event(int(at), data) for at, data in events], 8 * 480)])
    assert [note.length for note in from_midi(write_events(file))[0].parts[0].notes] == [24] * 8


def test_threads_that_read_and_write_leave_the_error_stream_as_it_was():
    before, notation = sys.stderr, read_notation(KERN.encode(), "humdrum")[0]
    with ThreadPoolExecutor(4) as pool:
        readings = [pool.submit(read_notation, KERN.encode(), "humdrum") for _ in range(12)]
        writings = [pool.submit(to_musicxml, notation) for _ in range(6)]
        assert all(work.result()[0] == notation for work in readings)
        assert all(read_notation(work.result()[0], "musicxml")[0].end == notation.end for work in writings)
    assert sys.stderr is before


def test_a_file_of_few_ticks_is_a_score_too():
    ticks = [round(100 * k / 8) for k in range(9)]  # thirty-seconds of 100 ticks a quarter lie between ticks
    events = [each for a, b in pairwise(ticks) for each in ((a, b"\x90\x3c\x50"), (b, b"\x80\x3c\x40"))]
    file = EventFile((100).to_bytes(2), [EventTrack([Event(tick, data) for tick, data in events], 100)])
    notation, _ = from_midi(write_events(file), "it")
    assert [note.onset for note in notation.parts[0].notes] == [*range(0, 24, 3)]


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


def test_a_key_that_nobody_says_is_found_and_a_keyboard_gets_two_staves():
    scale = [41, 57, 60, 65, 69, 67, 65, 64, 62, 60, 58, 57, 55, 53]
    part = Part("Piano", 0, tuple(Note(24 * n, 24, pitch) for n, pitch in enumerate(scale)))
    notation = Notation((part,), (Bar(0, 4, 4),), 24 * len(scale), keys=()).on_two_staves()
    assert [[note.pitch for note in staff.notes] for staff in notation.parts] == [
        [60, 65, 69, 67, 65, 64, 62, 60],
        [41, 57, 58, 57, 55, 53],
    ]
    assert notation.keyboards == [(0, 1)]
    text, _ = to_musicxml(notation)
    assert text.count(b"<part ") == 1
    assert read_notation(text, "musicxml")[0].keys == (Key(0, -1),)
    voice = Notation((Part("Voice", 52, part.notes),), (Bar(0, 4, 4),), 336, keys=())
    assert voice.on_two_staves() == voice


@pytest.mark.parametrize("name", ["a.png", "a.svg", "a.pdf", "a.musicxml"])
def test_pages_have_ink_and_never_a_half_file(tmp_path, name, monkeypatch):
    notation, _ = read_notation(KERN.encode(), "humdrum")
    write_notation(notation, tmp_path / name, "it")
    data = (tmp_path / name).read_bytes()
    assert data[:4] == {"a.png": b"\x89PNG", "a.pdf": b"%PDF", "a.svg": b"<svg", "a.musicxml": b"<?xm"}[name]
    if name == "a.png":
        assert 0.01 < (np.asarray(Image.open(tmp_path / name).convert("L")) < 128).mean() < 0.3
    monkeypatch.setitem(sys.modules, "verovio", None)
    if name != "a.musicxml":
        with pytest.raises(UserError, match="package verovio"):
            write_notation(notation, tmp_path / f"b{name}", "it")
        assert not (tmp_path / f"b{name}").exists()


def test_render_writes_a_score_that_comes_back(tmp_path):
    (tmp_path / "a.abc").write_text(ABC)
    ok(["musictx", "render", "a.abc", "out=a.musicxml"], tmp_path)
    again = read_notation((tmp_path / "a.musicxml").read_bytes(), "musicxml")[0]
    assert notes(again) == notes(read_notation(ABC.encode(), "abc")[0])
    assert [(bar.onset, bar.numerator) for bar in again.bars] == [(0, 3), (24, 3), (96, 3)]
    assert "is a performance, not a score" in refused(
        ["musictx", "render", "elise", "out=e.pdf", "score=true"], tmp_path
    )
    (tmp_path / "d.mid").write_bytes(midi_of([[(0, 0, 60)], [(9, 0, 36), (9, 480, 36)]]))
    said = ok(["musictx", "render", "d.mid", "score=true", "out=d.musicxml"], tmp_path).stdout
    assert "1 staff, 1 bar; 2 drum notes are left out" in said


def test_more_than_any_page_holds_is_refused_before_it_is_written(monkeypatch, capfd):
    many = Notation(tuple(Part(f"{n}", n, (Note(0, 24, 60),)) for n in range(20)), (Bar(0, 4, 4),), 96)
    assert len(read_notation(to_musicxml(many)[0], "musicxml")[0].parts) == 20
    assert capfd.readouterr().err == ""
    monkeypatch.setattr("musictx.music.notation.write.MOST_BARS", 19)
    with pytest.raises(UserError, match="a score of 20 bars, all staves together: cut it"):
        to_musicxml(many)
    monkeypatch.setattr("musictx.music.notation.midi.MOST_PARTS", 19)
    with pytest.raises(MidiError, match="20 staves, and at most 19"):
        from_midi(to_midi(many), "it")


def test_a_keyboard_has_two_staves_of_one_instrument_and_a_choir_none():
    line, chords = (Note(0, 24, 72), Note(24, 24, 74)), (Note(0, 48, 60), Note(0, 48, 64), Note(24, 24, 55))
    low = tuple(note._replace(pitch=note.pitch - 24) for note in chords)
    voice, right, left = Part("", 0, line), Part("", 0, chords), Part("", 0, low)
    parts = {(voice, right, left): [(1, 2)], (right, left): [(0, 1)], (voice, left): [(0, 1)]}
    choir = [Part("", 0, tuple(note._replace(pitch=note.pitch - 6 * n) for note in line)) for n in range(4)]
    parts |= {tuple(choir): [], (*choir, right, left): [(4, 5)]}
    parts |= {(Part("Voice", 0, line), Part("Piano", 0, low)): [], (right, Part("Piano", 0, low)): [(0, 1)]}
    for staves, pairs in parts.items():
        assert Notation(staves, (Bar(0, 4, 4),), 96).keyboards == pairs


def test_a_last_bar_that_is_empty_in_the_first_staff_is_one_bar():
    for line in ("2.GG\t.\n", ".\t2.g\n"):
        notation, _ = read_notation(KERN.replace("2.GG\t2.g\n", line).encode(), "humdrum")
        assert [bar.onset for bar in notation.bars] == [0, 24, 96]
        assert notation.end == 168
