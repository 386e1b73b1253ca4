"""A vision Transformer looks where the answer is, and needs what it looks at."""

import torch

from musictx.lessons import run
from musictx.lessons.hymns import roll
from musictx.lessons.vit import OCTAVE, QUARTER, QUARTERS, patches


def test_the_question_decides_where_the_class_token_looks():
    rows = {name: [float(cell.rstrip("%")) for cell in cells] for name, *cells in run("vit", 0.1).rows}
    commonest, right, weight, hidden = rows["last note of the bass"]
    assert right > 70 > 40 > max(hidden, commonest)
    assert weight > 60
    commonest, right, weight, hidden = rows["key"]
    assert right > commonest + 15
    assert weight < 40
    assert hidden > right - 15


def test_a_patch_is_an_octave_and_a_quarter():
    chords = torch.full((1, QUARTERS * QUARTER, 4), 30)
    chords[0, 9] = 55  # sixteenth 1 of quarter 2; key 1 of octave 2
    cut = patches(roll(chords, 30, 60)).unflatten(2, (OCTAVE, QUARTER)).unflatten(1, (-1, QUARTERS))[0]
    assert cut[2:].nonzero().tolist() == [[0, 2, 1, 1]]
