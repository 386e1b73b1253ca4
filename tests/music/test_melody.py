"""What is one line, what is its top, and what a grid of sixteenths hears of it."""

import numpy as np
import pytest

from musictx.errors import UserError
from musictx.music.grid import REST
from musictx.music.melody import on_grid, overlaps, top_line, top_part
from musictx.music.score import Score

STEP = 0.125  # of a quarter of half a second


def score(*notes) -> Score:
    onset, length, pitch = np.array(notes, dtype=float).T
    return Score(onset * STEP, (onset + length) * STEP, pitch, np.full(len(pitch), 80), 0.5)


def test_legato_and_a_repeated_note_are_one_line_and_a_chord_is_not():
    assert len(overlaps(score((0, 4.4, 70), (4, 4, 72), (8, 4, 72)))) == 0
    assert overlaps(score((0, 4, 70), (0, 4, 60))).tolist() == [1]
    assert overlaps(score((0, 16, 70), (4, 4, 72), (8, 2, 71))).tolist() == [1, 2]  # below or above a held note
    assert overlaps(score((0, 4, 70), (0.2, 4, 60), (8, 4, 70))).tolist() == [1]  # a chord that is spread a little


def test_the_top_of_several_lines():
    bach = score((0, 4, 72), (0, 8, 60), (4, 4, 74), (6, 2, 55), (8, 4, 71), (8, 4, 67))
    assert top_line(bach).pitch.tolist() == [72, 74, 71]
    held = score((0, 8, 72), (4, 4, 67), (8, 4, 60))  # what is struck under a held note is no melody
    assert top_line(held).pitch.tolist() == [72, 60]
    cut = top_line(score((0, 8, 60), (4, 4, 72)))  # a line that another climbs over ends there
    assert (cut.offset_s / STEP).tolist() == [4, 8]
    assert len(overlaps(top_line(bach))) == 0


def test_the_top_part_is_the_highest_that_sounds_often():
    tune, bass, descant = score((0, 4, 72), (12, 4, 74)), score((0, 16, 48)), score((14, 1, 84))
    chords = score((0, 16, 60), (0, 16, 64), (0, 16, 79))
    assert [top_part(parts) for parts in ([bass, tune], [bass, descant, tune], [chords, tune])] == [1, 2, 1]


def test_a_line_is_heard_from_the_beat_on_in_which_it_begins():
    line = on_grid(score((9, 3, 70), (12, 2, 72), (15, 1, 74)))
    assert line.first == 8
    assert line.pitch.tolist() == [REST, 70, 70, 70, 72, 72, REST, 74]
    assert line.unheard == 0


def test_what_shares_a_sixteenth_is_said_and_the_longest_is_heard():
    line = on_grid(score((0, 0.3, 70), (0.3, 3.7, 72), (4, 4, 71)))
    assert (line.pitch.tolist(), line.unheard) == ([72] * 4 + [71] * 4, 1)
    overlapping = on_grid(score((0, 6, 70), (4, 1, 72)))  # a later note ends the one before, for good
    assert overlapping.pitch.tolist() == [70] * 4 + [72, REST]


def test_a_line_without_end_is_refused():
    with pytest.raises(UserError, match="^2,052 .* 2,048 "):
        on_grid(score((0, 4, 70), (2048, 4, 70)))
