"""musictx/music/project.py: new notes go into a person's file, and all else in it stays."""

import io
from dataclasses import replace
from pathlib import Path

import mido
import numpy as np
import pytest
from conftest import ROOT
from hypothesis import given
from hypothesis import strategies as st
from player import play
from projects import QUARTER, band, heard, note, project, tempo, track

from musictx.errors import ConfigError
from musictx.music.gap import GapNotes, fill_in
from musictx.music.midi_file import Event, EventFile, meta, read_events, write_events
from musictx.music.project import Line, Project
from musictx.music.read import whole
from musictx.music.score import DRUMS, Score


def test_the_parts_of_a_file_and_one_by_its_name():
    found = band()
    assert [(p.number, p.track, p.channel, p.name) for p in found.parts] == [
        (1, 1, 0, "violin"),
        (2, 2, 1, "cello"),
        (3, 3, 9, "drums"),
    ]
    assert [p.name for p in found.model_parts] == ["violin", "cello"]
    assert [p.name for p in band(drums=True).model_parts] == ["violin", "cello", "drums"]
    for name in ("cello", "2"):
        assert len(heard(band(part=name).alone()).merge(True)) == 4
    with pytest.raises(ConfigError, match=r"part=flute: .*1 violin, 2 cello, 3 drums"):
        _ = band(part="flute").model_parts


def test_a_continuation_is_a_track_at_the_files_tempo_and_the_rest_stays():
    it = band()
    end_s = heard(it.data).merge(True).duration_s
    new = Score([end_s, end_s + 1], [end_s + 1, end_s + 2], [79, 81], [70, 71], program=40)
    got = read_events(it.continue_at([Line("musictx", new)], end_s, "a remark"))
    assert got.tracks[:-1] == it.file.tracks
    added = got.tracks[-1]
    assert added.name == "musictx"
    assert [e.tick for e in added.events if e.begins] == [it.tick(end_s), it.tick(end_s) + 96]  # a quarter is 1 s here
    assert {e.channel for e in added.events if e.begins} == {0}  # the violin's
    back = heard(write_events(got)).tracks[-1].score
    assert np.abs(back.onset_s - new.onset_s).max() < 0.02
    assert (back.program.tolist(), back.velocity.tolist()) == ([40, 40], [70, 71])


def test_a_seed_that_ends_early_is_cut_there_but_not_its_tempo_and_markers():
    it = band()
    join = 240  # within notes of both
    at_s = float(it.clock.seconds(np.array([join]))[0])
    got = read_events(it.continue_at([Line("musictx", Score([at_s], [at_s + 1], [60], [64], program=0))], at_s))
    assert got.tracks[0] == it.file.tracks[0]
    for was, now in zip(it.file.tracks[1:], got.tracks[1:-1], strict=True):
        before = [e for e in was.events if e.tick < join]
        assert now.events[: len(before)] == before
        assert all(e.ends and e.tick == join for e in now.events[len(before) :])
    assert max(t.score.duration_s for t in heard(write_events(got)).tracks[:-1]) == pytest.approx(at_s)
    free = next(e.channel for e in got.tracks[-1].events if e.begins)
    assert free not in (0, 1, 9)  # no channel plays program 0
    alone = read_events(it.continue_at([Line("musictx", Score([at_s], [at_s + 1], [60], [64]))], at_s, seed=False))
    assert [e for t in alone.tracks[:-1] for e in t.events if e.channel is not None] == []
    assert alone.tracks[0] == it.file.tracks[0]
    assert alone.tracks[-1].events[-1].tick > join


def test_new_notes_sound_as_they_are_whatever_the_seed_left_behind():
    pedal, bend = Event(50, b"\xb0\x40\x7f"), Event(60, b"\xe0\x00\x60")
    it = project(track(note(0, 96, 60), pedal, bend))
    new = Score([1.0, 1.5], [1.2, 1.7], [64, 65], [80, 80])
    back = heard(it.continue_at([Line("musictx", new)], 1.0))
    assert back.tracks[-1].score.offset_s.tolist() == pytest.approx([1.2, 1.7], abs=0.01)
    (bent,) = (e for e in read_events(it.continue_at([Line("musictx", new)], 1.0)).tracks[-1].events if e.kind == 0xE0)
    assert bent.data[1:] == b"\x00\x40"


