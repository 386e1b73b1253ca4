"""Chords for a tune without any: literal tunes, and tunes moved to other keys."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_scores import SCORE

from musictx.generate.control import Control
from musictx.generate.requests import Accompany, Continue, Fill
from musictx.generate.score_chords import chords_between
from musictx.generate.score_tasks import task_of
from musictx.generate.tune_chords import chords_of_tune, places_of, quarters_of
from musictx.music.notation.chord_symbols import symbol_named
from musictx.music.notation.midi import to_midi
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Note, Part
from musictx.tokenizers.rules import Rules

C, F, G = (0, 4, 7, 12), (5, 9, 12, 9), (7, 11, 14, 11)


def tune(*bars, up=60):
    return [Note(96 * n + 24 * k, 24, up + step) for n, bar in enumerate(bars) for k, step in enumerate(bar)]


def names(notes, lines):
    return [str(chord) for _, chord in chords_of_tune(notes, lines)]


def test_broken_chords_are_found_with_their_places():
    found = chords_of_tune(tune(C, F, G, C), [0, 96, 192, 288, 384])
    assert [at for at, _ in found] == [0, 48, 96, 144, 192, 240, 288, 336]
    assert [str(chord) for _, chord in found][::2] in (["C", "F", "G", "C"], ["C", "F", "G7", "C"])


def test_half_a_bar_may_have_a_chord_of_its_own_where_it_is_long():
    assert [(each.begin, each.end, each.is_line) for each in places_of([0, 24, 120, 168, 241])] == [
        (0, 24, True),
        (24, 72, True),
        (72, 120, False),
        (120, 168, True),
        (168, 241, True),
    ]
    lengths = {"3/4": 72, "6/8": 72, "7/8": 84, "5/4": 120, "4/4": 96, "12/8": 144}  # a half begins on a quarter
    assert {meter: len(places_of([0, length])) for meter, length in lengths.items()} == {
        "3/4": 1,
        "6/8": 1,
        "7/8": 1,
        "5/4": 1,
        "4/4": 2,
        "12/8": 2,
    }


def test_a_held_note_counts_in_each_place_for_as_long_as_it_sounds():
    quarters = quarters_of([Note(24, 96, 61)], places_of([0, 96, 192]))
    assert quarters.sum(1).tolist() == [1.0, 2.0, 1.0, 0.0]
    assert np.flatnonzero(quarters.sum(0)).tolist() == [1]


@given(
    st.lists(st.tuples(*[st.sampled_from([0, 2, 4, 5, 7, 9, 11, 12])] * 4), min_size=2, max_size=6), st.integers(1, 11)
)
def test_a_tune_in_another_key_has_its_chords_there(bars, semitones):
    lines = [96 * n for n in range(len(bars) + 1)]
    here, there = (chords_of_tune(tune(*bars, up=up), lines) for up in (60, 60 + semitones))
    assert [((each.root + semitones) % 12, each.quality) for _, each in here] == [
        (each.root, each.quality) for _, each in there
    ]


def test_rests_keep_the_chord():
    late = [note._replace(onset=note.onset + 192) for note in tune(C, G)]
    found = names([*late, *(note._replace(onset=note.onset + 768) for note in late)], [96 * n for n in range(14)])
    assert found[:4] == [found[4]] * 4
    assert found[8:20] == [found[7]] * 12
    assert found[24:] == [found[23]] * 2


@pytest.mark.parametrize("fuller", [False, True])
def test_symbols_come_first_and_the_rest_is_found(fuller):
    symbol = symbol_named("Dm")
    assert symbol is not None
    parts = [Part("Tune", 73, tuple(tune(C, F, G, C)))]
    parts += [
        Part("Organ", 19, tuple(Note(96 * n, 96, 48 + step) for n, bar in enumerate((C, F, G, C)) for step in bar[:3]))
    ] * fuller
    score = Notation(
        tuple(parts), tuple(Bar(96 * n, 4, 4) for n in range(4)), 384, symbols=(symbol._replace(onset=240),)
    )
    bars = chords_between(score, [0, 96, 192, 288, 384]).split(" | ")
    assert bars[0].split()[0] == "C"
    assert bars[1].split()[0] == "F"
    assert bars[2].split()[-1] == "Dm"
    assert bars[2].split()[0].startswith("G")
    assert bars[3] == "Dm"  # it goes on


def test_hands_follow_the_chords_of_a_bare_tune_unless_a_person_says_else(tmp_path):
    bars = tuple(Bar(96 * n, 4, 4) for n in range(6))
    voice = Part("Tune", 73, tuple(note._replace(onset=note.onset + 192) for note in tune(C, F, G, C)))
    bass = Part("Bass", 33, tuple(Note(96 * n, 96, 36) for n in range(6)))
    (path := tmp_path / "tune.mid").write_bytes(to_midi(Notation((voice,), bars, 576)))
    led = task_of(path, SCORE, Accompany())
    assert (led.request.control.chords or "").split(" | ")[0].split()[0] == "C"  # from the tune's first bar on
    assert any("found for the tune" in each for each in led.remarks)
    assert led.request.control == task_of(path, SCORE, Accompany(control=Control(chords="seed"))).request.control
    narrow = task_of(path, SCORE, Accompany(rules=Rules(lowest=61, highest=61)))  # a note that some chord lacks
    assert any("lead nothing, since the rules leave none of its notes" in each for each in narrow.remarks)
    free = [
        Accompany(control=Control(strength=0.0)),
        Accompany(control=Control(key="C")),
        Accompany(rules=Rules(scale="C major")),
        Accompany(rules=Rules(lowest=61, highest=61)),
        Fill(from_bar=3, to_bar=3),
        Continue(),
    ]
    assert [task_of(path, SCORE, request).request.control.chords for request in free] == [None] * len(free)
    pad = Part("Pad", 89, tuple(Note(96 * n, 96, pitch) for n in range(6) for pitch in (57, 60, 64)))
    path.write_bytes(to_midi(Notation((voice, bass, pad), bars, 576)))
    led = task_of(path, SCORE, Accompany(only="Tune"))
    assert (led.request.control.chords or "").split(" | ")[1].startswith("Am")  # the pad says the harmony
    assert any("follow the chords of the parts" in each for each in led.remarks)


@pytest.mark.parametrize(("at", "bar"), [(11, "C C F F F F F F F F F F F F F F"), (12, "C F F F F F F F"), (48, "C F")])
def test_a_symbol_beside_the_sixteenths_goes_to_the_nearest(at, bar):
    c, f = symbol_named("C"), symbol_named("F")
    assert c is not None
    assert f is not None
    score = Notation((Part("Tune", 73, tuple(tune(C))),), (Bar(0, 4, 4),), 96, symbols=(c, f._replace(onset=at)))
    assert chords_between(score, [0, 96]) == bar
