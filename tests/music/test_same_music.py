"""musictx/music/gap.py and project.py: a file that is written sounds as the page says, whatever the pedals."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from player import play
from projects import LONGEST, SLOW, files, note, project, tempo, track, without_lifts

from musictx.generate.gap import cut_gap, fill
from musictx.generate.result import Music, Place
from musictx.music.gap import GapNotes, fill_in
from musictx.music.midi_file import CONTROL, Event, read_events
from musictx.music.project import Line
from musictx.music.read import read_tracks
from musictx.music.score import Meter, Score
from musictx.tokenizers.performance import PerformanceTokenizer

TOKENIZER = PerformanceTokenizer()


def sounds(score, clock):
    columns = clock.ticks(score.onset_s), clock.ticks(score.offset_s), score.pitch
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


def key(row):
    return row[2], row[0], row[1]


def filled(it, from_tick, length, data):
    """Music with a gap that drawn notes fill; None for music without notes around it."""
    heard = read_tracks(it.alone() if it.part else it.data, "a test").merge()
    from_s, to_s = it.clock.seconds(np.array([from_tick, from_tick + length])).tolist()
    if heard.duration_s <= to_s + 0.02 or len(it.model_parts) == 0:
        return None
    gap = cut_gap(heard, heard, from_s, to_s, Meter(0.5), TOKENIZER)
    drawn = data.draw(st.lists(st.tuples(st.integers(40, 75), st.booleans(), st.integers(1, 60)), max_size=12))
    ids = [i for pitch, on, wait in drawn for i in (pitch if on else 128 + pitch, 255 + wait)]
    score, is_new = fill(gap, np.array(ids, np.uint16), TOKENIZER, 0, ringing=True)
    return Music(
        score=score,
        new_from_s=gap.from_s,
        new_to_s=gap.to_s,
        is_new=is_new,
        name="",
        signature=None,
        seed=None,
        place=Place(it, step_s=0.01),
    )


@settings(max_examples=100)
@given(files(), st.integers(0, LONGEST), st.integers(20, 400), st.data())
def test_a_fill_sounds_in_its_file_as_on_the_page(tracks, first, length, data):
    it = project(*tracks, part=data.draw(st.sampled_from((None, "1", "2"))))
    if (music := filled(it, first, length, data)) is None:
        return
    for pedal in (False, True):
        written = music.midi(pedal=pedal)
        silent = [part for part in it.parts if part not in it.model_parts]
        others = {(part.channel, pitch) for part in silent for pitch in part.pitches.tolist()}
        tail = [sound for sound in play(it.data) if (sound.channel, sound.pitch) in others]
        got, mine = play(written), sounds(music.score, it.clock)
        for each in tail:  # another hand plays on as it did
            got.remove(each)
        now = sorted((s.on, s.off, s.pitch) for s in got)
        assert [x[2] for x in now] == [x[2] for x in mine]
        for shown, heard_now in zip(sorted(mine, key=key), sorted(now, key=key), strict=True):
            assert abs(shown[0] - heard_now[0]) <= 1
            assert abs(shown[1] - heard_now[1]) <= 2
        # what the person has outside the gap stays, event for event, but for ends of notes that cross its borders
        first_tick, last_tick = it.tick(music.new_from_s), it.tick(music.new_to_s)
        for before, after in zip(it.file.tracks, read_events(written).tracks, strict=False):
            kept = [e for e in before.events if e.kind == 0xB0 and not first_tick <= e.tick < last_tick]
            assert [e for e in after.events if e in kept] == kept


def test_a_pedal_that_is_pressed_as_the_gap_ends_stays_where_it_is():
    press = Event(10, bytes([CONTROL, 64, 100]))
    it = project(track(note(0, 8, 60), press, note(20, 28, 62)))
    to_s = it.clock.seconds(np.array([10.0]))[0] + 1e-6  # later than the press by less than a tick
    others = read_tracks(it.data, "it").merge()
    written = fill_in(it, GapNotes([], others, to_s / 2, to_s, 0.0))
    assert press in read_events(written).tracks[0].events


@settings(max_examples=100)
@given(files(), st.integers(0, LONGEST), st.integers(20, 400), st.booleans(), st.data())
def test_a_pedal_that_is_forgotten_stays_so_around_a_fill(tracks, first, length, forgets, data):
    it = project(track(tempo(0, SLOW)), *without_lifts(tracks, forgets), part=data.draw(st.sampled_from((None, "1"))))
    if (music := filled(it, first, length, data)) is None:
        return
    others = [part for part in it.parts if part not in it.model_parts]
    tail = sounds(
        Score.merge([t.score for t in read_tracks(it.data, "").tracks if t.part in {p.number for p in others}]),
        it.clock,
    )
    mine = sorted([*sounds(music.score, it.clock), *tail], key=key)
    for pedal in (False, True):
        now = sorted(sounds(read_tracks(music.midi(pedal=pedal), "").merge(), it.clock), key=key)
        assert [x[2] for x in now] == [x[2] for x in mine]
        assert np.abs(np.array(now) - mine).max() <= 2


@settings(max_examples=100)
@given(files(), st.booleans(), st.sampled_from((500_000, SLOW)), st.sets(st.integers(40, 65) | st.just(32)))
def test_what_is_left_of_a_file_sounds_as_before(tracks, forgets, mspq, pitches):
    it = project(track(tempo(0, mspq)), *without_lifts(tracks, forgets))
    heard = read_tracks(it.data, "a test")
    alone = replace(it, part="1").alone()
    assert sounds(read_tracks(alone, "a test").merge(), it.clock) == sounds(heard.tracks[0].score, it.clock)
    whole = heard.merge()
    left = whole.select(~np.isin(whole.pitch, list(pitches)))
    assert sounds(read_tracks(it.with_only(left).data, "a test").merge(), it.clock) == sounds(left, it.clock)


def test_a_pedal_that_nothing_lifts_ends_as_before_the_fill():
    pedal = Event(5, b"\xb1\x40\x7f")  # for longer than a minute, if the last note stays
    part = track(note(0, 8, 40, 1), note(2, 200, 41, 1), note(300, 900, 42, 1), pedal)
    it = project(track(tempo(0, SLOW)), part, track(note(1500, 1600, 32)))
    gap = GapNotes(
        [], read_tracks(it.data, "a test").merge().select(np.array([True, True, False, True])), 31.25, 118.75, 0.01
    )
    assert sounds(read_tracks(fill_in(it, gap), "a test").merge(), it.clock) == [
        (0, 8, 40),
        (2, 200, 41),
        (1500, 1600, 32),
    ]


def test_a_pedal_is_let_go_in_the_track_that_pressed_it():
    drums = track(note(0, 8, 36, 9), note(300, 900, 38, 9))
    it = project(track(tempo(0, SLOW)), track(note(0, 8, 40, 1), note(2, 200, 41, 1), Event(5, b"\xb1\x40\x7f")), drums)
    tracks = read_events(replace(it, part="1").alone()).tracks
    assert [event.tick for event in tracks[1].events if event.kind == CONTROL] == [5, 200]
    assert not [event for event in tracks[2].events if event.kind == CONTROL]


@settings(max_examples=200)
@given(files(), st.integers(10, 1700), st.booleans(), st.booleans())
def test_a_pedal_that_is_forgotten_stays_so_in_what_is_cut_and_written(tracks, join, pedal, forgets):
    it = project(track(tempo(0, SLOW)), *without_lifts(tracks, forgets))
    heard = read_tracks(it.data, "a test").merge()
    join = max(join, it.tick(heard.onset_s[0]) + 1)
    at_s = float(it.clock.seconds(np.array([join]))[0])
    new = Score(at_s + np.array([0.0, 0.5]), [at_s + 61.0, at_s + 61.0], [90, 91], [80, 80])
    mine = sounds(heard.clip(0.0, at_s), it.clock)
    more = sounds(new, it.clock)
    for data, rows in (
        (it.continue_at([Line("musictx", new)], at_s, pedal=pedal), mine + more),
        (it.until(at_s).data, mine),
    ):
        assert sounds(read_tracks(data, "a test").merge(), it.clock) == sorted(rows)


@settings(max_examples=100)
@given(files(), st.integers(10, 1700), st.booleans(), st.booleans())
def test_up_to_the_join_a_file_sounds_as_on_the_page(tracks, join, pedal, forgets):
    it = project(*without_lifts(tracks, forgets))
    heard = read_tracks(it.data, "a test").merge()
    join = max(join, it.tick(heard.onset_s[0]) + 1)
    at_s = float(it.clock.seconds(np.array([join]))[0])
    new = Score(at_s + np.array([0.0, 0.5]), [at_s + 1.0, at_s + 1.0], [90, 91], [80, 80])
    got = [(s.on, s.off, s.pitch) for s in play(it.continue_at([Line("musictx", new)], at_s, pedal=pedal))]
    mine = sounds(heard.clip(0.0, at_s), it.clock) + [(join, join + 192, 90), (join + 96, join + 192, 91)]
    assert sorted(got, key=key) == sorted(mine, key=key)