def test_a_fill_takes_the_notes_of_its_gap_and_nothing_else():
    it = band()
    first, last = 192, 384
    from_s, to_s = it.clock.seconds(np.array([first, last])).tolist()
    others = Score.merge([t.score for t in heard(it.data).tracks if not t.is_drums])
    others = others.select((others.onset_s < from_s - 1e-6) | (others.onset_s > to_s - 1e-6))
    new = Score([from_s, from_s], [to_s, to_s - 0.5], [49, 80], [60, 61])
    gap = GapNotes(it.by_register(new), others, from_s, to_s, 0.005)
    got = read_events(fill_in(it, gap))
    assert len(got.tracks) == 4
    assert (got.tracks[0], got.tracks[3]) == (it.file.tracks[0], it.file.tracks[3])
    for n, pitch in ((1, 80), (2, 49)):  # each where its register is
        was, now = it.file.tracks[n].events, got.tracks[n].events
        kept = [e for e in was if not ((e.begins or e.ends) and first <= e.tick < last)]
        added = [e for e in now if e not in kept]
        assert [e for e in now if e in kept] == kept
        assert [(e.tick, e.data[1]) for e in added if e.begins] == [(first, pitch)]
    only = read_events(fill_in(band(part="cello"), gap._replace(new=[(2, new.select(new.pitch == 49))])))
    assert only.tracks[1] == it.file.tracks[1]


def test_notes_over_the_borders_of_a_gap_end_and_begin_there():
    it = project(track(note(0, 400, 60), note(150, 250, 64), note(390, 500, 67)))
    from_s, to_s = 1.0, 2.0  # 192 to 384
    others = Score([0, 150 / 192, to_s, 390 / 192], [from_s, from_s, 400 / 192, 500 / 192], [60, 64, 60, 67], [80] * 4)
    gap = GapNotes([(1, Score([1.2], [1.8], [72], [80]))], others, from_s, to_s, 0.005)
    (track_of,) = heard(fill_in(it, gap)).tracks
    rows = zip(track_of.score.onset_s * 192, track_of.score.offset_s * 192, track_of.score.pitch.tolist(), strict=True)
    assert sorted((p, round(a), round(b)) for a, b, p in rows) == [
        (60, 0, 192),
        (60, 384, 400),
        (64, 150, 192),
        (67, 390, 500),
        (72, 230, 346),
    ]


def test_the_pedal_of_a_gap_goes_and_the_persons_own_comes_back_at_its_end():
    pedal = [Event(tick, bytes([0xB0, 64, value])) for tick, value in ((50, 100), (200, 0), (210, 90), (600, 0))]
    it = project(track(note(0, 100, 60), note(220, 260, 64), note(400, 500, 67), pedal, Event(0, b"\xc0\x05")))
    others = Score([0, 400 / 192], [1.0, 600 / 192], [60, 67], [80, 80])
    new = Score([1.2], [2.0], [72], [80], program=5)
    data = fill_in(it, GapNotes([(1, new)], others, 1.0, 2.0, 0.005))
    (only,) = read_events(data).tracks
    assert [(e.tick, e.data[2]) for e in only.events if e.kind == 0xB0] == [(50, 100), (192, 0), (384, 90), (600, 0)]
    assert [(s.on, s.off, s.pitch) for s in play(data)] == [(0, 192, 60), (230, 383, 72), (400, 600, 67)]


def test_another_hand_on_the_same_channel_keeps_its_pedal():
    pedal = [Event(150, b"\xb0\x40\x7f"), Event(500, b"\xb0\x40\x00")]
    right, left = track(meta(0, 3, "RH"), note(0, 180, 72)), track(meta(0, 3, "LH"), note(100, 200, 40), pedal)
    it = project(right, left, part="RH")
    new = [(1, Score([1.2], [1.4], [74], [80]))]
    data = fill_in(it, GapNotes(new, Score([0], [1.0], [72], [80]), 1.0, 2.0, 0.0))
    assert read_events(data).tracks[1] == it.file.tracks[1]
    assert [(s.on, s.off, s.pitch) for s in play(data)] == [(0, 192, 72), (100, 500, 40), (230, 269, 74)]


