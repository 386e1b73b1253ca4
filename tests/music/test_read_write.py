import struct

import mido
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import scores

from musictx.errors import MidiError
from musictx.model.packaged import seed_path
from musictx.music import read as reading
from musictx.music.events import parse_events
from musictx.music.project import Line, Project
from musictx.music.read import read_bytes, read_midi, read_tracks, whole_chunks
from musictx.music.score import DRUMS, Score
from musictx.music.write import write_midi


def midi(*tracks, division=480, format=1) -> bytes:
    """A MIDI file as bytes: its header and the given track bodies."""
    head = b"MThd" + struct.pack(">IHHH", 6, format, len(tracks), division)
    return head + b"".join(b"MTrk" + struct.pack(">I", len(t)) + t for t in tracks)


END = b"\x00\xff\x2f\x00"
HALF_SECOND_C = b"\x00\x90\x3c\x50\x83\x60\x80\x3c\x00"  # C4 for 480 ticks


@pytest.fixture
def read(tmp_path):
    def read(data, **options):
        path = tmp_path / "file.mid"
        path.write_bytes(data)
        return read_midi(path, **options)

    return read


ONE = midi(HALF_SECOND_C + END)
NOTE = Score([0.0], [0.5], [60], [80])


@pytest.mark.parametrize(
    ("data", "score"),
    [
        (ONE, NOTE),
        # running status, and a velocity of zero that ends a note
        (
            midi(b"\x00\x90\x3c\x50\x83\x60\x3c\x00\x00\x3e\x40\x83\x60\x3e\x00" + END),
            Score([0.0, 0.5], [0.5, 1.0], [60, 62], [80, 64]),
        ),
        (midi(b"\x00\xb0\x07\xc8" + HALF_SECOND_C + END), NOTE),  # symusic refuses a controller of 200; mido clips it
        (midi(HALF_SECOND_C.replace(b"\x50", b"\xc8") + END), Score([0.0], [0.5], [60], [127])),
        (midi(b"\x00\x90\x3c\x50\x83\x60\xff\x2f\x00"), NOTE),  # never released: it ends with its track
        (b"RIFF" + struct.pack("<I", len(ONE) + 12) + b"RMIDdata" + struct.pack("<I", len(ONE)) + ONE, NOTE),
        (ONE[:4] + b"\x7f\xff\xff\xff" + ONE[8:], NOTE),  # the header claims too much
        (midi(END), Score.empty()),
    ],
)
def test_a_file_is_these_notes(read, data, score):
    assert read(data) == score


def test_tempo_changes_in_the_middle_are_heard(read):
    tempo = b"\x00\xff\x51\x03\x0f\x42\x40" + b"\x83\x60\xff\x51\x03\x03\xd0\x90" + END  # 1 s, from tick 480 0.25 s
    notes = b"\x00\x90\x3c\x50" + b"\x87\x40\x80\x3c\x00" + END  # 960 ticks
    score = read(midi(tempo, notes))
    assert score == Score([0.0], [1.25], [60], [80])
    assert score.quarter_s == 1.0
    assert read(midi(tempo, notes), one_tempo=True) == Score([0.0], [2.0], [60], [80])


def test_smpte_time_has_no_tempo(read):
    score = read(midi(HALF_SECOND_C + END, division=0xE728))  # 25 frames of 40 ticks: 1 ms a tick
    np.testing.assert_allclose(score.offset_s, [0.48])


def test_tracks_are_merged_and_drums_left_out_unless_asked_for(read):
    drum = b"\x00\x99\x24\x50\x83\x60\x89\x24\x00" + END
    data = midi(HALF_SECOND_C + END, HALF_SECOND_C.replace(b"\x3c", b"\x40") + END, drum)
    assert read(data).pitch.tolist() == [60, 64]
    assert read(data, drums=True).pitch.tolist() == [36, 60, 64]


