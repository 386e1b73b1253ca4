"""Scores read and written again: two voices on a staff, and triplets wherever they begin."""

from dataclasses import replace
from fractions import Fraction
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from music21 import converter

from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Note, Part
from musictx.music.notation.read import read_notation
from musictx.music.notation.write import to_musicxml

BARS = (Bar(0, 4, 4), Bar(96, 4, 4))
SOPRANO = (Note(0, 48, 67), Note(48, 24, 69), Note(72, 24, 71), Note(96, 96, 60))
ALTO = (Note(0, 24, 64), Note(24, 24, 62), Note(48, 24, 65), Note(72, 24, 67), Note(96, 24, 64), Note(120, 72, 65))


def staff(*lines: tuple[Note, ...]) -> Part:
    voices: dict[Note, tuple[int, ...]] = {}
    for n, line in enumerate(lines, 1):
        for note in line:
            voices[note] = (*voices.get(note, ()), n)
    return Part("Women", 52, tuple(sorted(voices)), voices=voices)


def written(*parts: Part, bars: tuple[Bar, ...] = BARS) -> list[list[Any]]:
    """The notes and rests of music21's voices of each bar."""
    text, losses = to_musicxml(Notation(parts, bars, bars[-1].onset + bars[-1].full))
    assert not losses
    measures = converter.parseData(text).parts[0].getElementsByClass("Measure")
    return [[each for voice in measure.voices or [measure] for each in voice.notesAndRests] for measure in measures]


def heads(*parts: Part) -> list[str]:
    """Pitches, a dot for a rest, with their lengths in quarters."""
    return [
        " ".join("".join(p.nameWithOctave for p in each.pitches) + f":{float(each.quarterLength):g}" for each in bar)
        for bar in written(*parts)
    ]


def test_soprano_and_alto_of_a_staff_come_back():
    """Also where the alto is above, and both begin and end together."""
    bars = ["G4:2 A4:1 B4:1 E4:1 D4:1 F4:1 G4:1", "C4:4 E4:1 F4:3"]
    part = staff(SOPRANO, ALTO)
    assert heads(part) == bars
    again = read_notation(to_musicxml(Notation((part,), BARS, 192))[0], "musicxml")[0].parts[0]
    assert (again.notes, again.voices) == (part.notes, part.voices)
    assert heads(again) == bars
    more = replace(part, notes=tuple(sorted((*part.notes, Note(144, 48, 81)))))  # a new note: that bar has no voices
    assert heads(more)[0] == bars[0]


def test_voices_go_with_their_notes():
    notation = Notation((staff(SOPRANO, ALTO),), BARS, 192)
    first = notation.first_bars(1).parts[0]
    assert first.voices == {note: voice for note, voice in notation.parts[0].voices.items() if note.onset < 96}
    later = notation.followed_by(notation, 192).parts[1]
    assert {note._replace(onset=note.onset - 192): each for note, each in later.voices.items()} == (
        notation.parts[0].voices
    )
    plain = replace(notation, parts=(replace(notation.parts[0], voices={}),))
    assert plain.with_texts(notation, 96, 192)[0].parts[0].voices == notation.parts[0].voices
    assert staff(SOPRANO, ALTO).until(120).voices[Note(96, 24, 60)] == (1,)


def test_a_unison_is_in_both_voices_and_one_note():
    part = staff((Note(0, 96, 67), Note(96, 96, 67)), (Note(0, 96, 64), Note(96, 96, 67)))
    assert heads(part) == ["G4:4 E4:4", "G4:4 G4:4"]
    back, losses = read_notation(to_musicxml(Notation((part,), BARS, 192))[0], "musicxml")
    assert (back.parts[0].notes, back.parts[0].voices, losses) == (part.notes, part.voices, {"shared": 1})


@pytest.mark.parametrize(("kind", "text"), [
    ("humdrum", """**kern
*M4/4
*^
2g\t4e
.\t4d
4a\t4f
4b\t4g
*v\t*v
=
1c
*-
"""),
    ("abc", """X:1
L:1/4
M:4/4
K:C
G2AB & EDFG | C4 |
"""),
])  # fmt: skip
def test_voices_of_other_formats_come_back(kind, text):
    assert heads(*read_notation(text.encode(), kind)[0].parts) == ["G4:2 A4:1 B4:1 E4:1 D4:1 F4:1 G4:1", "C4:4"]


@st.composite
def lines(draw: st.DrawFn) -> tuple[Note, ...]:
    """Notes and rests of a voice, one after the other, over two bars."""
    found, at = list[Note](), 0
    while at < 192:
        length = min(draw(st.sampled_from([8, 12, 16, 24, 36, 48, 72, 96, 120])), 192 - at)
        if draw(st.integers(0, 4)):
            found.append(Note(at, length, draw(st.integers(60, 66))))
        at += length
    return tuple(found)


@given(st.lists(lines(), min_size=2, max_size=6))
@settings(max_examples=25)
def test_no_note_of_a_voice_is_lost_or_gets_another_length(voices):
    """Also of voices that cross and share notes; of more than a staff can have, no more are cut than without voices."""
    if not any(voices):
        return
    is_many = len(voices) > 4
    apart = [tuple(x._replace(pitch=x.pitch + 7 * n * is_many) for x in line) for n, line in enumerate(voices)]
    part = staff(*apart)
    notations = [Notation((each,), BARS, 192) for each in (part, replace(part, voices={}))]
    (text, losses), (plain, cut) = map(to_musicxml, notations)
    back, alike = (read_notation(each, "musicxml")[0].parts[0].notes for each in (text, plain))
    assert losses == cut if is_many else not losses
    assert back == (alike if is_many else part.notes)


