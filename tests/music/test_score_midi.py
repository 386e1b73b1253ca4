"""Scores as MIDI files and back: meters and upbeats, ticks that are no units, and what MIDI lacks."""

import io
import pickle
from copy import copy
from itertools import pairwise

import mido
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from notated import midi_of, notes
from strategies import notations

from musictx.errors import MidiError, PerformanceError
from musictx.music import chunks
from musictx.music.events import parse_events
from musictx.music.midi_file import Event, EventFile, EventTrack, read_events, write_events
from musictx.music.notation.midi import from_midi, lost_in_midi, to_midi
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Key, Note, Part, Tempo
from musictx.music.notation.read import read_notation
from musictx.music.project import Project
from musictx.music.read import read_tracks, score_of
from musictx.music.score import Score
from musictx.music.write import write_midi


def file_of(ticks, per_quarter=480, meters=()):
    """A line of notes from each tick to the next, and meters (tick, beats, power of two)."""
    events = [each for a, b in pairwise(ticks) for each in (Event(a, b"\x90\x3c\x50"), Event(b, b"\x80\x3c\x40"))]
    clock = [Event(at, bytes([255, 0x58, 4, beats, power, 24, 8])) for at, beats, power in meters]
    return write_events(EventFile(per_quarter.to_bytes(2), [EventTrack([*clock], 0), EventTrack(events, 0)]))


@pytest.mark.parametrize(
    ("meters", "first"),
    [
        ([(0, 1, 2), (480, 4, 2)], (4, 4)),  # a quarter before bars of four
        ([(0, 2, 2), (960, 4, 2)], (4, 4)),
        ([(0, 3, 3), (720, 6, 3)], (6, 8)),
        ([(0, 3, 2), (1440, 4, 2)], (3, 4)),  # the meter changes
        ([(0, 2, 2), (960, 3, 2)], (2, 4)),
        ([(0, 3, 2), (1440, 4, 2), (1440 + 3 * 1920, 1, 2)], (4, 4)),  # the last bar is what the upbeat lacks
        ([(0, 4, 2), (1920, 3, 2)], (4, 4)),
        ([(0, 1, 2), (960, 4, 2)], (1, 4)),  # two bars
    ],
)
def test_a_short_first_bar_is_an_upbeat_and_a_longer_one_is_a_bar(meters, first):
    notation, _ = from_midi(file_of(range(0, 7681, 480), meters=meters), "it")
    assert notation.bars[0][1:] == first
    assert notation.has_upbeat == (first != (meters[0][1], 2 ** meters[0][2]))


def test_minor_keys_stay_minor_and_tempi_of_a_ramp_have_no_mark():
    keys = tuple(Key(96 * n, n - 7, ("minor", "")[n % 2]) for n in range(15))
    tempi = (Tempo(0, 90.0), *(Tempo(96 + 12 * n, 91.0 + n, 0) for n in range(8)), Tempo(192, 100.0))
    part = Part("a", 0, tuple(Note(96 * n, 96, 60) for n in range(15)))
    bars = tuple(Bar(96 * n, 4, 4) for n in range(15))
    data = to_midi(Notation((part,), bars, 15 * 96, keys, tempi))
    back, _ = from_midi(data, "it")
    assert back.keys == keys
    assert [(at, round(speed), beat) for at, speed, beat in back.tempi] == [*tempi]
    names = [
        message.key for message in mido.MidiFile(file=io.BytesIO(data)).tracks[0] if message.type == "key_signature"
    ]
    assert names[::2] == ["Abm", "Bbm", "Cm", "Dm", "Em", "F#m", "G#m", "A#m"]


