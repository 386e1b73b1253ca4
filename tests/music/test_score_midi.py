"""Scores as MIDI files and back: meters and upbeats, ticks that are no units, and what MIDI lacks."""

import pickle
from copy import copy
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import notations

from musictx.errors import PerformanceError
from musictx.music.midi_file import Event, EventFile, EventTrack, write_events
from musictx.music.notation.midi import from_midi, to_midi
from musictx.music.notation.notation import Notation, Note, Part


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


def test_a_note_beside_all_of_them_is_a_performance():
    with pytest.raises(PerformanceError):
        from_midi(file_of([0, 480, 487 + 480, 1920]), "it")


def test_a_performance_says_in_a_sentence_why_it_is_no_score_and_the_remedy():
    error = PerformanceError("rubato.mid", "is a performance, not a score", "quantise it")
    for each in (error, copy(error), pickle.loads(pickle.dumps(error))):
        assert str(each) == "rubato.mid is a performance, not a score: quantise it"
        assert each.reason == "is a performance, not a score"