@pytest.mark.parametrize("numerator", [3, 4])
@pytest.mark.parametrize("at", [0, 12, 24])
@pytest.mark.parametrize(
    "lengths", [(16, 16, 16), (32, 16), (8, 32, 8), (8, 8, 16, 8, 8), (8, 8, 8), (16, 8), (4, 4, 4)]
)
@pytest.mark.parametrize("silent", [-1, 1])
def test_a_note_of_a_triplet_is_one_head_wherever_it_begins(numerator, at, lengths, silent):
    bars = (Bar(0, numerator, 4),)
    onsets = accumulate(lengths, initial=at)
    triplet = [Note(onset, length, 72) for onset, length in zip(onsets, lengths, strict=False)]
    triplet = [note for n, note in enumerate(triplet) if n != silent]
    end, full = at + sum(lengths), 24 * numerator
    beside = [Note(begin, until - begin, 60) for begin, until in ((0, at), (end, full)) if until > begin]
    (bar,) = written(Part("", 73, tuple(sorted((*triplet, *beside)))), bars=bars)
    inside = [each for each in bar if each.duration.tuplets]
    assert [Fraction(each.quarterLength) * 24 for each in inside] == [*lengths]
    assert not any(each.tie for each in inside)
    assert [each.duration.tuplets[0].type for each in inside] == ["start", *[None] * (len(lengths) - 2), "stop"]


def test_new_notes_of_two_singers_are_two_lines_and_those_of_a_pianist_chords():
    both = replace(staff(SOPRANO, ALTO), voices={})
    assert heads(both) == ["G4:2 A4:1 B4:1 E4:1 D4:1 F4:1 G4:1", "E4:1 F4:3 C4:4"]
    tied = Note(48, 72, 62), Note(0, 96, 67), Note(0, 48, 65), Note(96, 48, 69), Note(144, 48, 67), Note(120, 72, 60)
    assert heads(Part("Women", 52, tuple(sorted(tied)))) == ["G4:4 F4:2 D4:2", "A4:2 G4:2 D4:1 C4:3"]
    triads = tuple(Note(24 * n, 24, pitch) for n in range(4) for pitch in (60, 64, 67))
    assert heads(Part("Piano", 0, (*triads, Note(96, 96, 60))))[0] == "C4E4G4:1 C4E4G4:1 C4E4G4:1 C4E4G4:1"


def hands(*notes: Note) -> Part:
    return Part("Piano", 0, tuple(sorted(notes)))


def lines_of(part: Part) -> list[str]:
    """Each voice of the first bar: pitches with + for a tie onwards, a dot for a rest and _ for a hidden one."""
    text, losses = to_musicxml(Notation((part,), (Bar(0, 4, 4),), 96))
    assert not losses
    bar = converter.parseData(text).parts[0].getElementsByClass("Measure")[0]
    return [
        " ".join(f"{word(each)}:{float(each.quarterLength):g}" for each in v.notesAndRests) for v in bar.voices or [bar]
    ]


def word(each: Any) -> str:
    if each.isRest:
        return "_" if each.style.hideObjectOnPrint else "."
    those = each.notes if each.isChord else [each]
    return "".join(f"{n.nameWithOctave}{'+' * (n.tie is not None and n.tie.type != 'stop')}" for n in those)


def test_of_chords_that_begin_together_the_higher_has_the_upper_voice():
    """Also where the other voice was nearer before."""
    upper = [Note(0, 24, 76), Note(24, 24, 60), Note(48, 36, 76), Note(84, 12, 79)]
    lower = [Note(0, 48, 57), Note(0, 48, 53), Note(48, 24, 62)]
    assert lines_of(hands(*upper, *lower)) == ["E5:1 C4:1 E5:1.5 G5:0.5", "F3A3:2 D4:1 _:1"]


def test_a_voice_shows_its_rests_where_it_is_the_fullest():
    chord = hands(Note(0, 72, 72), Note(24, 24, 60), Note(24, 24, 64))
    assert lines_of(chord) == ["C5:3 .:1", "_:1 C4E4:1 _:2"]
    assert lines_of(hands(Note(0, 72, 72), Note(24, 24, 60))) == ["C5:3 .:1", ".:1 C4:1 .:2"]  # two singers


@pytest.mark.parametrize(
    ("notes", "voices"),
    [
        (  # one tie makes two of three
            [Note(0, 12, 74), Note(12, 12, 71), Note(24, 72, 74), Note(0, 24, 67), Note(0, 96, 62)],
            ["D5G4+:0.5 B4G4:0.5 D5:3", "D4:4"],
        ),
        (  # a broken chord that is held
            [Note(12 * n, 96 - 12 * n, (60, 64, 67, 72)[n]) for n in range(4)],
            ["_:1 G4+:0.5 C5+G4+:0.5 C5G4:2", "C4+:0.5 E4+C4+:0.5 E4C4:3"],
        ),
        (  # lines that would have many ties
            [note for n in range(4) for note in (Note(24 * n, 24, 60), Note(24 * n, 12, 67), Note(24 * n + 12, 12, 69))]
            + [Note(18 * n, 18, 72 + n) for n in range(5)],
            [
                "C5:0.75 C#5:0.75 D5:0.75 E-5:0.75 E5:0.75 _:0.25",
                " ".join(["G4:0.5 A4:0.5"] * 4),
                "C4:1 C4:1 C4:1 C4:1",
            ],
        ),
    ],
)
def test_voices_become_two_where_few_ties_do_it(notes, voices):
    found = lines_of(hands(*notes))
    back = read_notation(to_musicxml(Notation((hands(*notes),), (Bar(0, 4, 4),), 96))[0], "musicxml")[0]
    assert back.parts[0].notes == tuple(sorted(notes))
    assert found == voices
