"""Keys and chords by their names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musictx.errors import ConfigError
from musictx.music.harmony import QUALITIES, Chord, key_classes, parse_chord, parse_chords, spell

chords = st.builds(Chord, st.integers(0, 11), st.sampled_from(sorted(QUALITIES)))


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
        (" ".join(["C"] * 1001), "chords=…: there are 1001 chords: give at most 1000"),
    ],
)
def test_a_line_of_chords_that_says_nothing_clear_is_refused(text, said):
    with pytest.raises(ConfigError) as refused:
        parse_chords(text)
    assert str(refused.value).startswith(said)
