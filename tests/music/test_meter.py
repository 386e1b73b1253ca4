import mido
import numpy as np
import pytest

from musictx.music.read import read_bytes, read_tracks
from musictx.music.score import Meter, Score
from musictx.music.write import write_midi

NOTE = Score([0.0], [4.0], [60], [80], quarter_s=0.5)


def write(path, *events, end=0):
    """(tick, message) … and a note until the tick `end`."""
    midi, track, now = mido.MidiFile(ticks_per_beat=480), mido.MidiTrack(), 0
    notes = [(0, mido.Message("note_on", note=60, velocity=80)), (end, mido.Message("note_off", note=60))]
    for tick, message in sorted([*events, *notes], key=lambda event: event[0]):
        track.append(message.copy(time=tick - now))
        now = tick
    midi.tracks.append(track)
    midi.save(path)


def signature(beats, unit):
    return mido.MetaMessage("time_signature", numerator=beats, denominator=unit)


def test_without_a_file_bars_are_even():
    assert Meter(0.5).bars_s(4.1).tolist() == [0, 2, 4, 6]
    assert Meter(0.5, (3, 4)).bars_s(3.0).tolist() == [0, 1.5, 3.0]
    assert Meter(0.5, (6, 8)).bar_s == 1.5
    assert Meter(0.5).bars_s(0).tolist() == [0]


def test_bar_lines_follow_every_change_of_tempo_and_time_signature(tmp_path):
    changes = [
        (0, signature(3, 4)),
        (1440, mido.MetaMessage("set_tempo", tempo=1_000_000)),
        (2880, signature(2, 4)),
    ]
    write(tmp_path / "a.mid", *changes, end=4000)
    data = read_bytes(tmp_path / "a.mid")
    meter = read_tracks(data, "a").meter()
    assert meter.signature == (3, 4)
    assert meter.lines_s is not None
    np.testing.assert_allclose(meter.lines_s, [0, 1.5, 4.5, 6.5, 8.5])
    np.testing.assert_allclose(meter.bars_s(1.6), [0, 1.5, 4.5])
    meter = read_tracks(data, "a", one_tempo=True).meter()
    np.testing.assert_allclose(meter.bars_s(8.0), [0, 3, 6, 8])  # the first tempo that is stated
    write(tmp_path / "a.mid", (1920, signature(3, 4)), end=3000)
    meter = read_tracks(read_bytes(tmp_path / "a.mid"), "a").meter()
    assert meter.signature == (4, 4)  # before the first that is stated
    np.testing.assert_allclose(meter.bars_s(3.5), [0, 2, 3.5])


@pytest.mark.parametrize("wanted", [(3, 4), (6, 8), (4, 4), None])
def test_the_time_signature_is_written_and_read_again(tmp_path, wanted):
    write_midi(NOTE, tmp_path / "a.mid", wanted)
    tracks = read_tracks(read_bytes(tmp_path / "a.mid"), "a")
    assert tracks.meter().signature == (wanted or (4, 4))
    assert tracks.merge() == NOTE


def test_bars_after_one_that_completes_the_upbeat_are_whole(tmp_path):
    bars = [(0, signature(1, 4)), (480, signature(4, 4)), (480 + 2 * 1920, signature(3, 4))]
    write(tmp_path / "a.mid", *bars, end=480 + 2 * 1920 + 1440)
    meter = read_tracks(read_bytes(tmp_path / "a.mid"), "a.mid").meter()
    assert meter.bars_s(12.0).tolist() == [0, 0.5, 2.5, 4.5, 6, 8, 10, 12]
    assert Meter(0.5, (4, 4), np.array([0, 2.0, 4.0, 5.5])).bars_s(8.0).tolist() == [0, 2, 4, 5.5, 7, 8.5]
