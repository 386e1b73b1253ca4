"""Keys and chords by their names, and the chords of music in every key."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from musictx.errors import ConfigError
from musictx.music.harmony import (
    QUALITIES,
    Chord,
    chord_on,
    chord_track,
    chords_by_bar,
    exact_chord,
    key_classes,
    nearest_chord,
    parse_chord,
    parse_chords,
    pitch_class,
    spell,
)
from musictx.music.notation.chord_symbols import KINDS, ChordSymbol
from musictx.music.score import Score

BARS = np.arange(0.0, 10.0, 2.0)
keys, chords = st.integers(0, 11), st.builds(Chord, st.integers(0, 11), st.sampled_from(sorted(QUALITIES)))


@given(chord=chords, semitones=st.integers(-12, 12))
def test_a_chord_is_read_as_it_is_written_and_moves_with_its_root(chord, semitones):
    assert parse_chord(str(chord)) == chord
    moved = Chord((chord.root + semitones) % 12, chord.quality)
    assert moved.classes == {(each + semitones) % 12 for each in chord.classes}


@given(line=st.lists(st.lists(chords, min_size=1, max_size=4), min_size=1, max_size=6))
def test_the_chords_of_a_bar_share_it(line):
    text = " | ".join(" ".join(map(str, bar)) for bar in line)
    read = parse_chords(text)
    assert read == parse_chords(f"| {text} |")
    assert read.chords == tuple(chord for bar in line for chord in bar)
    assert [sum(k <= at < k + 1 for at in read.begins) for k in range(len(line))] == [len(bar) for bar in line]
    assert (read.begins[0], read.length, read.in_bars) == (0, len(line), True)


@given(line=st.lists(st.tuples(st.integers(1, 40), chords), min_size=2, max_size=6))
def test_chords_in_seconds_begin_where_they_say_and_the_last_is_as_long_as_the_one_before(line):
    begins = [sum(lasts for lasts, _ in line[:k]) / 10 for k in range(len(line))]
    read = parse_chords(", ".join(f"{at:.1f} {chord}" for at, (_, chord) in zip(begins, line, strict=True)))
    assert read.begins == tuple(round(at, 1) for at in begins)
    assert read.chords == tuple(chord for _, chord in line)
    assert read.length == pytest.approx(begins[-1] + begins[-1] - begins[-2])
    assert not read.in_bars


def test_names_as_musicians_write_them():
    named = {"C": "C, E, G", "F#m7": "C#, E, F#, A", "Bbmaj7": "D, F, A, Bb", "Bbb": "C#, E, A", "Bm7b5": "D, F, A, B"}
    named |= {"E9": "D, E, F#, Ab, B", "Absus4": "C#, Eb, Ab", "G+C#+D": "C#, D, G"}
    assert {name: spell(parse_chord(name).classes) for name in named} == named
    assert parse_chords("0 C, 4 Am, 8.5 G7, 10.5").length == 10.5


def test_a_minor_key_has_the_raised_sixth_and_leading_note_too():
    assert spell(key_classes("D minor")) == "C, C#, D, E, F, G, A, Bb, B"
    assert key_classes("Dm") == key_classes(" D minor ")
    assert spell(key_classes("F#")) == "C#, Eb, F, F#, Ab, Bb, B"
    assert key_classes("Gb major") == key_classes("F#")


@pytest.mark.parametrize("name", ["", "H", "C dorian", "C##"])
def test_a_key_that_does_not_exist_is_refused(name):
    with pytest.raises(ConfigError) as caught:
        key_classes(name)
    assert (caught.value.field, caught.value.got) == ("key", name)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("C | H7", "chords=H7: this chord is not known: give a root"),
        ("C#b", "chords=C#b: this chord is not known"),
        ("C/E", "chords=C/E: the bass of a chord is not steered: give C"),
        ("", "chords=: a bar is empty"),
        ("C | | F", "chords='C | | F': a bar is empty"),
        ("0 C, Am", "chords='0 C, Am': give seconds"),
        ("1 C, 2 Am", "chords='1 C, 2 Am': it begins at 0"),
        ("0 C, 4 Am, 4", "chords=4: the line ends there: give more than 4"),
        ("0 C, 99999", "chords=99999: the line ends there: give more than 0 and at most 7200"),
        ("C+D | C+H", "chords=C+H: this chord is not known"),
        ("0 C, 99999 F", "chords='0 C, 99999 F': it begins"),
        (" ".join(["C"] * 4001), "chords=…: there are 4001 chords: give at most 4000"),
    ],
)
def test_a_line_of_chords_that_says_nothing_clear_is_refused(text, said):
    with pytest.raises(ConfigError) as refused:
        parse_chords(text)
    assert str(refused.value).startswith(said)


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
    assert parse_chord(str(exact_chord([each + 60 for each in classes]))).classes == classes
    assert exact_chord([chord.root + 36, *(each + 60 for each in chord.classes)]).root == chord.root


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


@given(st.sampled_from(["C", "F#", "Bb", "Db"]), st.sampled_from(sorted(KINDS)))
def test_the_name_of_a_symbol_has_its_notes_on_its_root(root, kind):
    symbol = ChordSymbol(0, root, kind)
    assert symbol.classes is not None
    chord = parse_chord(str(chord_on(root, symbol.classes)))
    assert chord.classes == symbol.classes | {chord.root}
    assert chord.root == pitch_class(root[0], root[1:])
