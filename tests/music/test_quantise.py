"""What a grid of sixteenths does to notes, on literal music; a sixteenth lasts 0.15 s."""

import re
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import score_of

from musictx.errors import TokenError
from musictx.music.grid import grid_to_score, quantise, score_to_grid

score = partial(score_of, unit_s=0.15, quarter_s=0.6)


LOWER = [(0, 8, 64), (0, 8, 60), (0, 8, 48)]  # three voices held for two quarters


@pytest.mark.parametrize(
    ("upper", "kept", "counts"),  # lost, moved, tied
    [
        ([(0, 4, 72), (4, 8, 74)], [(0, 72), (4, 74)], (0, 0, 0)),
        ([(0, 3.9, 72), (4.05, 8, 74)], [(0, 72), (4.05, 74)], (0, 0, 0)),  # as people and ticks are
        # two 32nds at a step before the middle of a pair, and after it
        ([(0, 3, 72), (3, 3.5, 74), (3.5, 4, 76), (4, 8, 72)], [(0, 72), (3, 74), (4, 72)], (1, 0, 0)),
        ([(0, 2, 72), (2, 2.5, 74), (2.5, 4, 76), (4, 8, 72)], [(0, 72), (2.5, 76), (4, 72)], (1, 1, 0)),
        ([(0, 3.5, 72), (3.5, 4, 74), (4, 8, 72)], [(0, 72), (4, 72)], (1, 0, 1)),
        ([(0, 2.5, 72), (2.5, 3, 74), (3, 8, 72)], [(0, 72), (2.5, 74), (3, 72)], (0, 1, 0)),
        ([(0, 4 / 3, 72), (4 / 3, 8 / 3, 74), (8 / 3, 4, 76)], [(0, 72), (4 / 3, 74), (8 / 3, 76)], (0, 2, 0)),
        ([(0, 4, 72), (4, 8, 72)], [(0, 72), (4, 72)], (0, 0, 1)),
        ([(0, 3.7, 72), (4, 5, 72), (6, 8, 72)], [(0, 72), (4, 72), (6, 72)], (0, 0, 1)),
    ],
)
def test_what_becomes_of_a_soprano_over_three_held_voices(upper, kept, counts):
    heard = quantise(score(*LOWER, *upper))
    soprano = heard.score.select(heard.score.pitch > 70)
    assert list(zip(soprano.onset_s / 0.15, soprano.pitch.tolist(), strict=True)) == [
        (pytest.approx(t), p) for t, p in kept
    ]
    assert heard[1:] == counts
    said = re.findall(r"(?:out|moves|hears) (\d+)|its (\d+) notes", heard.remark())
    assert [int(a or b) for a, b in said] == ([3 + len(upper), *filter(None, counts)] if any(counts) else [])
    assert len(grid_to_score(score_to_grid(heard.score))) == len(heard.score) - heard.tied


def test_of_several_ornaments_at_one_step_the_shortest_go():
    upper = [(0, 3.4, 72), (3.5, 3.7, 74), (3.75, 4, 76), (4, 4.45, 77), (4.5, 8, 72)]
    heard = quantise(score(*LOWER, *upper))
    assert (heard.lost, heard.score.select(heard.score.pitch > 70).pitch.tolist()) == (3, [72, 72])
    score_to_grid(heard.score)


def test_a_short_chord_of_five_on_the_grid_is_five_notes():
    chord = quantise(score(*((0, 0.4, pitch) for pitch in (48, 55, 60, 64, 72))))
    assert (len(chord.score), chord.lost) == (5, 0)
    with pytest.raises(TokenError, match="5 notes sounding"):
        score_to_grid(chord.score)


@given(st.lists(st.sets(st.integers(0, 200), max_size=12), min_size=4, max_size=4), st.integers(1, 40))
def test_what_four_voices_sang_fits_the_grid_whatever_their_times(times, speed):
    """Each voice has one note after the other, from any moment to any other."""
    sung = [(a / speed, b / speed, 50 + 10 * v) for v, ends in enumerate(times) for a, b in pairwise(sorted(ends))]
    heard = quantise(score(*sung))
    assert len(heard.score) + heard.lost == len(sung)
    assert len(grid_to_score(score_to_grid(heard.score))) <= len(heard.score) - heard.tied
