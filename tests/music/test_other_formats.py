"""What is no MIDI file is refused with a way to one, and nothing packed is larger than any music."""

import gzip

import pytest

from musictx.errors import MidiError
from musictx.music.read import read_tracks


@pytest.mark.parametrize(
    ("data", "source", "says"),
    [
        (
            b'<?xml version="1.0"?><!DOCTYPE x><score-partwise version="4.0">',
            "a.musicxml",
            "is MusicXML, .* export MIDI",
        ),
        ('<?xml version="1.0"?><score-timewise>'.encode("utf-16"), "", "is MusicXML"),
        (b"PK\x03\x04\x14\0\0\0\0\0abcMETA-INF/container.xmlxyz", "", "notation program, .* export MIDI"),
        (b"PK\x03\x04\x14\0\0\0", "a.mxl", "notation program"),
        (b"X:1\nT:Air\nK:C\nCDEF|\n", "", "is ABC, .* abc2midi"),
        (b"%abc-2.1\n", "", "is ABC"),
        (b"!!!COM: Bach\n**kern\t**kern\n4c\t4e\n", "", "is Humdrum, .* hum2mid"),
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


def test_what_is_packed_is_no_larger_than_any_music(monkeypatch):
    monkeypatch.setattr("musictx.music.read.MOST_BYTES", 1000)
    with pytest.raises(MidiError, match="no music is so large"):
        read_tracks(gzip.compress(bytes(10**6), mtime=0), "it")
