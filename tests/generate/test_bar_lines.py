"""Chords by bar begin at the bar lines of the music that a file has, and at equal bars where its notes keep to none."""

from typing import Any

import mido
import numpy as np
import pytest
from stubs import restless

import musictx
from musictx.generate.control import Control
from musictx.generate.model import Model
from musictx.music.harmony import parse_chord
from musictx.music.read import read_bytes, read_tracks
from musictx.music.score import Meter
from musictx.tokenizers import build_tokenizer, with_added
from musictx.tokenizers.gap import ADDED, with_gap_clock
from musictx.tokenizers.rules import Rules

PIANO = build_tokenizer("performance")
STEP_S = 0.006  # a bar line is at the nearest step of the clock
PLAIN: dict[str, Any] = {
    "top_p": None,
    "guard": False,
    "seed_guidance": None,
    "rules": Rules(max_polyphony=20, grid="off"),
}


def midi(path, chords, *changes):
    """Chords of (from, to, name) in quarters, at 120 quarters a minute or by changes of (quarter, message)."""
    events = [(int(480 * quarter), 0, message) for quarter, message in changes]
    for begin, end, name in chords:
        for pitch in parse_chord(name).classes:
            events.append((round(480 * begin), 2, mido.Message("note_on", note=60 + pitch, velocity=80)))
            events.append((round(480 * end), 1, mido.Message("note_off", note=60 + pitch)))
    track, now = mido.MidiTrack(), 0
    for tick, _, message in sorted(events, key=lambda event: event[:2]):
        track.append(message.copy(time=tick - now))
        now = tick
    mido.MidiFile(tracks=[track], ticks_per_beat=480).save(path)
    return path


def signature(beats, unit=4):
    return mido.MetaMessage("time_signature", numerator=beats, denominator=unit)


def tempo(quarters_a_minute):
    return mido.MetaMessage("set_tempo", tempo=mido.bpm2tempo(quarters_a_minute))


def follows(music, *spans):
    """Whether all that is new between the moments of (from, to, name) belongs to these chords, which were asked for."""
    assert [chord[:3] for chord in music.chords] == [
        (name, pytest.approx(from_s), pytest.approx(to_s)) for from_s, to_s, name in spans
    ]
    new = music.new_notes
    for from_s, to_s, name in spans:
        begun = new.pitch[(new.onset_s > from_s - STEP_S) & (new.onset_s < to_s - STEP_S)] % 12
        assert len(begun) or to_s - from_s < 1
        assert set(begun.tolist()) <= parse_chord(name).classes


def continued(path, from_s, seconds, chords="seed"):
    control = Control(chords=chords, strength=20.0)
    asked: dict[str, Any] = {"from_s": from_s, "seconds": seconds, "control": control, "random_seed": 4}
    (music,) = Model(restless(PIANO), PIANO).continue_midi(path, **asked, **PLAIN)
    return music


WALTZ = [(0, 1, "G7"), (1, 4, "C"), (4, 7, "F"), (7, 10, "Am")]
UPBEATS = [  # a bar of one quarter, or the last quarter of a bar that begins with a rest
    (WALTZ, [(0, signature(1)), (1, signature(3))], 5.0),
    ([(begin + 2, end + 2, name) for begin, end, name in WALTZ], [(0, signature(3))], 6.0),
]


@pytest.mark.parametrize(("chords", "changes", "end_s"), UPBEATS)
def test_an_upbeat_does_not_shift_the_chords(tmp_path, chords, changes, end_s):
    path = midi(tmp_path / "waltz.mid", chords, *changes)
    spans = [(0.0, 1.5, "C"), (1.5, 3.0, "F"), (3.0, 4.5, "Am"), (4.5, 6.0, "C")]
    spans = [(end_s + from_s, end_s + to_s, name) for from_s, to_s, name in spans]
    follows(music := continued(path, end_s, 6.0), *spans)
    lasts = "a bar of chords lasts 1.50 s, from bar line to bar line; bar_seconds= names another length"
    assert [f"{path}: {lasts}", f"{path}: its chords are C | F | Am"] == [*music.remarks[-2:]]


SLOWER = [(0, 4, "C"), (4, 8, "Am"), (8, 12, "F"), (12, 16, "G")], (8, tempo(60))  # bars begin at 0, 2, 4 and 8 s


def test_bars_follow_a_change_of_tempo_and_continue_in_the_last(tmp_path):
    path = midi(tmp_path / "slower.mid", *SLOWER)
    follows(music := continued(path, 12.0, 10.0), (12, 16, "C"), (16, 20, "Am"), (20, 22, "F"))
    lasts, are = music.remarks[-2:]
    assert "a bar of chords lasts 4.00 s, from bar line to bar line" in lasts
    assert are == f"{path}: its chords are C | Am | F | G"
    follows(continued(path, 4.0, 5.0), (4, 8, "C"), (8, 9, "Am"))  # bars of the file, chords of what is heard


