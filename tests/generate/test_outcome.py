"""What became of a control is counted: chord by chord for how long notes sound, and over all new notes."""

import pytest

from musictx.generate import outcome as measuring
from musictx.generate.control import Control
from musictx.music.score import Meter, Score

NINE = Meter(2.25)  # seconds a bar


def outcome(control, new, from_s, to_s, meter):
    return measuring.outcome(control, new, from_s, to_s, control.lines_s(meter, from_s)[1])


def notes(*pairs):
    onset_s, pitch = zip(*pairs, strict=True) if pairs else ((), ())
    return Score(onset_s, [at + 5.0 for at in onset_s], pitch, [80] * len(pitch))


def test_a_note_counts_for_each_chord_as_long_as_it_sounds_there():
    new = Score([10.0, 11.0, 13.5, 16.0], [13.0, 12.0, 14.0, 17.0], [60, 62, 61, 67], [80] * 4)
    chords, words = outcome(Control(chords="C | F Gb | G"), new, 10.0, 17.0, Meter())
    assert list(chords) == [
        ("C", 10.0, 12.0, pytest.approx(2 / 3)),
        ("F", 12.0, 13.0, 1.0),  # the C rings on
        ("Gb", 13.0, 14.0, 1.0),  # as it was written
        ("G", 14.0, 16.0, None),
        ("C", 16.0, 17.0, 1.0),  # the line begins again
    ]
    assert words == "82% in chords"


def test_a_bass_that_changes_late_is_seen():
    late = Score([0.0, 2.5], [2.5, 4.0], [48, 53], [80] * 2)
    assert outcome(Control(chords="C | F#"), late, 0.0, 4.0, Meter())[0][1] == ("F#", 2.0, 4.0, 0.0)
    assert outcome(Control(chords="C | F"), late, 0.0, 4.0, Meter())[0][1] == ("F", 2.0, 4.0, 1.0)
    assert outcome(Control(chords="C | Dm"), late, 0.0, 4.0, Meter())[0][1] == ("Dm", 2.0, 4.0, 0.75)


def test_chords_in_seconds_and_in_bars_of_another_length():
    new = Score([0.0, 1.0], [1.0, 2.0], [60, 69], [80] * 2)
    assert outcome(Control(chords="0 C, 1 Am"), new, 0.0, 2.0, NINE)[0] == (("C", 0, 1, 1.0), ("Am", 1, 2, 1.0))
    assert outcome(Control(chords="C | Am", bar_seconds=1.0), new, 0.0, 1.5, NINE)[0][1] == ("Am", 1.0, 1.5, 1.0)


def test_key_and_density():
    new = notes((0.0, 62), (0.5, 63), (1.0, 73), (1.5, 74))
    both = Control(key="D minor", density=4.0)
    assert outcome(both, new, 0.0, 2.0, Meter()) == ((), "75% in D minor, 2.0 notes a second")
    assert outcome(Control(), new, 0.0, 2.0, Meter()) == ((), "")


def test_curves_are_said_by_their_first_and_last_third():
    new = Score([0.0, 1.0, 2.0, 7.0, 8.0], [1.0, 3.0, 3.0, 9.0, 9.0], [60, 60, 61, 72, 74], [40, 40, 40, 90, 80])
    control = Control(density="0 1, 9 2", polyphony="0 1, 9 2", register="0 60, 9 72", loudness="0 40, 9 90")
    said = "1.0 to 0.7 notes a second, 1.3 to 1.0 at once, around C4 to C#5, velocity 40 to 85"
    assert outcome(control, new, 0.0, 9.0, Meter()) == ((), said)
    steady = Control(polyphony=2, register="0 60, 9 60", loudness=80)
    assert outcome(steady, new, 0.0, 9.0, Meter())[1] == "0.8 at once, around F4, velocity 58"
    assert outcome(control, new, 3.0, 6.0, Meter())[1] == "0.0 to 0.0 notes a second, 0.0 to 0.0 at once"


def test_chords_too_short_for_a_picture_count_in_words():
    new = notes((0.0, 60), (1.0, 61))
    assert outcome(Control(chords="0 C, 0.01 C"), new, 0.0, 60.0, Meter()) == ((), "50% in chords")


def test_silence_has_no_shares():
    control = Control(key="C", chords="C", density=3.0, loudness=60)
    assert outcome(control, notes(), 4.0, 6.0, Meter()) == ((("C", 4.0, 6.0, None),), "0.0 notes a second")
    assert outcome(control, notes(), 4.0, 4.0, Meter()) == ((), "")