def test_each_track_has_its_own_pedal(read):
    pedal = b"\x00\xb0\x40\x7f" + HALF_SECOND_C + b"\x83\x60\xb0\x40\x00" + END
    other = HALF_SECOND_C.replace(b"\x90", b"\x91").replace(b"\x80\x3c", b"\x81\x3c") + END
    assert read(midi(pedal, other)).offset_s.tolist() == [0.5, 1.0]


@pytest.mark.parametrize("name", ["elise", "gymnopedie", "chorale"])
def test_a_file_that_was_cut_anywhere_keeps_the_notes_before_the_cut(name):
    data = seed_path(name).read_bytes()
    assert whole_chunks(data + b"\r\n\r\n", "").write() == whole_chunks(data, "").write() == data
    whole = read_tracks(data, name).merge()
    heard = [read_tracks(data[:n], name).merge() for n in range(22, len(data) + 1)]
    assert [len(score) for score in heard] == sorted(len(score) for score in heard)
    assert heard[-1] == heard[-4] == whole
    starts = set(zip(whole.onset_s, whole.pitch, strict=True))
    assert all(set(zip(score.onset_s, score.pitch, strict=True)) <= starts for score in heard)


def test_an_event_cut_short_is_no_event():
    note = b"\x00\x90\x3c\x50"
    late = b"\x83", b"\x83\x60\x80\x3c"
    for rest in (*late, b"\x00\xff\x03\x06MEL", b"\x00\xf0\x05\x01\x02", b"\x00\xc0", b"\x00\x3e"):
        assert parse_events(note + rest).end.tolist() == [len(note)]
    for event in (b"\x00\x3e\x50", b"\x00\xc0\x05", b"\x00\xff\x03\x02ME", b"\x00\xf0\x01\xf7", b"\x00\xe0\x00\x40"):
        assert parse_events(note + event + b"\x00").end.tolist() == [len(note), len(note + event)]


def test_what_is_larger_than_any_music_and_devices_are_not_read(tmp_path, monkeypatch):
    for path, reason in (("/dev/zero", "pipe"), (tmp_path / "a.mid", "no such"), (tmp_path, "a folder")):
        with pytest.raises(MidiError, match=reason):
            read_bytes(path)
    (tmp_path / "a.mid").write_bytes(bytes(1001))
    monkeypatch.setattr(reading, "MOST_BYTES", 1000)
    with pytest.raises(MidiError, match="so large"):
        read_bytes(tmp_path / "a.mid")


def test_tracks_keep_their_names_and_programs():
    melody = b"\x00\xff\x03\x08\x1b[31mred\x00\xc0\x28" + HALF_SECOND_C + END
    drum = b"\x00\x99\x24\x50\x83\x60\x89\x24\x00" + END
    tracks = read_tracks(midi(melody, drum), "a.mid").tracks
    assert [(t.name, t.program, t.is_drums, len(t.score)) for t in tracks] == [
        (r"\x1b[31mred", 40, False, 1),  # a name steers no terminal
        ("", DRUMS, True, 1),
    ]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "is empty"),
        (b"Dear diary, today I wrote a fugue.", "b'Dear'"),
        (b"RIFF\x00\x00\x00\x00WAVEfmt ", "b'RIFF'"),
        (ONE[:12], "not even its header is whole"),
        (ONE[:20], "ends before its first track"),
        (midi(HALF_SECOND_C + END, division=0), "0 ticks"),
    ],
)
def test_what_no_one_can_read_is_refused_with_the_reason(read, data, reason):
    with pytest.raises(MidiError, match=reason) as caught:
        read(data)
    assert "\n" not in str(caught.value)
    assert caught.value.path.endswith("file.mid")


@settings(max_examples=300)
@given(st.data())
def test_no_damage_raises_anything_but_midi_error(tmp_path_factory, data):
    good = bytearray(midi(b"\x00\xff\x51\x03\x0f\x42\x40" + HALF_SECOND_C * 3 + b"\x00\xb0\x40\x7f" + END))
    for _ in range(data.draw(st.integers(1, 6))):
        good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "damaged.mid"
    path.write_bytes(good[: data.draw(st.integers(1, len(good)))])
    try:
        score = read_midi(path)
    except MidiError:
        return
    assert (score.offset_s >= score.onset_s).all()