def test_new_music_within_a_bar_begins_with_the_first_chord_up_to_a_line_at_least_half_a_bar_later(tmp_path):
    path = midi(tmp_path / "slower.mid", *SLOWER)
    follows(continued(path, 6.4, 8.0, "C | F# Bb"), (6.4, 12, "C"), (12, 14, "F#"), (14, 14.4, "Bb"))
    follows(continued(path, 5.0, 8.0, "C | F# Bb"), (5, 8, "C"), (8, 10, "F#"), (10, 12, "Bb"), (12, 13, "C"))


def test_a_gap_has_the_bars_of_its_piece(tmp_path):
    gapped = with_gap_clock(with_added(PIANO, ADDED))
    path = midi(tmp_path / "slower.mid", *SLOWER)
    asked: dict[str, Any] = {"from_s": 2.0, "to_s": 8.0, "random_seed": 4}
    plain = {name: value for name, value in PLAIN.items() if name != "seed_guidance"}
    for chords, spans in (
        ("D | Eb", [(2, 4, "D"), (4, 8, "Eb")]),
        ("seed", [(2, 4, "C"), (4, 8, "C")]),
    ):
        control = Control(chords=chords, strength=20.0)
        (music,) = Model(restless(gapped), gapped).fill(path, **asked, control=control, **plain)
        follows(music, *spans)
        assert any("a bar of chords lasts 2.00 to 4.00 s, from bar line to bar line" in each for each in music.remarks)
        assert (f"{path}: its chords are C" in music.remarks) == (chords == "seed")


def test_voices_follow_the_bars_of_the_melody_and_bars_of_rest_before_it_have_chords_too(tmp_path, voices):
    notes = [(k, k + 1, "+".join([name] * 2)) for k, name in enumerate("GCEGFAFEC", 6)]  # after two bars
    path = midi(tmp_path / "tune.mid", notes, (0, signature(3)))
    (music,) = musictx.load(voices).accompany(path, control=Control(chords="G | D", strength=20.0), transpose=0)
    bars = [(chord.from_s, chord.name) for chord in music.chords]
    assert bars == [(1.5 * n, "GD"[n % 2]) for n in range(len(bars))]
    assert len(bars) == 5
    for from_s, name in bars[2:]:
        new = music.new_notes
        begun = new.pitch[(new.onset_s >= from_s) & (new.onset_s < from_s + 1.5)] % 12
        assert len(begun) > 2
        assert set(begun.tolist()) <= parse_chord(name).classes


def meter_of(path):
    return read_tracks(read_bytes(path), path).meter()


@pytest.mark.parametrize(("each", "whole_s"), [(1 / 8, 0.0), (1 / 5, 0.0), (1 / 7, None)])
def test_straight_notes_keep_to_bar_lines(tmp_path, each, whole_s):
    path = midi(tmp_path / "straight.mid", [(k * each, (k + 1) * each, "C") for k in range(64)])
    assert meter_of(path).whole_s == whole_s


def test_music_of_no_length_has_bars_and_a_slower_second_bar_makes_no_upbeat_of_the_first(tmp_path):
    path = midi(tmp_path / "fast.mid", [(0, 1, "C")] * 2, (0, mido.MetaMessage("set_tempo", tempo=1)))
    assert meter_of(path).bars_s(1.0)[0] == 0.0
    path = midi(tmp_path / "slow.mid", [(k, k + 1, "C") for k in range(12)], (4, tempo(50)))
    assert meter_of(path).whole_s == 0.0


def free(path):
    """Played without a beat, in a file that says 120 quarters a minute and four quarters a bar, as recorders do."""
    begin = np.cumsum(np.abs(np.sin(np.arange(40) ** 2)) + 0.05) + 0.13
    chords = [(at, at + 0.2, "C" if k < 20 else "F#m") for k, at in enumerate(begin.tolist())]
    return midi(path, chords, (0, tempo(120)), (0, signature(4)))


def test_a_performance_has_equal_bars_from_the_new_music_on(tmp_path):
    path = free(tmp_path / "free.mid")
    meter = meter_of(path)
    assert (meter.whole_s, meter.bar_s) == (None, 2.0)
    music = continued(path, 10.7, 5.0, "D | Eb")
    follows(music, (10.7, 12.7, "D"), (12.7, 14.7, "Eb"), (14.7, 15.7, "D"))
    lasts = f"{path}: a bar of chords lasts 2.00 s, each alike, since its notes keep to no bar lines;"
    assert music.remarks[-1].startswith(lasts)
    assert continued(path, 10.7, 1.0).remarks[-1].count(" | ") == 4  # five bars in 10.7 s