notes = st.lists(
    st.tuples(st.integers(0, 800), st.integers(1, 300), st.integers(40, 80), st.integers(1, 127)),
    min_size=1,
    max_size=25,
)


def score_of(rows, **how):
    """Notes of which no pitch overlaps itself."""
    kept: list[tuple[float, ...]] = []
    ends: dict[int, int] = {}
    for on, length, pitch, velocity in sorted(rows):
        if ends.get(pitch, 0) <= on:
            kept.append((on / 100, (on + length) / 100, pitch, velocity))
            ends[pitch] = on + length
    return Score(*np.array(kept).T, **how)


@given(notes, st.booleans(), st.integers(200_000, 2_000_000))
def test_what_is_written_is_read_again_with_and_without_a_pedal(rows, pedal, mspq):
    score = score_of(rows, quarter_s=mspq / 1e6)
    it = Project.new(score.quarter_s, (3, 4))
    data = it.beside([Line("musictx", score)], pedal=pedal)
    back, tick_s = heard(data), mspq / 1e6 / 480
    assert back.meter().signature == (3, 4)
    got = back.merge()
    assert len(got) == len(score)
    for was, now in zip(sorted(rows_of(score)), sorted(rows_of(got)), strict=True):
        assert was[0] == now[0]
        assert np.abs(np.array(was[1:]) - now[1:]).max() <= 1.01 * tick_s


def rows_of(score):
    return zip(score.pitch.tolist(), score.onset_s.tolist(), score.offset_s.tolist(), strict=True)


def test_a_chord_under_one_lift_is_a_pedal():
    score = Score([0.0, 0.5, 1.0, 2.1], [2.0, 2.0, 2.0, 3.0], [48, 55, 64, 50], [80] * 4)
    midi = mido.MidiFile(file=io.BytesIO(Project.new(0.5).beside([Line("", score)], pedal=True)))
    pedal = [(m.time, m.value) for m in in_seconds(midi) if m.type == "control_change"]
    assert pedal == [(0.0, 127), (2.0, 0)]
    keys = [round(m.time, 2) for m in in_seconds(midi) if m.type == "note_off"]
    assert keys == [0.5, 1.0, 2.0, 3.0]  # legato


def in_seconds(midi):
    at = 0.0
    for message in midi:
        at += message.time
        yield message.copy(time=round(at, 4))


@given(notes)
def test_notes_of_several_programs_and_of_overlapping_pitch_are_all_there(rows):
    on, length, pitch, velocity = np.array(rows).T
    programs = np.array([0, 40, DRUMS])[np.arange(len(rows)) % 3]
    score = Score(on / 100, (on + length) / 100, pitch, velocity, program=programs)
    back = heard(Project.new(0.5).beside([Line("musictx", score)])).merge(drums=True)
    key = lambda s: sorted(zip(s.program.tolist(), s.pitch.tolist(), s.onset_s.round(2).tolist(), strict=True))  # noqa: E731
    assert key(back) == key(score)


REAL = sorted((ROOT / "musictx" / "bundles").glob("*.mid"))


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_a_file_of_the_package_stays_as_it_is(path: Path):
    data = whole(path.read_bytes(), path)
    it = Project(data, heard(data).tempo_map)
    end_s = heard(data).merge().duration_s
    got = read_events(it.continue_at([Line("musictx", Score([end_s], [end_s + 1], [60], [80]))], end_s))
    assert got.tracks[:-1] == it.file.tracks


def test_no_pedal_stays_down_and_a_deep_bend_ends_where_new_music_begins():
    down = [Event(10, bytes([0xB0 | channel, 64, 127])) for channel in (0, 1)]
    it = project(track(note(0, 96, 60), note(0, 96, 48, 1), *down, Event(20, b"\xe0\x00\x00")))
    (added,) = read_events(it.continue_at([Line("musictx", Score([1.0], [1.5], [64], [80]))], 1.0)).tracks[1:]
    lifted = {event.channel for event in added.events if event.data[1:] == b"\x40\x00" and event.kind == 0xB0}
    assert lifted == {0, 1}
    assert [event.data for event in added.events if event.kind == 0xE0] == [b"\xe0\x00\x40"]


