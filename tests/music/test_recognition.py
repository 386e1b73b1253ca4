"""The chords of music are found as they were written, in every key."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from musictx.music.harmony import QUALITIES, Chord, parse_chord, parse_chords
from musictx.music.recognition import chord_track, chords_by_bar, named, nearest_chord
from musictx.music.score import Score

BARS = np.arange(0.0, 10.0, 2.0)
keys, chords = st.integers(0, 11), st.builds(Chord, st.integers(0, 11), st.sampled_from(sorted(QUALITIES)))


def played(line, bar_s=2.0, lowest=48, arpeggio=False):
    """A bar of each chord from a lowest pitch on, its root doubled below."""
    notes = []
    for k, chord in enumerate(line):
        pitches = [36 + chord.root, *sorted(lowest + (each - lowest) % 12 for each in chord.classes)]
        for n, pitch in enumerate(pitches):
            at_s = k * bar_s + arpeggio * n * bar_s / len(pitches)
            notes.append((at_s, (k + 1) * bar_s, pitch, 80))
    onset_s, offset_s, pitch, velocity = np.array(notes).T
    return Score(onset_s, offset_s, pitch, velocity)


def progression(key):
    """I, vi, IV and V."""
    return [Chord((key + step) % 12, quality) for step, quality in ((0, ""), (9, "m"), (5, ""), (7, ""))]


@given(key=keys, lowest=st.integers(45, 70), arpeggio=st.booleans())
def test_a_progression_is_found_in_every_key_and_inversion(key, lowest, arpeggio):
    line = progression(key)
    music = played(line, lowest=lowest, arpeggio=arpeggio)
    assert chords_by_bar(music, BARS) == " | ".join(map(str, line))
    if not arpeggio:
        track = parse_chords(chord_track(music))
        assert (track.chords, track.begins, track.length) == (tuple(line), (0, 2, 4, 6), 8)


def test_an_empty_bar_has_the_chord_before_it_and_what_comes_before_all_music_that_of_all_music():
    assert chords_by_bar(played(progression(0)[:1]), BARS[:4]) == "C | C | C"
    late = Score([4.0] * 3, [6.0] * 3, [57, 60, 64], [80] * 3)
    assert chords_by_bar(late, BARS[:4]) == "Am | Am | Am"
    passing = Score([0.5, 3.5], [0.75, 3.75], [62, 71], [80, 80])  # so short that no chord changes
    assert chords_by_bar(Score.merge([played(progression(0)), passing]), BARS) == "C | Am | F | G"


@given(chord=chords)
def test_a_chord_whose_notes_sound_alike_is_found_with_its_notes(chord):
    sounds = np.isin(np.arange(12), list(chord.classes)).astype(float)
    found = nearest_chord(sounds)
    assert found.classes == chord.classes if len(chord.classes) < 5 else found.classes < chord.classes


@given(classes=st.sets(st.integers(0, 11), min_size=1), chord=chords)
def test_a_chord_of_any_notes_has_a_name_that_says_them(classes, chord):
    assert parse_chord(str(named([each + 60 for each in classes]))).classes == classes
    assert named([chord.root + 36, *(each + 60 for each in chord.classes)]).root == chord.root


def test_a_track_begins_with_its_first_chord_and_takes_strummed_and_repeated_chords_for_one():
    onset = [1.0, 1.02, 1.04, 2.0, 2.0, 2.0, 3.0, 3.0, 3.5]
    offset = [1.9, 1.9, 1.9, 2.9, 2.9, 2.9, 5.0, 5.0, 5.0]
    score = Score(onset, offset, [60, 64, 67, 60, 64, 67, 60, 62, 67], [80] * 9)
    assert chord_track(score) == "0 C, 2 C+D, 2.5 Csus2, 4"
    assert parse_chords(chord_track(Score([0.0], [0.0], [60], [80]))).chords == (parse_chord("C+C"),)


def test_legato_is_no_chord():
    """C major sounds a little into F major; a pedal note under all three belongs to each."""
    notes = (
        [(0, 2.1, p) for p in (60, 64, 67)] + [(2, 4.1, p) for p in (65, 69, 72)] + [(4, 6, p) for p in (67, 71, 74)]
    )
    onset_s, offset_s, pitch = np.array(notes, float).T
    legato = Score(onset_s, offset_s, pitch.astype(int), [80] * 9)
    assert chord_track(legato) == "0 C, 2 F, 4 G, 6"
    pedal = Score.merge([legato, Score([0.0], [6.0], [36], [80])], 0.5)
    assert chord_track(pedal) == "0 C, 2 F, 4 C+D+G+B, 6"
