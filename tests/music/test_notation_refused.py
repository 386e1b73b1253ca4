"""Scores that are refused in a line: damaged, without notes, larger than any music."""

import io
import sys
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from notated import ABC, KERN, MEI, NOTE, XML

from musictx.errors import MidiError, UserError
from musictx.music.notation.midi import from_midi, to_midi
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Note, Part
from musictx.music.notation.read import read_notation
from musictx.music.notation.write import to_musicxml
from musictx.music.read import read_tracks

METER = "<beats>2</beats><beat-type>4<"
LONG = NOTE.format("C", 6 * 99_999)


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
        (b"X:1\nK:C\n" + b"Z999|" * 60 + b"C|\n", "abc", " 1,000 bars of rests"),
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


def test_what_is_packed_has_a_limit(monkeypatch):
    monkeypatch.setattr("musictx.music.notation.text.MOST_BYTES", 1000)
    with pytest.raises(MidiError, match="MB of notation"):
        read_notation(packed(" " * 10**6), "musicxml", "it")


@pytest.mark.parametrize("package", ["music21", "partitura"])
def test_without_a_package_its_name_is_said(monkeypatch, package):
    notation, _ = read_notation(KERN.encode(), "humdrum")
    to_musicxml(notation)
    for name in [package, *(each for each in sys.modules if each.startswith(f"{package}."))]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UserError, match=f"package {package}"):
        read_notation(KERN.encode(), "humdrum", "it") if package == "music21" else to_musicxml(notation)


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