@given(scores(), st.sampled_from([0.5, 0.6, 60 / 101, 1.7]))
def test_a_written_file_reads_back_as_the_same_notes_within_a_tick(tmp_path_factory, score, quarter_s):
    score = Score(score.onset_s, score.offset_s, score.pitch, score.velocity, quarter_s)
    path = tmp_path_factory.getbasetemp() / "written.mid"
    write_midi(score, path)
    back = read_midi(path)
    tick_s = back.quarter_s / 480
    assert len(back) == len(score)
    assert abs(back.quarter_s - quarter_s) < 1e-6

    def rows(s):
        ticks = np.rint(np.stack([s.onset_s, s.offset_s], 1) / tick_s).astype(int)
        ticks[:, 1] = np.maximum(ticks[:, 1], ticks[:, 0] + 1)  # a note lasts at least a tick
        return sorted(map(tuple, np.column_stack([s.pitch, s.velocity, ticks]).tolist()))

    assert rows(back) == rows(score)


def test_overlapping_notes_of_one_pitch_go_to_a_second_track(tmp_path):
    nested = Score([0, 1], [3, 2], [60, 60], [80, 81])
    write_midi(nested, tmp_path / "a.mid")
    assert read_midi(tmp_path / "a.mid") == nested
    touching = Score([0, 1], [1, 2], [60, 60], [80, 81])
    write_midi(touching, tmp_path / "b.mid")
    assert read_midi(tmp_path / "b.mid") == touching
    assert len(mido.MidiFile(tmp_path / "b.mid").tracks) == 2  # tempo, notes


def test_names_of_tracks_come_back_in_any_script(tmp_path):
    names = ["Flöte", "メロディー", "🎹"]
    lines = [Line(name, Score([n], [n + 1], [60 + n], [80])) for n, name in enumerate(names)]
    (tmp_path / "a.mid").write_bytes(Project.new(0.5).beside(lines))
    assert [track.name for track in read_tracks(read_bytes(tmp_path / "a.mid"), "a").tracks] == names


def test_a_pedal_has_the_notes_of_both_programs_of_its_channel(read):
    body = b"\x00\xc0\x00\x00\xb0\x40\x7f" + HALF_SECOND_C + b"\x00\xc0\x05" + HALF_SECOND_C.replace(b"\x3c", b"\x40")
    score = read(midi(body + b"\x87\x40\xb0\x40\x00" + END))
    assert score.offset_s.tolist() == [2.0, 2.0]
    assert sorted(score.program.tolist()) == [0, 5]


TEMPO_PROGRAM_PEDAL = b"\x00\xff\x51\x03\x0f\x42\x40\x00\xc0\x05\x00\xb0\x40\x7f"


@pytest.mark.parametrize("division", [480, 0xE728])
@pytest.mark.parametrize(
    ("body", "offset_s"),
    [
        (TEMPO_PROGRAM_PEDAL + HALF_SECOND_C * 2 + b"\x83\x60\xb0\x40\x00", [1.0, 3.0]),
        # on, on, off, off: first in, first out
        (b"\x00\x90\x3c\x50\x83\x60\x90\x3c\x51\x83\x60\x80\x3c\x00\x83\x60\x80\x3c\x00", [1.0, 1.5]),
        # a note of no length
        (b"\x00\x90\x40\x50\x00\x80\x40\x00\x83\x60\x90\x43\x50\x83\x60\x80\x43\x00", [0.0, 1.0]),
    ],
)
def test_the_tolerant_reader_hears_what_the_fast_one_does(read, body, offset_s, division):
    damage = b"\x00\xb0\x07\xc8"  # symusic refuses it
    fast, slow = (read(midi(start + body + END, division=division)) for start in (b"", damage))
    assert slow == fast
    assert slow.quarter_s == fast.quarter_s
    if division == 480:
        assert fast.offset_s.tolist() == offset_s
