"""Scores go on by whole bars behind what is given. The models know nothing."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from notated import NOTE, XML
from projects import note as strike
from projects import project, track
from small_scores import PLAIN, SCORE, SONG, TUNE_NOTES, drawn, in_file, keeps, sounds
from strategies import notations

from musictx.errors import ConfigError, UserError
from musictx.generate.primer import Part as Region
from musictx.generate.requests import Continue, Length
from musictx.generate.score_seeds import read_score
from musictx.generate.score_tasks import task_of
from musictx.generate.score_templates import bars_of, closing_bars, meter_of_rest, more_bars
from musictx.music.midi_file import Event, read_events
from musictx.music.notation.midi import from_midi, to_midi
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Note, Part, Tempo
from musictx.music.notation.read import read_notation
from musictx.music.read import score_of
from musictx.tokenizers.rules import Rules

STILL = Rules(max_still_s=None)  # a limit that counts the new bars where nothing sounds before


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("scores")


@given(notations(), st.sampled_from([480, 96, 24]), st.integers(1, 3), st.sampled_from([None, 64]), st.integers(0, 99))
@settings(max_examples=20)
def test_a_continuation_keeps_every_note_of_the_file(folder, score, division, bars, window, k):
    path, unit = in_file(score, folder, division), division // 24
    seed, _ = from_midi(path.read_bytes())
    music, other = drawn(path, Continue(PLAIN, Length(bars=bars), random_seed=k, variations=2), window=window)
    assert not music.stopped
    meter = meter_of_rest(seed, closing_bars(seed))
    assert music.notation.bars[: len(seed.bars)] == seed.bars
    assert [bar[1:] for bar in music.notation.bars[len(seed.bars) :]] == [meter[1:]] * bars
    assert music.notation.end == seed.end + bars * meter.full
    was, now = sounds(path.read_bytes()), sounds(music.midi())
    assert not was - now
    assert all(on >= unit * seed.end and on % unit == off % unit == 0 for _, on, off, *_ in now - was)
    assert {(t, channel) for t, _, _, channel, *_ in now} == {(t, channel) for t, _, _, channel, *_ in was}
    assert sum((now - was).values()) == len(music.new_notes)
    if meter[1:] == seed.bars[-1][1:]:
        assert read_events(music.midi()).tracks[0] == read_events(path.read_bytes()).tracks[0]
    assert keeps(music, task_of(path, SCORE, Continue(PLAIN, Length(bars=bars))).template)
    assert other.notation.bars == music.notation.bars


@given(notations(), st.integers(1, 2), st.integers(1, 2), st.integers(0, 99))
@settings(max_examples=15)
def test_a_bar_is_the_same_whatever_bars_come_after_it(folder, score, bars, more, k):
    path = in_file(score, folder)
    short, long = (
        drawn(path, Continue(PLAIN, Length(bars=n), random_seed=k, rules=STILL))[0] for n in (bars, bars + more)
    )
    end = short.notation.end
    for part, longer in zip(short.notation.parts, long.notation.parts, strict=True):
        cut = [note._replace(length=min(note.length, end - note.onset)) for note in longer.notes if note.onset < end]
        assert [*part.notes] == sorted(cut)


@given(notations(), st.integers(1, 4), st.integers(0, 99))
@settings(max_examples=20)
def test_the_first_bars_of_a_file_go_on_and_the_rest_is_gone(folder, score, bars, k):
    path = in_file(score, folder)
    old = read_score(path, SCORE).notation
    first = min(note.onset for part in old.parts for note in part.notes)
    silent = sum(end <= first for _, end in old.spans)
    count = min(bars + max(silent, old.has_upbeat), len(old.bars))
    end = old.spans[count - 1][1]
    request = Continue(PLAIN, Length(bars=2), random_seed=k, part=Region(bars=bars))
    (music,) = drawn(path, request)
    assert music.notation.bars[:count] == old.bars[:count]
    assert len(music.notation.bars) == count + 2
    for part, was in zip(music.notation.parts, old.parts, strict=True):
        assert [n for n in part.notes if n.onset < end] == sorted(
            n._replace(length=min(n.length, end - n.onset)) for n in was.notes if n.onset < end
        )
    now, was = sounds(music.midi()), sounds(path.read_bytes())
    assert sum(on < 20 * end for _, on, *_ in now.elements()) == sum(on < 20 * end for _, on, *_ in was.elements())
    assert sum(on >= 20 * end for _, on, *_ in now.elements()) == len(music.new_notes)


def test_a_cut_lies_at_the_bar_line_that_seconds_and_from_s_reach(tmp_path):
    path = in_file(SONG, tmp_path)  # bars at 0, 1 and 4 s, to 7 s
    for region, at_s in (
        (Region(seconds=0.5), 1),
        (Region(seconds=1.0), 1),
        (Region(seconds=1.1), 4),
        (Region(until_s=4.01), 4),
        (Region(bars=1), 4),  # bar 1 follows the upbeat
        (Region(bars=2), 7),
        (Region(seconds=99), 7),
        (Region(), 7),
    ):
        (music,) = drawn(path, Continue(PLAIN, Length(bars=1), part=region))
        assert music.new_from_s == at_s
    with pytest.raises(ConfigError, match=f"^{path}: from_s=7.5: give more than 0 and at most 7.00, where the music"):
        drawn(path, Continue(PLAIN, Length(bars=1), part=Region(until_s=7.5)))


def test_bars_of_silence_before_a_song_are_none_of_the_seed(tmp_path):
    tune = Part("Tune", 0, tuple(Note(24 * k, 24, 60 + k % 5) for k in range(16, 32)))
    path = in_file(Notation((tune,), tuple(Bar(96 * k, 4, 4) for k in range(8)), 768), tmp_path)
    (music,) = drawn(path, Continue(PLAIN, Length(bars=1), part=Region(bars=2)))
    assert music.template.span == (576, 672)
    with pytest.raises(UserError, match=f"^{path}: no notes to continue: raise seed_seconds="):
        task_of(path, SCORE, Continue(PLAIN, Length(bars=1), part=Region(seconds=0.1)))


def test_lengths_are_whole_bars_of_the_last_meter():
    bar = SONG.bars[-1]
    assert bars_of(Length(), SONG, bar) == 7  # 20 s of bars of 3 s
    assert bars_of(Length(seconds=0.1), SONG, bar) == 1
    assert bars_of(Length(bars=5), SONG, bar) == 5


def test_notation_goes_on_from_a_bar_line_in_midi_and_musicxml(tmp_path):
    path = tmp_path / "tune.abc"
    tune = "A|d2f|e2c|d2|"  # an upbeat, and a last bar without it
    path.write_text(f"X:1\nT:A tune\nM:3/4\nL:1/4\nQ:1/4=90\nK:D\n{tune}\n")
    (music,) = drawn(path, Continue(PLAIN, Length(bars=2)))
    seed = read_score(path, SCORE).notation
    assert [bar.onset for bar in music.notation.bars[-3:]] == [168, 240, 312]  # rests fill the last bar
    assert music.notation.end == 384
    assert music.notation.keys == seed.keys
    assert sounds(to_midi(seed)) - sounds(music.midi()) == Counter()
    assert music.write(tmp_path / "out.musicxml") == ""
    again, _ = score_of((tmp_path / "out.musicxml").read_bytes(), "out.musicxml")
    assert again.bars == music.notation.bars
    assert [part.notes for part in again.parts] == [part.notes for part in music.notation.parts]


def test_a_file_whose_last_bar_completes_the_upbeat_goes_on_in_its_meter(tmp_path):
    bars = Bar(0, 3, 4), Bar(24, 3, 4), Bar(96, 3, 4)
    short = replace(SONG, parts=(Part("Voice", 52, (*TUNE_NOTES[:3], Note(96, 48, 67))),), bars=bars, end=144)
    path = in_file(short, tmp_path)
    assert from_midi(path.read_bytes())[0].bars[-1][1:] == (2, 4)  # MIDI says that it is another meter
    (music,) = drawn(path, Continue(PLAIN, Length(bars=1)))
    assert music.notation.bars[-1] == Bar(144, 3, 4)
    more = [
        e
        for e in read_events(music.midi()).tracks[0].events
        if e not in read_events(path.read_bytes()).tracks[0].events
    ]
    assert [(e.tick, e.data[3:5]) for e in more] == [(2880, b"\x03\x02")]


def test_meters_behind_the_last_bar_are_said(tmp_path):
    path = tmp_path / "later.mid"
    meter = Event(384, bytes([0xFF, 0x58, 4, 3, 2, 24, 8]))
    path.write_bytes(project(track(meter), track(strike(0, 384, 60))).data)
    assert "new bars are in 4/4" in task_of(path, SCORE, Continue(PLAIN)).remarks[0]
    assert task_of(in_file(SONG, tmp_path), SCORE, Continue(PLAIN)).remarks == ()


def test_a_variation_does_not_depend_on_the_others(tmp_path):
    path = in_file(SONG, tmp_path)
    three = drawn(path, Continue(PLAIN, Length(bars=2), variations=3))
    one_by_one = drawn(path, Continue(PLAIN, Length(bars=2), variations=3, rows_at_once=1))
    assert [len(music.new_notes) for music in three] == [len(music.new_notes) for music in one_by_one]
    assert three[0].notation != three[1].notation


@pytest.mark.parametrize(("line", "begins"), [('<barline><repeat direction="backward"/></barline>', 192), ("", 216)])
def test_a_last_bar_that_goes_back_to_the_upbeat_stays_as_it_is(line, begins):
    bars = "</measure><measure>".join(NOTE.format("C", 6 * quarters) for quarters in (1, 4, 3))
    text = XML.replace("<beats>2", "<beats>4").format(notes=bars + line)
    old = read_notation(text.encode(), "musicxml")[0]
    assert more_bars(old, (0,), 2).notation.bars[3:] == (Bar(begins, 4, 4), Bar(begins + 96, 4, 4))
    assert more_bars(old.first_bars(2), (0,), 1, fill=False).notation.bars[2:] == (Bar(120, 4, 4),)


def played(*onsets_of_bars):
    """Bars of 4/4 whose notes begin at so many sixteenths."""
    bars = tuple(Bar(96 * n, 4, 4) for n in range(len(onsets_of_bars)))
    notes = [Note(96 * n + 6 * k, 6, 60 + k) for n, count in enumerate(onsets_of_bars) for k in range(count)]
    return Notation((Part("Piano", 0, tuple(notes)),), bars, 96 * len(bars))


@pytest.mark.parametrize(
    ("onsets", "count"),
    [
        ((8, 8, 8, 8, 8, 8), 0),
        ((8, 8, 8, 8, 8, 2), 1),
        ((8, 8, 8, 8, 8, 3), 0),
        ((8, 8, 8, 8, 1, 0), 2),
        ((8, 1, 8, 8, 8, 8), 0),
        ((8, 8, 8, 1, 1, 1), 2),  # at most a third of the bars
        ((8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 1, 1, 1, 1, 1), 4),
        ((3, 0, 3, 0, 3, 0, 3), 0),
        ((8, 1), 0),
        ((8, 8, 8, 8, 8, 8, 1, 0, 0, 0, 0, 0), 6),
        ((8, 8, 8, 0, 0), 2),
    ],
)
def test_an_ending_is_the_last_bars_with_few_onsets(onsets, count):
    assert closing_bars(played(*onsets)) == count


def new_notes(music):
    begin = music.template.span[0]
    return [
        [note._replace(onset=note.onset - begin) for note in part.notes if note.onset >= begin]
        for part in music.notation.parts
    ]


@given(st.lists(st.integers(5, 9), min_size=4, max_size=6), st.integers(0, 99))
@settings(max_examples=15)
def test_music_goes_on_as_if_a_piece_had_no_ending(folder, onsets, k):
    request = Continue(PLAIN, Length(bars=2), random_seed=k, rules=STILL)
    (whole,) = drawn(in_file(played(*onsets), folder), request)
    (ended,) = drawn(path := in_file(played(*onsets, 1), folder), request)
    assert new_notes(ended) == new_notes(whole)
    assert ended.template.span[0] == whole.template.span[0] + 96
    assert not sounds(path.read_bytes()) - sounds(ended.midi())


def test_an_ending_in_another_meter_is_not_that_of_new_bars_and_its_tempo_is_said(folder):
    piece = played(*[8] * 5, 1)
    short = replace(piece, bars=(*piece.bars[:5], Bar(480, 2, 4)), end=528)
    (music,) = drawn(in_file(short, folder), Continue(PLAIN, Length(bars=2)))
    assert [bar[1:] for bar in music.notation.bars[6:]] == [(4, 4)] * 2
    for last, is_said in ((120.0, False), (160.0, True), (40.0, False)):  # slower, it does not stay
        slow = replace(piece, tempi=(Tempo(0, 120.0), Tempo(480, last)))
        said = task_of(in_file(slow, folder), SCORE, Continue(PLAIN, Length(bars=2))).remarks
        assert any("tempo of the ending" in each for each in said) == is_said


def test_a_part_that_a_person_cuts_has_no_ending(folder):
    path = in_file(played(8, 8, 8, 2, 8, 8, 8, 8), folder)
    task = task_of(path, SCORE, Continue(PLAIN, Length(bars=1), part=Region(bars=4)))
    assert task.template.closing == 0
    assert not any("finished" in each for each in task.remarks)
