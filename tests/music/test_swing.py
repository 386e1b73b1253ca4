"""Music that swings is written straight, and new music in its file swings as it does."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_scores import PLAIN, drawn, sounds

from musictx.generate.requests import Continue, Fill, Length
from musictx.music.midi_file import notes_of, read_events
from musictx.music.notation.midi import from_midi, to_midi
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Note, Part
from musictx.music.notation.swing import STRAIGHT, Swing, swing_of

BARS = tuple(Bar(96 * n, 4, 4) for n in range(4))
LEAD = Part("Lead", 80, tuple(Note(12 * k + 6 * late, 6, 60 + k % 7) for k in range(32) for late in (0, 1) if k % 5))
BASS = Part("Bass", 33, tuple(Note(24 * k, 12, 36 + k % 3) for k in range(16)))
SONG = Notation((LEAD, BASS), BARS, 384)


@given(st.sampled_from([12, 24]), st.floats(0.51, 0.66), st.floats(0, 1000))
def test_what_is_straight_is_played_late_again(pair, late, at):
    swing = Swing(pair, pair * late)
    assert swing.played(swing.straight(at)) == pytest.approx(at)
    assert swing.played([0, pair / 2, pair]).tolist() == pytest.approx([0, pair * late, pair])


@pytest.mark.parametrize("percent", [54, 57, 60, 62, 64])
@pytest.mark.parametrize("pair", [12, 24])
def test_late_notes_of_a_daw_are_written_straight(percent, pair):
    straight = [pair * k / 2 for k in range(40)]
    swing = Swing(pair, pair * percent / 100)
    found = swing_of(swing.played(straight).tolist(), 0.1)
    assert found.pair == pair
    assert found.late == pytest.approx(swing.late)


@pytest.mark.parametrize(
    "onsets",
    [
        [6 * k for k in range(64)],
        [8 * k for k in range(64)],  # triplets
        [24 * k + at for k in range(16) for at in (0, 18)],  # dotted
        [12 * k + 0.3 * (k % 5) for k in range(64)],  # a person
        [24 * k + at for k in range(16) for at in (0, 13, 20)],
        [24 * k + 14 * (k == 5) for k in range(40)],  # once
    ],
)
def test_other_music_does_not_swing(onsets):
    assert swing_of(onsets, 0.1) == STRAIGHT


@pytest.mark.parametrize("late", [6.5, 6.84, 7.0, 7.44])
def test_a_file_that_swings_is_a_score_and_new_notes_swing_too(tmp_path, late):
    path, swing = tmp_path / "swing.mid", Swing(12, late)
    path.write_bytes(to_midi(replace(SONG, swing=swing)))
    notation, losses = from_midi(path.read_bytes())
    assert [part.notes for part in notation.parts] == [part.notes for part in SONG.parts]
    assert losses == {"swung": 1}
    assert notation.swing.late == pytest.approx(late, abs=0.06)
    places = {0.0, late}
    for request in Continue(PLAIN, Length(bars=4)), Fill(PLAIN, from_bar=2, to_bar=3):
        (music,) = drawn(path, request)
        whole = music.midi()
        if isinstance(request, Continue):
            assert not sounds(path.read_bytes()) - sounds(whole)
        onsets = [note.on / 20 % 12 for track in read_events(whole).tracks for note in notes_of(track)]
        assert all(min(abs(at - place) for place in places) < 0.06 for at in onsets)
        assert any(at > 6 for at in onsets)
        assert all(note.onset % 3 == 0 for part in music.notation.parts for note in part.notes)
        new_s = music.new_notes.onset_s / 0.5 * 24 % 12
        assert np.abs(new_s[:, None] - np.array([0.0, late, 12.0])).min(1).max() < 0.06


@pytest.mark.parametrize(
    ("bars", "is_swing"),
    [
        (tuple(Bar(96 * n, 4, 4) for n in range(4)), True),
        (tuple(Bar(72 * n, 3, 4) for n in range(6)), True),
        (tuple(Bar(84 * n, 7, 8) for n in range(5)), False),
        ((*BARS[:3], Bar(288, 3, 8), Bar(324, 4, 4)), False),
    ],
)
def test_bars_that_divide_a_pair_are_no_swing(bars, is_swing):
    lead = replace(LEAD, notes=tuple(Note(12 * k, 12, 60 + k % 5) for k in range(32)))
    song = replace(SONG, parts=(lead,), bars=bars, end=bars[-1].onset + bars[-1].full)
    data = to_midi(replace(song, swing=Swing(24, 15.0)))
    if is_swing:
        notation, _ = from_midi(data)
        assert (notation.parts[0].notes, notation.bars) == (lead.notes, bars)
        assert notation.swing == Swing(24, 15.0)
    else:
        assert from_midi(data)[0].swing == STRAIGHT
