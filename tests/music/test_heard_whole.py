"""Whatever a file's tracks, lengths and letters are, its music is heard whole, and what is repaired is counted."""

import gzip
import io
import struct

import mido
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import rows

from musictx.model.packaged import seed_path
from musictx.music.events import parse_events
from musictx.music.midi_file import read_events, write_events
from musictx.music.read import read_tracks, whole_chunks
from musictx.music.repairs import LOSSES, REPAIRS
from musictx.music.score import DRUMS

END = b"\x00\xff\x2f\x00"
QUARTER = b"\x83\x60"  # 480 ticks, half a second


def number(value: int) -> bytes:
    out = bytes([value & 127])
    while value := value >> 7:
        out = bytes([value & 127 | 128]) + out
    return out


def track(*events: tuple[int, bytes], end: int | None = None) -> bytes:
    """Events at their ticks, in the given order at one tick, and the end of the track."""
    now, out = 0, b""
    for tick, event in sorted([*events, (end or 0, b"")], key=lambda each: each[0]):
        if event:
            out, now = out + number(tick - now) + event, tick
    return out + number(max((end or 0) - now, 0)) + END[1:]


def chunk(body: bytes, name: bytes = b"MTrk", length: int | None = None) -> bytes:
    return name + struct.pack(">I", len(body) if length is None else length) + body


def midi(*tracks: bytes, division: int = 480, form: int = 1, count: int | None = None) -> bytes:
    head = struct.pack(">HHH", form, len(tracks) if count is None else count, division)
    return chunk(head, b"MThd") + b"".join(map(chunk, tracks))


def on(pitch: int, channel: int = 0, velocity: int = 80) -> bytes:
    return bytes([0x90 | channel, pitch, velocity])


def off(pitch: int, channel: int = 0) -> bytes:
    return bytes([0x80 | channel, pitch, 0])


def control(which: int, value: int, channel: int = 0) -> bytes:
    return bytes([0xB0 | channel, which, value])


def note(pitch: int, start: int, stop: int, channel: int = 0) -> list[tuple[int, bytes]]:
    return [(start, on(pitch, channel)), (stop, off(pitch, channel))]


def pedal(*changes: tuple[int, int]) -> list[tuple[int, bytes]]:
    return [(tick, control(64, value)) for tick, value in changes]


def heard(data: bytes) -> tuple[list[tuple[float, float, int, int]], dict[str, int]]:
    tracks = read_tracks(data, "it")
    score = tracks.merge(drums=True)
    columns = (score.onset_s.round(6), score.offset_s.round(6), score.pitch, score.program)
    return list(zip(*(c.tolist() for c in columns), strict=True)), dict(+tracks.repairs)


C = [*note(60, 0, 480)]
ONE = [(0.0, 0.5, 60, 0)]
TWO = [(0.0, 0.5, 48, 0), (0.0, 0.5, 60, 0)]
LATER = note(50, 480, 960)
LOW = track(*note(48, 0, 480))
SIGNATURE = b"\xff\x58\x04\x03\x02\x18\x08"
DRUM_PART = b"\xf0\x0a\x41\x10\x42\x12\x40\x1a\x15\x01\x10\xf7"  # Roland's: part 11 is for rhythm
XG_ON = b"\xf0\x08\x43\x10\x4c\x00\x00\x7e\x00\xf7"
BANK_127, LOW_C, KIT = (0, control(0, 127, 2)), note(36, 0, 480, 2), [(0.0, 0.5, 36, DRUMS)]
LOW_C_11 = note(36, 0, 480, 10)
GM_ON = b"\xf0\x05\x7e\x7f\x09\x01\xf7"
GS_ON = b"\xf0\x0a\x41\x10\x42\x12\x40\x00\x7f\x00\x41\xf7"


def riff(data: bytes) -> bytes:
    chunks = b"".join(
        name + struct.pack("<I", len(body)) + body + bytes(len(body) % 2)
        for name, body in ((b"LIST", b"INFOINAM\x03\x00\x00\x00abc"), (b"data", data), (b"DISP", b"\x01\x00\x00\x00hi"))
    )
    return b"RIFF" + struct.pack("<I", len(chunks) + 4) + b"RMID" + chunks