def test_a_part_has_the_bar_lines_of_the_whole():
    meter = Meter(0.5, (1, 4), np.array([0.0, 0.5, 2.0, 3.5, 6.5, 9.5]), 0.5)
    part = meter.part(1.0, 4.0)
    assert part.lines_s is not None
    assert (part.lines_s.tolist(), part.whole_s) == ([-0.5, 1.0, 2.5, 5.5, 8.5], -0.5)
    assert part.bars_s(9.0).tolist() == [-0.5, 1.0, 2.5, 5.5, 8.5, 11.5]
    assert Meter(0.5).part(1.0, 4.0) == Meter(0.5)
    before_s, after_s = Control(chords="seed").lines_s(part, 3.0)
    assert (before_s.tolist(), after_s.tolist()) == ([-0.5, 1.0, 2.5], [2.5, 5.5, 8.5, 11.5, 14.5])
    before_s, after_s = Control(chords="seed").lines_s(meter.part(0.0, 0.5), 0.5)  # only an upbeat
    assert (before_s.tolist(), after_s.tolist()) == ([0.0, 0.5], [0.5, 2.0, 3.5, 6.5, 9.5, 12.5, 15.5])


def test_bars_of_a_part_keep_their_numbers(tmp_path):
    path = midi(tmp_path / "waltz.mid", [(2, 3, "G"), *((k, k + 1, "C") for k in range(3, 15))], (0, signature(3)))
    meter = read_tracks(read_bytes(path), path).meter()
    assert meter.numbered(7.5).numbers.tolist() == [0, 1, 2, 3, 4, 5]
    part = meter.part(4.5, 7.5)
    assert part.numbered(3.0).numbers.tolist() == [3, 4, 5]
    assert part.numbered(3.0).lines_s.tolist() == [0.0, 1.5, 3.0]
    assert part.part(2.0, 3.0).numbered(1.0).numbers.tolist() == [4, 5]
    assert meter.part(1.0, 7.5).numbered(2.0).numbers.tolist() == [0, 1, 2]


@pytest.mark.parametrize("include_seed", [True, False])
def test_a_picture_has_the_bar_lines_of_the_file(tmp_path, include_seed):
    path = midi(tmp_path / "waltz.mid", [(2, 3, "G"), *((k, k + 1, "C") for k in range(3, 15))], (0, signature(3)))
    model = Model(restless(PIANO), PIANO)
    (music,) = model.continue_midi(path, seconds=3.0, include_seed=include_seed, **PLAIN)
    assert music.bars is not None
    assert music.bars.numbers[:2].tolist() == ([0, 1] if include_seed else [5, 6])
    music.write(tmp_path / "roll.svg")
    assert ">bars, and seconds<" in (tmp_path / "roll.svg").read_text()


def test_between_two_files_new_music_has_the_meter_before_a_bar_that_completes_the_upbeat(tmp_path):
    chords = [(k / 2, k / 2 + 0.45, "CFG"[k % 3]) for k in range(24)]
    a = midi(tmp_path / "a.mid", chords, (0, signature(1)), (1, signature(3)), (10, signature(2)))
    b = midi(tmp_path / "b.mid", chords, (0, signature(3)))
    (music,) = musictx.load("piano").fill_between(a, b, bars=2)
    assert [music.new_from_s, music.new_to_s] == pytest.approx([6.0, 9.0], abs=1e-6)
    music.write(tmp_path / "c.mid")
    tracks = read_tracks((tmp_path / "c.mid").read_bytes(), "c.mid")
    quarters = [(tick / 480, beats) for tick, beats, _ in tracks.signatures.tolist()]
    assert quarters == [(0, 1), (1, 3), (10, 2), (12, 3), (18, 3)]


def test_between_two_files_on_a_grid_bar_lines_and_beats_stay(tmp_path):
    model, chords = musictx.load("piano"), [(k / 2, k / 2 + 0.45, "CFG"[k % 3]) for k in range(15)]
    a = midi(tmp_path / "a.mid", chords, (0, signature(4)))  # its last note ends before the bar line, at 7.45
    b = midi(tmp_path / "b.mid", chords, (0, signature(3)))
    (music,) = model.fill_between(a, b, bars=1)
    assert [music.new_from_s, music.new_to_s] == pytest.approx([4.0, 6.0], abs=1e-6)
    music.write(tmp_path / "c.musicxml")  # no performance
    music.write(tmp_path / "c.mid")
    tracks = read_tracks((tmp_path / "c.mid").read_bytes(), "c.mid")
    assert tracks.signatures[:, :2].tolist() == [[0, 4], [12 * 480, 3]]
    (free,) = model.fill_between(a, b, bars=1, rules=musictx.Rules(grid="off"))
    assert free.new_from_s == pytest.approx(7.45 / 2, abs=0.02)