def test_what_comes_later_on_a_channel_mutes_no_new_note_and_what_was_there_bends_none():
    fade = [Event(200, b"\xb0\x07\x00"), Event(210, b"\xb0\x78\x00")]
    it = project(track(Event(0, b"\xc0\x05"), Event(0, b"\xb0\x00\x08"), note(0, 96, 60), fade))
    got = it.continue_at([Line("musictx", Score([1.0], [2.0], [64], [80], program=5))], 1.0)
    assert read_events(got).tracks[:1] == it.file.tracks
    new = play(got)[-1]
    assert (new.off - new.on, new.program, new.expression) == (192, 5, 127)
    assert new.channel != 0
    assert b"\x00\x08" in [e.data[1:] for e in read_events(got).tracks[1].events if e.kind == 0xB0]  # its bank
    before = [Event(5, b"\xb0\x0b\x00"), Event(6, b"\xe0\x00\x00"), Event(7, b"\xb0\x42\x7f")]
    it = project(track(note(0, 96, 60), before))
    new = play(it.continue_at([Line("musictx", Score([1.0], [2.0], [64], [80]))], 1.0))[-1]
    assert (new.channel, new.bend, new.expression) == (0, 0, 127)


def full():
    """A file that uses all sixteen channels, each with an instrument and a pedal, up to its end."""
    tracks = [
        track(
            *([Event(0, bytes([0xC0 | c, c + 1]))] if c != 9 else []),
            *(note(96 * k, 96 * k + 90, 50 + c, c) for k in range(8)),
            Event(700, bytes([0xB0 | c, 7, 90])),
        )
        for c in range(16)
    ]
    return project(*tracks)


def test_where_all_channels_are_in_use_the_persons_own_sound_as_they_did():
    it = full()
    was = play(it.data)
    for data in (
        it.beside([Line("alto", Score([0.3], [0.4], [80], [80]))]),
        fill_in(it, GapNotes([(1, Score([2.1], [2.2], [50], [80]))], heard(it.data).merge(), 2.0, 2.5, 0.0)),
    ):
        assert [sound for sound in was if sound not in play(data)] == []
    late = it.continue_at([Line("musictx", Score([9.0], [9.5], [80], [80], program=77))], 9.0)
    assert play(late)[-1].program == 77  # after the seed a channel is free


def test_a_hand_that_is_not_asked_for_keeps_its_notes():
    right, left = track(meta(0, 3, "RH"), note(0, 90, 72)), track(meta(0, 3, "LH"), note(0, 90, 40), note(192, 380, 64))
    it = project(right, left, part="RH")
    got = fill_in(
        it, GapNotes([(1, Score([1.2], [1.4], [64], [80]))], Score([0], [90 / 192], [72], [80]), 1.0, 2.0, 0.0)
    )
    assert read_events(got).tracks[1] == it.file.tracks[1]
    assert [(s.on, s.off) for s in play(got) if s.pitch == 64 and s.channel == 0] == [(192, 380)]


def test_lyrics_and_system_messages_end_with_the_notes_of_a_seed_that_is_cut():
    words = [meta(k * 96, 5, f"la{k}") for k in range(8)]
    it = project(
        track(tempo(0, 500_000), meta(500, 6, "chorus")),
        track(*words, *(note(96 * k, 96 * k + 90, 60) for k in range(8)), Event(600, b"\xf0\x01\xf7")),
    )
    conductor, notes, new = read_events(it.continue_at([Line("musictx", Score([1.0], [1.5], [64], [80]))], 1.0)).tracks
    assert conductor == it.file.tracks[0]
    assert [e.tick for e in notes.events if e.data[:2] == b"\xff\x05"] == [0, 96]
    assert all(e.kind != 0xF0 for e in notes.events)
    assert (notes.end, new.end) == (192, 288)


