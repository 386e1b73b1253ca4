"""musictx/music/midi_file.py: files as events and back, and notes among them."""

import io

import mido
import pytest
from hypothesis import given
from hypothesis import strategies as st

from musictx.music.midi_file import (
    Event,
    EventFile,
    EventTrack,
    as_number,
    in_order,
    meta,
    notes_of,
    read_events,
    with_events,
    write_events,
)

byte = st.integers(0, 127)
channel_events = st.one_of(
    st.tuples(st.sampled_from((0x80, 0x90, 0xA0, 0xB0, 0xE0)), st.integers(0, 15), byte, byte).map(
        lambda of: bytes([of[0] | of[1], of[2], of[3]])
    ),
    st.tuples(st.sampled_from((0xC0, 0xD0)), st.integers(0, 15), byte).map(lambda of: bytes([of[0] | of[1], of[2]])),
)
texts = st.tuples(st.integers(1, 127).filter(lambda kind: kind != 0x2F), st.binary(max_size=200)).map(
    lambda of: bytes([0xFF, of[0]]) + as_number(len(of[1])) + of[1]
)
sysex = st.binary(max_size=200).map(lambda body: b"\xf0" + as_number(len(body)) + body)
messages = st.one_of(channel_events, texts, sysex)


@st.composite
def files(draw):
    tracks = []
    for _ in range(draw(st.integers(1, 3))):
        ticks = sorted(draw(st.lists(st.integers(0, 2**20), max_size=20)))
        events = [Event(tick, draw(messages)) for tick in ticks]
        tracks.append(EventTrack(events, (ticks[-1] if ticks else 0) + draw(st.integers(0, 500))))
    return EventFile(draw(st.sampled_from((b"\x01\xe0", b"\x00\x60", b"\xe8\x28"))), tracks)


@given(files())
def test_a_file_comes_back_event_for_event(file):
    assert read_events(write_events(file)) == file


def test_more_ticks_than_a_number_holds_come_back():
    (track,) = read_events(
        write_events(EventFile(b"\x01\xe0", [EventTrack([Event(2**30, b"\x90\x3c\x50")], 2**31)]))
    ).tracks
    assert Event(2**30, b"\x90\x3c\x50") in track.events
    assert track.end == 2**31


def test_a_status_that_is_left_out_and_the_events_of_another_reader():
    track = b"\x00\x90\x3c\x50" + b"\x60\x3e\x50" + b"\x60\x3c\x00" + b"\x00\xff\x2f\x00"
    data = b"MThd\0\0\0\6\0\0\0\1\1\xe0MTrk" + len(track).to_bytes(4) + track
    (got,) = read_events(data).tracks
    assert [event.data for event in got.events] == [b"\x90\x3c\x50", b"\x90\x3e\x50", b"\x90\x3c\x00"]
    (other,) = mido.MidiFile(file=io.BytesIO(write_events(read_events(data)))).tracks
    assert [message.time for message in other] == [0, 96, 96, 0]


def test_what_is_no_midi_is_refused_and_damage_ends_a_track():
    with pytest.raises(ValueError, match="not a MIDI file"):
        read_events(b"RIFF")
    (track,) = read_events(b"MThd\0\0\0\6\0\0\0\1\1\xe0MTrk\0\0\0\7\x00\x90\x3c\x50\x00\x90\x3c").tracks
    assert track.events == [Event(0, b"\x90\x3c\x50")]


def test_notes_end_where_their_pitch_is_released_or_with_the_track():
    events = [Event(0, b"\x90\x3c\x50"), Event(10, b"\x90\x3c\x40"), Event(20, b"\x80\x3c\x00")]
    first, second = notes_of(EventTrack(events, 50))
    assert (first.on, first.off, first.velocity, first.last) == (0, 20, 0x50, 2)
    assert (second.on, second.off, second.last) == (10, 50, None)


def test_new_ends_come_before_the_notes_that_begin_there():
    track = EventTrack([Event(0, b"\x90\x3c\x50"), Event(10, b"\x90\x3c\x40")], 20)
    got = with_events(track, [], [Event(10, b"\x90\x3e\x40"), Event(10, b"\x80\x3c\x40"), meta(30, 3, "é")])
    assert [event.data[:2] for event in got.events] == [b"\x90\x3c", b"\x80\x3c", b"\x90\x3c", b"\x90\x3e", b"\xff\x03"]
    assert got.end == 30
    assert in_order(got.events) == got.events
