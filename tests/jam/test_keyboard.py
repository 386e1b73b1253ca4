"""From messages to the notes of a phrase."""

import mido
from session_parts import note, pedal, played

from musictx.jam.keyboard import Keyboard


def heard(messages, lo=0, hi=127) -> Keyboard:
    keyboard = Keyboard(lo, hi, 0.5)
    for at_s, message in messages:
        keyboard.hear(at_s, message)
    return keyboard


def notes(keyboard, until_s=100.0):
    score = keyboard.score(until_s)
    return [
        (round(a, 3), round(b, 3), p)
        for a, b, p in zip(score.onset_s.tolist(), score.offset_s.tolist(), score.pitch.tolist(), strict=True)
    ]


def test_a_phrase_begins_with_its_first_note():
    assert notes(heard(played(note(5, 6, 60), note(5.5, 7, 64)))) == [(0, 1, 60), (0.5, 2, 64)]


def test_the_pedal_has_notes_until_it_comes_up_or_they_are_struck_again():
    messages = played(pedal(0.1, 127), note(0, 1, 60), note(1, 2, 64), note(3, 3.5, 64), pedal(4, 63), note(5, 6, 67))
    assert notes(heard(messages)) == [(0, 4, 60), (1, 3, 64), (3, 4, 64), (5, 6, 67)]


def test_what_sounds_still_ends_when_it_is_asked():
    keyboard = heard(played(pedal(0, 127), note(1, 2, 60)) + note(2, 9, 64)[:1])
    assert notes(keyboard, 3.0) == [(0, 2, 60), (1, 2, 64)]
    assert not keyboard.hands_up


def test_a_note_on_without_velocity_and_a_panic_button_let_go():
    keyboard = heard([*note(0, 1, 64)[1:], *note(0, 9, 60)[:1], (1.0, mido.Message("note_on", note=60, velocity=0))])
    assert keyboard.hands_up  # a stray note-off changes nothing
    assert keyboard.free_s == 1
    keyboard = heard([*note(0, 9, 60)[:1], (2.0, mido.Message("control_change", control=123))])
    assert keyboard.hands_up
    assert notes(keyboard) == [(0, 2, 60)]


def test_a_key_on_two_channels_is_held_until_both_are_up():
    other = [(at_s, message.copy(channel=1)) for at_s, message in note(1, 4, 60)]
    assert notes(heard(played(note(0, 2, 60), other))) == [(0, 1, 60), (1, 4, 60)]


def test_drums_and_notes_out_of_range_are_no_part_of_it():
    drum = [(at_s, message.copy(channel=9)) for at_s, message in note(0, 1, 36)]
    keyboard = heard(played(drum, note(1, 2, 10), note(3, 4, 60), note(3, 4, 120)), 21, 108)
    assert notes(keyboard) == [(0, 1, 60)]
    assert keyboard.outside == 2