def test_names_of_parts_are_those_of_inspect_and_numbers_come_first():
    one, two = (
        track(meta(0, 3, "2"), note(0, 90, 60)),
        track(meta(0, 3, "Old"), meta(5, 3, "Violin"), note(0, 90, 72, 1)),
    )
    it = project(one, two)
    assert (
        [(t.part, t.name) for t in heard(it.data).tracks]
        == [(p.number, p.name) for p in it.parts]
        == [(1, "2"), (2, "Violin")]
    )
    assert [p.number for p in project(one, two, part="2").model_parts] == [2]
    with pytest.raises(ConfigError, match="several parts have this name"):
        _ = project(two, two, part="Violin").model_parts
    program = [Event(0, bytes([0xC0 | channel, sound])) for channel, sound in ((1, 24), (2, 33), (3, 24))]
    for strings, count in ([1, 3], 2), ([1, 2], 0):  # a guitar with a channel for each string; and all in one track
        notes = [note(0, 90, 60 + channel, channel) for channel in strings]
        it = project(track(meta(0, 3, "Lead"), *program, *notes), part="Lead")
        if count:
            assert len(it.model_parts) == count
            continue
        with pytest.raises(ConfigError, match="several parts have this name"):
            _ = it.model_parts


def test_a_file_of_sequences_says_so():
    data = bytearray(write_events(EventFile(QUARTER.to_bytes(2), [track(note(0, 90, 60)), track(note(0, 90, 62))])))
    data[9] = 2
    assert "2 sequences, which belong one after the other" in heard(bytes(data)).remark()


controls = st.sampled_from((1, 7, 11, 64, 66))
strays = st.lists(st.tuples(st.integers(0, 900), st.integers(0, 2), controls, st.integers(0, 127)), max_size=8)


@given(notes, strays, st.integers(1, 12), st.booleans())
def test_whatever_the_seed_nothing_of_it_changes_and_new_notes_sound_as_they_are(rows, stray, join, pedal):
    tracks: list[list[Event]] = [[], [], []]
    for k, (on, length, pitch, velocity) in enumerate(rows):
        tracks[k % 3] += note(on, on + length, pitch, k % 3, velocity)
    for tick, channel, number, value in stray:
        tracks[channel].append(Event(tick, bytes([0xB0 | channel, number, value])))
    it = project(*(track(events) for events in tracks))
    at_s = join / 192 * 96
    at = it.tick(at_s)
    new = Score(at_s + np.array([0.0, 0.5]), at_s + np.array([0.5, 1.0]), [90, 91], [80, 80])
    data = it.continue_at([Line("musictx", new)], at_s, pedal=pedal)
    for was, now in zip(it.file.tracks, read_events(data).tracks, strict=False):
        assert [e for e in now.events if e.tick < at] == [e for e in was.events if e.tick < at]
        assert now == was or all(e.ends and e.tick == at for e in now.events if e.tick >= at)
    sounds = [sound for sound in play(data) if sound.pitch >= 90]
    assert [(s.on - at, s.off - at, s.pitch, s.bend, s.expression) for s in sounds] == [
        (0, 96, 90, 0, 127),
        (96, 192, 91, 0, 127),
    ]


def test_music_of_more_instruments_than_a_file_has_channels_is_written_whole():
    programs = np.arange(40)
    score = Score(programs / 10, programs / 10 + 0.5, np.full(40, 60), np.full(40, 80), program=programs)
    back = heard(Project.new(0.5).beside([Line("musictx", score)])).merge()
    assert sorted(back.program.tolist()) == programs.tolist()
    late = heard(
        full().continue_at(
            [Line("musictx", replace(score, onset_s=score.onset_s + 9, offset_s=score.offset_s + 9))], 9.0
        )
    ).tracks
    assert {t.program for t in late if t.name == "musictx"} == {*programs.tolist()}


def test_what_is_not_of_a_melody_is_silent_and_all_else_stays():
    it = band()
    melody = heard(it.data).tracks[0].score
    kept = it.with_only(melody)
    assert [kept.file.tracks[n] for n in (0, 1, 3)] == [it.file.tracks[n] for n in (0, 1, 3)]
    assert [e for e in kept.file.tracks[2].events if e.begins or e.ends] == []
    assert it.with_only(heard(it.data).merge()) is it
