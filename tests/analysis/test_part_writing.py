from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from musictx.analysis.part_writing import RULES, beats_of, findings
from musictx.music.grid import REST, Grid

C, F, G = (72, 67, 64, 48), (72, 69, 65, 53), (71, 67, 62, 55)  # soprano, alto, tenor, bass

# of each rule: music that breaks it, a beat a chord; where; and music that does not
EXAMPLES: dict[str, tuple[list[tuple[int, ...]], tuple[int, str], list[tuple[int, ...]]]] = {
    "parallel fifths": ([(67, 64, 60, 48), (69, 64, 60, 50)], (4, "S-B"), [(67, 64, 60, 48), (69, 64, 60, 48)]),
    "parallel octaves": ([(72, 67, 64, 48), (74, 67, 64, 50)], (4, "S-B"), [(72, 67, 64, 48), (72, 67, 64, 48)]),
    "contrary fifths and octaves": (
        [(67, 64, 60, 48), (60, 60, 57, 53)],
        (4, "S-B"),
        [(67, 64, 60, 48), (65, 62, 57, 50)],
    ),
    "hidden fifths and octaves": (
        [(64, 60, 55, 48), (72, 65, 57, 53)],
        (4, "S-B"),
        [(71, 67, 62, 43), (72, 67, 64, 48)],  # the soprano moves by step
    ),
    "crossing": ([C, (72, 60, 64, 48), (72, 60, 64, 48)], (4, "A-T"), [C, (72, 64, 64, 48)]),
    "overlap": (
        [(67, 60, 55, 48), (72, 69, 57, 50)],
        (4, "S-A"),
        [(67, 60, 55, 48), (72, 67, 57, 50)],  # up to the pitch that the soprano leaves, not beyond
    ),
    "spacing": ([(79, 65, 60, 48), (79, 65, 60, 48)], (0, "S-A"), [(77, 65, 60, 41)]),
    "range": ([(84, 65, 60, 48), (84, 65, 60, 48)], (0, "S"), [(81, 65, 60, 48)]),
    "wide leap": ([(62, 62, 57, 50), (72, 62, 57, 50)], (4, "S"), [(62, 62, 57, 50), (74, 62, 57, 50)]),
    "tritone leap": ([(65, 60, 57, 53), (71, 60, 57, 53)], (4, "S"), [(65, 60, 57, 53), (72, 60, 57, 53)]),
    "leap not recovered": (
        [(60, 60, 55, 48), (69, 60, 55, 48), (71, 60, 55, 48)],
        (8, "S"),
        [(60, 60, 55, 48), (69, 60, 55, 48), (67, 60, 55, 48)],
    ),
    "one direction": ([(67, 64, 60, 48), (69, 65, 62, 53)], (4, "SATB"), [(67, 64, 60, 48), (69, 65, 62, 48)]),
    "doubled leading note": ([C, F, (71, 62, 59, 55), C], (8, "S-T"), [C, F, G, C]),
    "leading note does not rise": ([C, F, G, (67, 64, 60, 48)], (12, "S"), [C, F, G, C]),
    "seventh does not fall": ([(77, 71, 62, 55), (79, 72, 64, 48)], (4, "S"), [(77, 71, 62, 55), (76, 72, 67, 48)]),
    "no third at the end": ([C, (72, 67, 60, 48)], (7, "SATB"), [(72, 67, 60, 48), C]),
}
NAMES = [rule.name for rule in RULES]


def beats(chords: Sequence[tuple[int, ...]]) -> Grid:
    return np.repeat(np.array(chords), 4, axis=0).astype(np.int16)


@pytest.mark.parametrize("name", NAMES)  # so every rule has an example
def test_music_that_breaks_a_rule_and_music_that_does_not(name):
    broken, finding, kept = EXAMPLES[name]
    assert findings(beats(broken))[name] == [finding]
    assert findings(beats(kept))[name] == []


@given(
    arrays(np.int16, st.tuples(st.integers(0, 24), st.just(4)), elements=st.just(REST) | st.integers(48, 72)),
    st.integers(-20, 20),
)
def test_all_rules_but_the_range_are_the_same_in_every_key(grid, semitones):
    moved = np.where(grid == REST, REST, grid + semitones).astype(np.int16)
    here, there = findings(grid), findings(moved)
    assert {name: here[name] for name in NAMES if name != "range"} == {
        name: there[name] for name in NAMES if name != "range"
    }


@pytest.mark.parametrize("grid", [beats([])[:0].reshape(0, 4), np.full((8, 4), REST, np.int16), beats([C])])
def test_no_music_silence_and_one_chord_break_nothing(grid):
    assert not any(findings(grid).values())


def test_a_rest_ends_a_line():
    silence = (REST,) * 4
    for name in ("parallel fifths", "tritone leap", "one direction", "seventh does not fall"):
        first, second = EXAMPLES[name][0]
        assert findings(beats([first, silence, second]))[name] == [], name


def test_a_leading_note_inside_may_fall_and_one_in_the_bass_may_not():
    inner = [C, F, (74, 71, 67, 55), (72, 67, 64, 48)]
    bass = [C, F, (74, 67, 62, 59), (72, 67, 64, 55)]
    name = "leading note does not rise"
    assert findings(beats(inner))[name] == []
    assert findings(beats(bass))[name] == [(12, "B")]


def test_a_seventh_that_stays_while_the_chord_changes_is_free():
    staying = [(77, 71, 62, 55), (77, 69, 60, 53), (79, 69, 60, 53)]
    assert findings(beats(staying))["seventh does not fall"] == []


def test_beats_are_those_that_sound():
    assert beats_of(np.concatenate([beats([C, (REST,) * 4]), beats([C])[:2]])) == 1.5


def test_detached_notes_are_a_line_and_a_long_rest_ends_it():
    def fifths(length, apart):
        grid = np.full((6 * apart, 4), REST, dtype=np.int16)
        for k in range(6):
            grid[k * apart : k * apart + length] = np.array([67, 64, 60, 60]) + 2 * k
        return len(findings(grid)["parallel fifths"])

    assert fifths(4, 4) == fifths(3, 4) == fifths(2, 4) > 0
    assert fifths(4, 8) == 0


def test_a_voice_that_is_held_longest_is_no_chord_without_a_third():
    grid = np.array([[72, 67, 64, 48]] * 8 + [[REST, REST, REST, 48]] * 2, dtype=np.int16)
    assert findings(grid)["no third at the end"] == []
