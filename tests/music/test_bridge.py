"""musictx/music/bridge.py: two files and new music between them are one file, and each keeps what it has."""

import io
from collections import Counter

import mido
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from player import play
from projects import SLOW, band, files, heard, note, tempo, track, without_lifts

from musictx.music.bridge import join_files
from musictx.music.midi_file import Event, EventFile, meta, read_events, write_events
from musictx.music.project import Line, Project
from musictx.music.read import read_tracks
from musictx.music.score import Score


def file_of(division, *tracks):
    data = write_events(EventFile(division, list(tracks)))
    return Project(data, read_tracks(data, "a test").tempo_map)


def second():
    """Three beats a bar, a tempo that changes, and a violin on the channel that `band` plays its own on."""
    clock = [Event(0, b"\xff\x51\x03" + (600_000).to_bytes(3)), Event(960, b"\xff\x51\x03" + (300_000).to_bytes(3))]
    meter = Event(0, b"\xff\x58\x04\x03\x02\x18\x08")
    flute = [Event(0, b"\xc0\x49"), note(0, 470, 72), note(960, 1400, 74), meta(960, 6, "there")]
    return file_of((480).to_bytes(2), track(meta(0, 3, "map"), clock, meter), track(meta(0, 3, "flute"), *flute))


def joined(one, other, gap_s=1.5, new=((0.0, 1.0, 60),), **how):
    from_s = heard(one.data).merge().duration_s
    on, off, pitch = np.array(new).reshape(-1, 3).T
    score = Score(from_s + on, from_s + off, pitch, np.full(len(pitch), 77))
    data = join_files(one, other, [Line("musictx", score)], from_s, from_s + gap_s, "", **{"pedal": False} | how)
    return data, from_s, from_s + gap_s


def test_both_files_are_there_track_by_track_with_their_own_tempo_and_meter():
    one, other = band(), second()
    data, from_s, to_s = joined(one, other)
    got = mido.MidiFile(file=io.BytesIO(data))
    assert [t.name for t in got.tracks] == ["", "violin", "cello", "drums", "musictx", "map", "flute"]
    for was, now in zip(one.file.tracks[1:], read_events(data).tracks[1:], strict=False):
        assert [(e.tick * 5, e.data) for e in was.events] == [(e.tick, e.data) for e in now.events]  # 96 and 480
    later = round(one.clock.ticks_at(np.array([to_s]))[0] * 5)
    flute = read_events(data).tracks[-1].events
    assert [(e.tick - later * (e.data[:2] != b"\xff\x03"), e.data) for e in flute] == [
        (e.tick, e.data) for e in other.file.tracks[1].events
    ]
    tempo = [
        (e.tick - later, int.from_bytes(e.data[3:])) for e in read_events(data).tracks[0].events if e.data[1] == 0x51
    ]
    assert tempo[-2:] == [(0, 600_000), (960, 300_000)]
    assert [m.numerator for m in got.tracks[0] if m.type == "time_signature"] == [3]
    scores = {t.name: t.score for t in heard(data).tracks}
    assert scores["flute"].onset_s.tolist() == pytest.approx([to_s, to_s + 1.2], abs=1e-3)
    assert scores["musictx"].onset_s.tolist() == pytest.approx([from_s], abs=1e-3)
    assert {s.program for s in play(data) if s.pitch in (72, 74) and s.channel == 0 and s.on >= later} == {73}


def test_the_second_file_finds_its_channels_as_a_file_does():
    left = [
        Event(900, data) for data in (b"\xb0\x40\x7f", b"\xb0\x07\x05", b"\xe0\x00\x00", b"\xb0\x06\x0c", b"\xc0\x05")
    ]
    one = file_of((480).to_bytes(2), track(note(0, 960, 60), left))
    plain = file_of((480).to_bytes(2), track(note(0, 480, 65)))
    data, _, _ = joined(one, plain, new=())
    sound = next(s for s in play(data) if s.pitch == 65)
    assert (sound.off - sound.on, sound.program, sound.bend, sound.expression) == (480, 0, 0, 127)
    last = {e.data[1]: e.data[2] for t in read_events(data).tracks for e in t.events if e.kind == 0xB0}
    assert (last[64], last[7], last[6]) == (0, 100, 2)
    beats = [
        m for t in mido.MidiFile(file=io.BytesIO(data)).tracks for m in t if m.type in ("set_tempo", "time_signature")
    ]
    assert [m.type for m in beats] == ["set_tempo", "time_signature"]  # those of a file that says neither


@pytest.mark.parametrize("frames", [(232, 40), (231, 40), (227, 80), (226, 100)])
def test_a_file_in_film_frames_and_one_in_quarters(frames):
    film = file_of(bytes(frames), track(meta(0, 3, "film"), note(0, 900, 60), note(1000, 1900, 62)))
    for pair in ((film, second()), (second(), film), (film, film)):
        data, _, to_s = joined(*pair)
        all_of, each = heard(data).merge(), [heard(p.data).merge() for p in pair]
        onsets = [*each[0].onset_s, each[0].duration_s, *(each[1].onset_s + to_s)]
        assert all_of.onset_s.tolist() == pytest.approx(onsets, abs=2e-3)


UNHEARD = st.lists(st.tuples(st.integers(0, 2500), st.integers(1, 900)), max_size=4)  # drums: tick and length


@settings(max_examples=60)
@given(
    files(),
    files(),
    UNHEARD,
    st.sampled_from((96, 100, 480, 1024, 25_000)),
    st.sampled_from((500_000, SLOW)),
    st.booleans(),
    st.booleans(),
)
def test_each_sounds_as_it_does_alone(first, last, unheard, division, mspq, forgets, pedal):
    hits = [note(on, on + length, 35 + k, 9) for k, (on, length) in enumerate(unheard)]
    fade = Event(4000, b"\xb0\x07\x00")
    one = file_of((96).to_bytes(2), track(tempo(0, mspq), *hits, fade), *without_lifts(first, forgets))
    other = file_of(division.to_bytes(2), *last)
    data, from_s, to_s = joined(one, other, pedal=pedal)
    back = read_tracks(data, "a test")
    before = heard(one.data).merge(drums=True).clip(0.0, to_s)
    mine = [*rows_of(before, 0.0), *rows_of(heard(other.data).merge(), to_s)]
    rows = sorted([*mine, (60, from_s, from_s + 1.0)])
    got = sorted(rows_of(back.merge(drums=True), 0.0))
    assert [row[0] for row in got] == [row[0] for row in rows]
    assert np.abs(np.array(got) - rows).max() < 6e-3
    late = one.tick(to_s)
    was = Counter(e.data for t in one.file.tracks for e in t.events if e.tick < late or e.channel is None)
    was = was + Counter(e.data for t in other.file.tracks for e in t.events)
    if not any(on <= late < on + length for on, length in unheard):
        assert was - Counter(e.data for t in read_events(data).tracks for e in t.events) == Counter()
    volume = [e.data[2] for t in read_events(data).tracks for e in t.events if e.data[:2] == b"\xb0\x07"]
    assert 0 not in volume
    assert play(data)


def rows_of(score, later_s):
    return list(zip(score.pitch.tolist(), score.onset_s + later_s, score.offset_s + later_s, strict=True))
