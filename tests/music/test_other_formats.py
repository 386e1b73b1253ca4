"""What is no MIDI file is refused with a way to one, and nothing packed is larger than any music."""

import gzip

import pytest

from musictx.errors import MidiError
from musictx.music.other_formats import notation_of
from musictx.music.read import read_tracks


@pytest.mark.parametrize(
    ("data", "source", "says"),
    [
        (b"PK\x03\x04\x14\0\0\0\0\0META-INF/container.xml score.mscx", "", "a score of MuseScore, .* export MusicXML"),
        (b"PK\x03\x04\x14\0\0\0", "a.mscz", "a score of MuseScore"),
        (b"SMF2CLIP\0\0\0\0", "", "MIDI 2.0, .* Standard MIDI File"),
        (gzip.compress(b"no music", mtime=0), "", "begins with b'no m'"),
        (b"\x1f\x8b\x08\0bad", "", "cannot be unpacked"),
        (b"PK\x03\x04\x14\0\0\0", "a.zip", "begins with b'PK"),
    ],
)
def test_music_of_other_formats_is_refused_with_a_way(data, source, says):
    with pytest.raises(MidiError, match=says) as refused:
        read_tracks(data, source)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("data", "source", "kind"),
    [
        (b'<?xml version="1.0"?><!DOCTYPE x><score-partwise version="4.0">', "", "musicxml"),
        ('<?xml version="1.0"?><score-timewise>'.encode("utf-16"), "", "musicxml"),
        (b"PK\x03\x04\x14\0\0\0\0\0abc\nMETA-INF/container.xmlxyz", "", "musicxml"),
        (b"PK\x03\x04\x14\0\0\0", "a.MXL", "musicxml"),
        (b"X:1\nT:Air\nK:C\nCDEF|\n", "", "abc"),
        (b"%abc-2.1\n", "", "abc"),
        (b"!!!COM: Bach\n**kern\t**kern\n4c\t4e\n", "", "humdrum"),
        (b"**dynam\t**kern\n", "", "humdrum"),
        (b"<?xml?><mei xmlns='x'>", "", "mei"),
        (b"C D E", "a.abc", "abc"),
        (b"no music", "a.txt", None),
        (b"SMF2CLIP", "a.mxl", None),
    ],
)
def test_notation_is_known_by_what_it_says_or_by_its_name(data, source, kind):
    assert notation_of(data, source) == kind


def test_what_is_packed_is_no_larger_than_any_music(monkeypatch):
    monkeypatch.setattr("musictx.music.read.MOST_BYTES", 1000)
    with pytest.raises(MidiError, match="no music is so large"):
        read_tracks(gzip.compress(bytes(10**6), mtime=0), "it")
