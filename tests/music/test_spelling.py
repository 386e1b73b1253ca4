"""The names of notes in written scores: by the music around them, and by the signature."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import notations

from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Key, Note, Part
from musictx.music.notation.read import read_notation
from musictx.music.notation.spelling import key_of, spelled
from musictx.music.notation.write import to_musicxml

MAJOR, MINOR = (0, 2, 4, 5, 7, 9, 11), (0, 2, 3, 5, 7, 8, 10)


def melody(pitches, *keys):
    part = Part("", 0, tuple(Note(24 * n, 24, pitch) for n, pitch in enumerate(pitches)))
    bars = tuple(Bar(at, 4, 4) for at in range(0, 24 * len(pitches), 96))
    return Notation((part,), bars, bars[-1].onset + 96, keys)


def names(notation):
    return ["".join((step, "#" * alter, "b" * -alter)) for step, alter, _ in spelled(notation)[0]]


def scale(sharps, steps):
    """Up and down a scale of a signature, from its tonic around middle C."""
    tonic = 60 + 7 * (sharps + 3 * (steps == MINOR)) % 12
    up = [tonic + step for step in (*steps, 12)]
    return [*up, *up[-2::-1]]


@pytest.mark.parametrize("steps", [MAJOR, MINOR])
@pytest.mark.parametrize("sharps", range(-7, 8))
def test_a_scale_needs_no_accidental_beside_its_signature(sharps, steps):
    notation = melody(scale(sharps, steps), Key(0, sharps))
    text, losses = to_musicxml(notation)
    assert b"<accidental" not in text
    assert (losses, read_notation(text, "musicxml")[0].parts[0].notes) == ({}, notation.parts[0].notes)


def test_each_signature_names_the_notes_under_it():
    both = melody([*scale(-6, MAJOR), 66, *scale(6, MAJOR)], Key(0, -6), Key(24 * 16, 6))
    flats, sharps = ["Gb", "Ab", "Bb", "Cb", "Db", "Eb", "F", "Gb"], ["F#", "G#", "A#", "B", "C#", "D#", "E#", "F#"]
    assert names(both) == [*flats, *flats[-2::-1], "Gb", *sharps, *sharps[-2::-1]]


@given(notations(), st.integers(-7, 7))
def test_each_name_has_its_pitch_and_no_note_is_altered_thrice(notation, sharps):
    for keys in (notation.keys, (Key(0, sharps),)):
        mine = Notation(notation.parts, notation.bars, notation.end, keys)
        for part, found in zip(mine.parts, spelled(mine), strict=True):
            for note, (step, alter, octave) in zip(part.notes, found, strict=True):
                assert note.pitch == 12 * (octave + 1) + dict(zip("CDEFGAB", MAJOR, strict=True))[step] + alter
                assert abs(alter) <= 2


def test_names_follow_the_music():
    sharp, flat = (
        melody([64, 68, 71, 75, 76, 68, 66, 64], Key(0, 4)),
        melody([63, 67, 70, 68, 67, 65, 63, 58], Key(0, -3)),
    )
    assert names(sharp) == ["E", "G#", "B", "D#", "E", "G#", "F#", "E"]
    assert names(flat) == ["Eb", "G", "Bb", "Ab", "G", "F", "Eb", "Bb"]


def test_names_do_not_wait_for_what_partitura_would_import_besides():
    script = (
        "import sys; from musictx.music.notation.notation import *; from musictx.music.notation.spelling import *; "
        "notation = Notation((Part('', 0, (Note(0, 24, 66),)),), (Bar(0, 1, 4),), 24); "
        "print(spelled(notation), {'torch', 'miditok', 'pandas'} & set(sys.modules)); import miditok"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[[('F', 1, 4)]] set()\n"


@pytest.mark.parametrize(
    ("pitches", "sharps"),
    [
        ([67, 67, 64, 62, 67, 69, 65, 67, 62, 64, 67, 60], 0),  # by Krumhansl's profiles two sharps
        ([62, 64, 67, 69, 62, 65, 62, 67, 62, 64, 60, 62], 0),  # and here one
        ([67, 71, 74, 67, 66, 69, 74, 67], 1),
        ([62, 65, 69, 70, 69, 61, 62], -1),  # D minor with its leading note
        ([*range(60, 72)], 0),
        ([], 0),
    ],
)
def test_a_key_that_nobody_says_needs_the_fewest_accidentals(pitches, sharps):
    part = Part("", 0, tuple(Note(24 * n, 24, pitch) for n, pitch in enumerate(pitches)))
    assert key_of(Notation((part,), (Bar(0, 4, 4),), 96)) == Key(0, sharps)