@given(notations(), st.integers(1, 95))
def test_an_upbeat_comes_back_as_one_of_any_length(notation, length):
    length = min(3 * length, notation.bars[0].full - 3) // 3 * 3
    meter = notation.bars[0]
    bars = [meter, *(meter._replace(onset=length + k * meter.full) for k in range(4))]
    part = Part("", 0, tuple(Note(12 * k, 12, 60) for k in range((bars[-1].onset + meter.full) // 12)))
    mine = Notation((part,), tuple(bars), bars[-1].onset + meter.full)
    back, _ = from_midi(to_midi(mine), "it")
    assert back.bars[:5] == mine.bars
    assert back.has_upbeat


@pytest.mark.parametrize("per_quarter", [1, 2, 8, 12, 24, 96, 480])
def test_a_place_that_the_grid_has_is_read_exactly_however_coarse_the_ticks(per_quarter):
    ticks = [*range(0, 4 * per_quarter + 1, max(per_quarter // 8, 1))]
    notation, losses = from_midi(file_of(ticks, per_quarter), "it")
    assert [note.onset * per_quarter for note in notation.parts[0].notes] == [24 * tick for tick in ticks[:-1]]
    assert losses == {}


def test_a_score_is_parsed_once(monkeypatch):
    parsed = list[bytes]()

    def parse(body):
        parsed.append(body)
        return parse_events(body)

    monkeypatch.setattr(chunks, "parse_events", parse)
    data = midi_of([[(0, 480, 60)], [(0, 480, 64)]])
    assert len(score_of(data, "it")[0].parts) == 2
    assert len(parsed) == len({*parsed}) > 1
    project = Project(data, read_tracks(data, "it").tempo_map)
    parsed.clear()
    assert [part.track for part in project.parts] == [track for track, of in enumerate(project.notes) if of]
    assert len(parsed) == len(project.file.tracks)


@pytest.mark.parametrize(("per_quarter", "step"), [(5, 1), (10, 2), (480, 96), (96, 19.2), (480, 480 / 7)])
def test_tuplets_that_the_grid_lacks_get_the_nearest_place_and_are_counted(per_quarter, step):
    ticks = [round(k * step) for k in range(int(4 * per_quarter / step) + 1)]
    notation, losses = from_midi(file_of(ticks, per_quarter), "it")
    onsets = [note.onset for note in notation.parts[0].notes]
    assert onsets == [round(24 * tick / per_quarter) for tick in ticks[:-1]]
    assert losses["finer"] == sum(onset % 24 != 0 for onset in onsets)


def test_ticks_that_round_a_thirty_second_are_a_score_and_no_loss():
    ticks = [round(100 * k / 8) for k in range(9)]  # of 100 ticks a quarter they lie between ticks
    notation, losses = from_midi(file_of(ticks, 100), "it")
    assert ([note.onset for note in notation.parts[0].notes], losses) == ([*range(0, 24, 3)], {})


def test_a_performance_says_in_a_sentence_why_it_is_no_score_and_the_remedy():
    error = PerformanceError("rubato.mid", "is a performance, not a score", "quantise it")
    for each in (error, copy(error), pickle.loads(pickle.dumps(error))):
        assert str(each) == "rubato.mid is a performance, not a score: quantise it"
        assert each.reason == "is a performance, not a score"


DRUM_PART = b"\xf0\x0a\x41\x10\x42\x12\x40\x1a\x15\x01\x10\xf7"  # Roland's: part 11 is for rhythm


@pytest.mark.parametrize(
    ("channel", "sign"),
    [(10, DRUM_PART), (0, b"\xff\x03\x0bDrums (909)"), (10, b"\xba\x00\x78")],  # by GS, by name, by GM2's bank
)
def test_drums_of_any_channel_are_no_staff_and_no_swing(channel, sign):
    tune = [(0, 480 * k, 60 + k) for k in range(32)]
    late = [(channel, 480 * k + 290, 38) for k in range(32)]
    file = read_events(midi_of([tune, late]))
    file.tracks[2].events.insert(0, Event(0, sign))
    notation, losses = from_midi(write_events(file), "it")
    assert ([part.program for part in notation.parts], dict(losses)) == ([0], {"drums": 32})


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


def test_what_players_hear_and_a_score_lacks_is_counted():
    events = [(0, b"\xc0\x05"), (0, b"\xe0\x00\x40"), (0, b"\xb0\x40\x00")]  # how it begins
    events += [(480 + n, bytes([0xE0, 0, value])) for n, value in enumerate((70, 80, 64, 90, 64))]
    events += [(480 + n, bytes([0xB0, 64, value])) for n, value in enumerate((127, 100, 0, 64, 0))]
    events += [(480, b"\xc0\x05"), (480, b"\xc0\x06"), (960, b"\xff\x06\x01A"), (0, b"\xff\x06\x06upbeat")]
    file = read_events(midi_of([[(0, 0, 60), (0, 480, 62)]]))
    track = file.tracks[1]
    mixed = sorted([*track.events, *(Event(*event) for event in events)], key=lambda each: each.tick)
    notation, losses = from_midi(write_events(file._replace(tracks=[file.tracks[0], EventTrack(mixed, track.end)])))
    assert losses == {"bends": 2, "pedals": 2, "programs": 1, "markers": 1}
    assert notes(notation) == [((0, 24, 60), (24, 24, 62))]


def test_of_two_meters_keys_or_tempi_at_one_tick_the_later_counts():
    said = [b"\x58\x04\x04\x02\x18\x08", b"\x58\x04\x03\x02\x18\x08", b"\x59\x02\x03\x00", b"\x59\x02\x01\x00"]
    said += [b"\x51\x03\x07\xa1\x20", b"\x51\x03\x0f\x42\x40"]
    notation, _ = from_midi(midi_of([[(0, 0, 60)]], [(0, b"\xff" + each) for each in said]), "it")
    assert (notation.bars, notation.keys, notation.tempi) == ((Bar(0, 3, 4),), (Key(0, 1),), (Tempo(0, 60.0),))


def test_a_tempo_of_midi_that_no_program_plays_is_bounded():
    note = (0, 0, 60)
    assert from_midi(midi_of([[note]], [(0, b"\xff\x51\x03\x00\x00\x01")]), "it")[0].tempi == (Tempo(0, 1000.0),)


@given(notations())
def test_a_score_comes_back_from_midi(notation):
    data = to_midi(notation)
    found, losses = from_midi(data)
    lengths = {note.length for part in notation.parts for note in part.notes}
    if lengths <= {3, 4, 6, 8, 12, 16, 18, 24, 30, 48, 72}:  # a note of 23 units, say, is one of 24 that a DAW cut
        assert (notes(found), dict(losses)) == (notes(notation), {})
    lowest = [min((each.verse for each in part.lyrics), default=1) for part in notation.parts]
    verses = zip(notation.parts, lowest, strict=True)
    first = [tuple(each._replace(verse=1) for each in part.lyrics if each.verse == verse) for part, verse in verses]
    assert [part.lyrics for part in found.parts] == first
    assert lost_in_midi(notation)["unsung"] == sum(len(part.lyrics) for part in notation.parts) - sum(map(len, first))
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


def held(lengths, step=120, first=0, count=16):
    """Notes of a channel at every `step` ticks, each of the next of some lengths in ticks, in turn; pitches rise."""
    spans = [(first + step * n, first + step * n + lengths[n % len(lengths)], 60 + n) for n in range(count)]
    events = [
        each for on, off, pitch in spans for each in ((off, bytes([128, pitch, 64])), (on, bytes([144, pitch, 80])))
    ]
    return write_events(EventFile((480).to_bytes(2), [EventTrack([Event(*each) for each in sorted(events)], 0)]))


@pytest.mark.parametrize("length", [96, 101, 118, 120, 121, 130, 144])  # 80 % of a sixteenth to a legato of 120 %
@pytest.mark.parametrize("step", [1, 2, 4])
def test_notes_that_a_sequencer_holds_a_little_short_or_long_have_the_time_to_the_next(length, step):
    notation, losses = from_midi(held([length * step], 120 * step))
    assert [note.length for note in notation.parts[0].notes] == [6 * step] * 16
    assert (notation.end, losses) == (96 * step, {})  # no bar for the tail of the last one


def test_a_tail_opens_no_bar_but_a_note_that_is_meant_to_sound_there_does():
    assert from_midi(held([120, 120, 120, 165]))[0].end == 96
    assert from_midi(held([120] * 15 + [300]))[0].end == 192
    assert from_midi(held([120] * 12 + [630] + [120] * 3))[0].end == 192


def test_triplets_keep_their_length_beside_straight_notes():
    assert [note.length for note in from_midi(held([150], 160, count=12))[0].parts[0].notes] == [8] * 12


@pytest.mark.parametrize("early", [-4, -1, 1, 4])
def test_notes_a_little_beside_the_grid_are_a_score_that_says_so(early):
    notation, losses = from_midi(held([120], first=480 + early))
    assert [note.onset for note in notation.parts[0].notes] == [24 + 6 * n for n in range(16)]
    assert losses == ({"finer": 16} if abs(early) > 2 else {})


def test_each_staff_of_a_large_score_has_a_channel_of_its_own():
    parts = tuple(Part(f"part {n}", n, (Note(0, 24, 40 + n),)) for n in range(40))
    data = to_midi(Notation(parts, (Bar(0, 4, 4),), 96))
    ports, places = 0, set()
    for track in mido.MidiFile(file=io.BytesIO(data)).tracks[1:]:
        ports = next((each.port for each in track if each.type == "midi_port"), 0)
        places |= {(ports, each.channel) for each in track if each.type == "program_change"}
    assert len(places) == 40
    heard = read_tracks(data, "it")
    assert [[*each.score.program] for each in heard.tracks] == [[n] for n in range(40)]


def test_exact_lengths_of_triplets_come_back_beside_straight_notes():
    notes = Note(0, 24, 60), Note(24, 8, 60), Note(36, 16, 62), Note(72, 20, 64)
    again, _ = from_midi(to_midi(Notation((Part("", 0, notes),), (Bar(0, 4, 4),), 96)))
    assert again.parts[0].notes == notes