# of each row of the table in docs/train/all-about-data.md: a file, its notes, what is counted
DEFECTS = {
    "the pedal in another track": (
        midi(track(*note(72, 0, 240), *note(74, 480, 720)), LOW, track(*pedal((0, 127), (1920, 0)))),
        [(0.0, 2.0, 48, 0), (0.0, 2.0, 72, 0), (0.5, 2.0, 74, 0)],
        {},
    ),
    "programs in another track": (
        midi(track((0, b"\xc0\x28"), (0, b"\xc1\x38")), track(*C), track(*note(48, 0, 480, 1))),
        [(0.0, 0.5, 48, 56), (0.0, 0.5, 60, 40)],
        {},
    ),
    "a program in a later track": (midi(track(*C), track((0, b"\xc0\x28"))), [(0.0, 0.5, 60, 40)], {}),
    "an end in another track": (midi(track((0, on(60))), track((480, off(60)))), ONE, {}),
    "notes that only CC123 ends": (
        midi(track((0, on(60)), (0, on(48)), (480, on(60)), (480, control(123, 0)), (960, off(60)))),
        [*TWO, (0.5, 1.0, 60, 0)],
        {},
    ),
    "CC123 and a pedal": (
        midi(track(*pedal((0, 127), (960, 0)), (0, on(60)), (480, control(123, 0)))),
        [(0.0, 1.0, 60, 0)],
        {},
    ),
    "CC120 and a pedal": (
        midi(track(*pedal((0, 127), (1920, 0)), *note(60, 0, 240), (0, on(48)), (480, control(120, 0))), track(*LATER)),
        [(0.0, 0.5, 48, 0), (0.0, 0.5, 60, 0), (0.5, 2.0, 50, 0)],
        {},
    ),
    "CC121 and a pedal": (
        midi(track(*pedal((0, 127)), *note(60, 0, 240), (480, control(121, 0)), *note(48, 480, 720))),
        [(0.0, 0.5, 60, 0), (0.5, 0.75, 48, 0)],
        {},
    ),
    "drums on channel 1, by name": (
        midi(track((0, b"\xff\x03\x04Bass"), (0, b"\xc0\x21"), *LATER), track((0, b"\xff\x03\x08Drum Kit"), *C)),
        [(0.0, 0.5, 60, DRUMS), (0.5, 1.0, 50, 33)],
        {"named_kits": 1},
    ),
    "a sound for what is named drums": (
        midi(track((0, b"\xff\x03\x0aPercussion"), (0, b"\xc0\x0c"), *C)),
        [(0.0, 0.5, 60, 12)],
        {},
    ),
    "a sound for it in a track without notes": (
        midi(track((0, b"\xc0\x0c")), track((0, b"\xff\x03\x0aPercussion"), *C)),
        [(0.0, 0.5, 60, 12)],
        {},
    ),
    "a sound for it in a track that plays another channel": (
        midi(track((0, b"\xc1\x0c"), *note(48, 0, 480)), track((0, b"\xff\x03\x0aPercussion"), *note(60, 0, 480, 1))),
        [(0.0, 0.5, 48, 0), (0.0, 0.5, 60, 12)],
        {},
    ),
    "a piano that is named percussion": (midi(track((0, b"\xff\x03\x04Toms"), (0, b"\xc0\x00"), *C)), ONE, {}),
    "drums beside another instrument in their name": (midi(track((0, b"\xff\x03\x0bDrum & Bass"), *C)), ONE, {}),
    "a song of one track, named after its drums": (
        midi(track((0, b"\xff\x03\x05Drums"), *C, *note(48, 0, 480, 1)), form=0),
        TWO,
        {},
    ),
    "a pedal lifted and pressed at once": (
        midi(track(*pedal((0, 127)), *C, *pedal((480, 0), (480, 127)), *note(48, 480, 960), *pedal((960, 0)))),
        [(0.0, 0.5, 60, 0), (0.5, 1.0, 48, 0)],
        {},
    ),
    "a note released after the pedal's press": (
        midi(track((0, on(60)), *pedal((0, 127), (480, 0), (480, 127)), (480, off(60)), *pedal((960, 0)))),
        [(0.0, 1.0, 60, 0)],
        {},
    ),
    "a note without an end": (midi(track((0, on(60)), end=480), LOW), TWO, {"note_without_end": 1}),
    "a note without length, its end first": (
        midi(track((0, off(60)), (0, on(60)), *note(60, 480, 960), end=9600)),
        [(0.0, 0.0, 60, 0), (0.5, 1.0, 60, 0)],
        {"end_first": 1},
    ),
    "two of them at the end": (
        midi(track((480, off(60)), (480, off(60)), (480, on(60)), (480, on(60)), end=9600)),
        [(0.5, 0.5, 60, 0)] * 2,
        {"end_first": 2},
    ),
    "an end too many before a note": (midi(track((0, off(60)), *C, end=960)), ONE, {}),
    "an end too many before two notes": (
        midi(track((0, off(60)), (0, on(60)), (240, on(60)), (480, off(60)), (960, off(60)))),
        [(0.0, 0.5, 60, 0), (0.25, 1.0, 60, 0)],
        {},
    ),
    "a note struck again": (
        midi(track((0, on(60)), (240, on(60)), (480, off(60)), end=960)),
        ONE,
        {"note_lost": 1},
    ),
    "a length beyond the next track": (
        midi(count=2) + chunk(track(*C), length=len(track(*C)) + 6) + chunk(LOW),
        TWO,
        {"chunk_length": 1},
    ),
    "a length that hides the next track": (
        midi(count=2) + chunk(track(*C), length=len(track(*C)) + 8 + len(LOW)) + chunk(LOW),
        TWO,
        {"chunk_length": 1},
    ),
    "a length beyond the file": (midi(count=1) + chunk(track(*C), length=2**32 - 1), ONE, {"chunk_length": 1}),
    "a length that is too short": (midi(count=2) + chunk(track(*C), length=3) + chunk(LOW), TWO, {"chunk_length": 1}),
    "a count of tracks that is too low": (midi(track(*C), LOW, count=1), TWO, {"track_count": 1}),
    "a count of tracks that is too high": (midi(track(*C), count=3), ONE, {"track_count": 1}),
    "a length of the header that is wrong": (
        midi(track(*C)).replace(b"MThd\0\0\0\6", b"MThd\0\1\0\6"),
        ONE,
        {"header_length": 1},
    ),
    "a file that is cut short": (
        midi(track(*C, *LATER))[:-6],
        [*ONE, (0.5, 0.5, 50, 0)],
        {"cut_short": 1, "note_without_end": 1},
    ),
    "sequences": (midi(track(*C), LOW).replace(b"\0\1\0\2", b"\0\2\0\2", 1), TWO, {"sequences": 2}),
    "other chunks": (midi() + chunk(b"abc", b"XFIH") + chunk(track(*C)), ONE, {"track_count": 1}),
    "RIFF with other chunks": (riff(midi(track(*C))), ONE, {}),
    "RIFF in RIFF": (riff(riff(midi(track(*C)))), ONE, {}),
    "gzip": (gzip.compress(midi(track(*C))), ONE, {}),
    "gzip of two members": (
        b"".join(map(gzip.compress, (midi(track(*C), LOW)[:30], midi(track(*C), LOW)[30:]))),
        TWO,
        {},
    ),
    "drop frames": (midi(track(*note(60, 0, 2997)), division=0xE364), [(0.0, 1.0, 60, 0)], {}),
    "drums by GS": (midi(track((0, DRUM_PART), *note(36, 0, 480, 10))), KIT, {}),
    "drums by GS, then GS again": (midi(track((0, DRUM_PART), (0, GS_ON), *LOW_C_11)), [(0.0, 0.5, 36, 0)], {}),
    "GS, then drums": (midi(track((0, GS_ON), (0, DRUM_PART), *LOW_C_11)), KIT, {}),
    "drums by GS up to GM": (
        midi(track((0, DRUM_PART), *LOW_C_11, *note(36, 960, 1440, 10)), track((480, GM_ON))),
        [*KIT, (1.0, 1.5, 36, 0)],
        {},
    ),
    "drums by XG": (midi(track((0, XG_ON), BANK_127, (0, b"\xc2\x30"), *LOW_C)), KIT, {}),
    "drums by the bank of XG": (midi(track(BANK_127, (0, b"\xc2\x00"), *LOW_C)), KIT, {}),
    "the same bank as an MT-32 has it": (midi(track(BANK_127, (0, b"\xc2\x21"), *LOW_C)), [(0.0, 0.5, 36, 33)], {}),
    "the same bank in a file for GS": (midi(track((0, GS_ON), BANK_127, *LOW_C)), [(0.0, 0.5, 36, 0)], {}),
    "drums by GM2": (midi(track((0, control(0, 120, 2)), *LOW_C)), KIT, {}),
    "no drums by GM2": (midi(track((0, control(0, 121, 9)), *note(36, 0, 480, 9))), [(0.0, 0.5, 36, 0)], {}),
    "values above 127": (midi(track((0, on(60, velocity=200)), (480, off(60)))), ONE, {"value": 1}),
    "an event without a status": (midi(b"\x00\x3c\x50" + track(*C)), ONE, {"no_status": 1}),
    "an event beyond its track": (midi(track(*C)[:-4] + b"\0\xff\1\xff\xff\xff\x7f", LOW), TWO, {"event_cut": 1}),
    "as many ticks as four bytes do not hold": (
        midi(track(*C)[:-4] + b"\x81\x80\x80\x80\0\x90\x3e\x50" + QUARTER + b"\x80\x3e\0" + END),
        [*ONE, (279620.766667, 279621.266667, 62, 0)],
        {},
    ),
    "a tempo of zero": (midi(track((0, b"\xff\x51\x03\0\0\0"), *C)), ONE, {"tempo": 1}),
    "two signatures at one tick": (
        midi(track((0, b"\xff\x58\x04\x02\x02\x18\x08"), *C), track((0, SIGNATURE))),
        ONE,
        {"signature_replaced": 1},
    ),
    "a signature that cannot be": (
        midi(track((0, b"\xff\x58\x04\x02\x21\x18\x08"), (0, SIGNATURE), *C)),
        ONE,
        {"signature": 1},
    ),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_is_repaired_and_counted(name):
    data, notes, counted = DEFECTS[name]
    assert heard(data) == (notes, counted)


def test_every_kind_of_repair_is_said():
    counted = {kind for _, _, repairs in DEFECTS.values() for kind in repairs}
    assert counted | {"name"} == REPAIRS.keys() - LOSSES.keys()
    assert (
        read_tracks(DEFECTS["a note without an end"][0], "it").remark() == "a note without an end ends with its track"
    )
    assert read_tracks(midi(track(*C)), "it").remark() == ""


@pytest.mark.parametrize("name", ["two signatures at one tick", "a signature that cannot be"])
def test_of_two_signatures_the_later_counts(name):
    assert read_tracks(DEFECTS[name][0], "it").meter().signature == (3, 4)


WESTERN = ("Flügel", "Für Elise ©", "Béla", "été", "Don’t stop", "À la Ñ", "Piano")
JAPANESE = ("ピアノ", "主旋律", "ﾋﾟｱﾉ", "ﾄﾞﾗﾑ", "Aメロ")
RUSSIAN = ("Скрипка", "Бас", "Моя песня 2", "Фортепиано (правая)", "Ёлка")


@pytest.mark.parametrize(
    ("name", "encoding"),
    [(name, "utf-8") for name in (*WESTERN, *JAPANESE, *RUSSIAN)]
    + [(name, "cp1252") for name in WESTERN]
    + [(name, "cp932") for name in JAPANESE]
    + [(name, "cp1251") for name in RUSSIAN],
)
def test_letters_of_names_are_guessed(name, encoding):
    text = name.encode(encoding)
    tracks = read_tracks(midi(track((0, b"\xff\x03" + number(len(text)) + text), *C)), "it")
    assert tracks.tracks[0].name == name
    assert tracks.repairs["name"] == (encoding != "utf-8" and not name.isascii())


@pytest.mark.parametrize("text", ["\ufeffKlavier", "Klavier\0\0", "Klavier   ", "\tKlavier"])
def test_a_name_is_without_what_programs_write_around_it(text):
    tracks = read_tracks(midi(track((0, b"\xff\x03" + number(len(text.encode())) + text.encode()), *C)), "it")
    assert tracks.tracks[0].name == "Klavier"


def test_ports_have_channels_of_their_own():
    port = [(0, b"\xff\x21\x01" + bytes([number])) for number in (0, 1)]
    data = midi(track(port[0], *pedal((0, 127)), *C), track(port[1], *note(48, 0, 480)), track(*pedal((960, 0))))
    assert heard(data)[0] == [(0.0, 0.5, 48, 0), (0.0, 1.0, 60, 0)]


@pytest.mark.parametrize("name", ["elise", "gymnopedie", "chorale"])
def test_a_file_that_was_cut_anywhere_is_said_to_be(name):
    data = seed_path(name).read_bytes()
    assert not read_tracks(data, name).repairs.total()
    borders = np.cumsum([14, *(8 + len(body) for body, _ in whole_chunks(data, "").tracks)])
    for n in [*range(22, len(data), 7), *(b + k for b in borders[1:-1].tolist() for k in range(8))]:
        repairs = read_tracks(data[:n], name).repairs
        assert repairs["cut_short"] or (n in borders and repairs["track_count"]), n


SPEECH = st.one_of(
    st.builds(on, st.integers(60, 62), st.integers(0, 1), st.integers(0, 127)),
    st.builds(off, st.integers(60, 62), st.integers(0, 1)),
    st.builds(
        control,
        st.sampled_from([0, 64, 64, 64, 120, 121, 123]),
        st.sampled_from([0, 63, 64, 120, 127]),
        st.integers(0, 1),
    ),
    st.builds(lambda channel, program: bytes([0xC0 | channel, program]), st.integers(0, 1), st.integers(0, 2)),
    st.builds(lambda tempo: b"\xff\x51\x03" + bytes([tempo, 0, 0]), st.integers(0, 9)),
    st.builds(lambda part: DRUM_PART[:7] + bytes([0x10 | part]) + DRUM_PART[8:], st.integers(0, 2)),
    st.sampled_from([GM_ON, GS_ON, XG_ON]),
)
PART = st.lists(st.tuples(st.integers(0, 12).map(lambda step: step * 120), SPEECH), max_size=12)


def merged(data: bytes) -> bytes:
    """The same file in format 0, as mido merges tracks."""
    whole = mido.MidiFile(file=io.BytesIO(data))
    out = io.BytesIO()
    mido.MidiFile(type=0, ticks_per_beat=whole.ticks_per_beat, tracks=[mido.merge_tracks(whole.tracks)]).save(file=out)
    return out.getvalue()


@given(st.lists(PART, min_size=1, max_size=4))
def test_a_file_and_its_merge_to_format_0_are_the_same_music(parts):
    data = midi(*(track(*part, end=2000) for part in parts))  # a note without an end ends with its track
    one, many = read_tracks(merged(data), "one"), read_tracks(data, "many")
    assert one.merge(drums=True) == many.merge(drums=True)
    assert one.repairs == many.repairs


@pytest.mark.parametrize("name", ["elise", "gymnopedie", "chorale"])
def test_a_file_split_by_hand_is_the_same_music(name):
    """High notes, low notes and all else in tracks of their own."""
    data = seed_path(name).read_bytes()
    whole = mido.MidiFile(file=io.BytesIO(data))
    hands: list[list[tuple[int, mido.Message]]] = [[], [], []]
    tick = 0
    for message in mido.merge_tracks(whole.tracks):
        tick += message.time
        if message.type != "end_of_track":
            hands[0 if not hasattr(message, "note") else 1 + (message.note < 60)].append((tick, message))
    out = mido.MidiFile(type=1, ticks_per_beat=whole.ticks_per_beat)
    for hand in hands:
        times = np.diff([tick for tick, _ in hand], prepend=0).tolist()
        out.tracks.append(mido.MidiTrack(m.copy(time=t) for (_, m), t in zip(hand, times, strict=True)))
    out.save(file=(file := io.BytesIO()))
    assert rows(read_tracks(file.getvalue(), name).merge(True)) == rows(read_tracks(data, name).merge(True))


BODY = st.one_of(PART.map(lambda part: track(*part)), st.binary(max_size=100))


@given(st.lists(st.tuples(BODY, BODY).map(b"".join), min_size=1, max_size=3), st.integers(0, 2))
def test_what_is_written_again_is_the_same_music(bodies, form):
    """Also of tracks that go on after their end, of damaged ones, and of sequences."""
    data = midi(*bodies, form=form)
    again = write_events(read_events(data))
    assert read_tracks(again, "again").merge(drums=True) == read_tracks(data, "it").merge(drums=True)


@given(st.binary(max_size=200))
def test_any_bytes_are_whole_events_and_a_rest(body):
    events = parse_events(body)
    assert (np.diff(events.end, prepend=0) > 0).all()
    assert len(events.end) == 0 or events.end[-1] <= len(body)


@pytest.mark.parametrize("block", [1, 7, 1000])
def test_a_large_track_is_read_block_by_block(block, monkeypatch):
    (body, whole), *_ = whole_chunks(seed_path("elise").read_bytes(), "").tracks[::-1]
    monkeypatch.setattr("musictx.music.events.BLOCK", block)
    for column, expected in zip(parse_events(body), whole, strict=True):
        np.testing.assert_array_equal(column, expected)
