"""Squeeze: gates that hear a whole hymn tell its key, near keys open like channels, and only gates cross time."""

import torch

from musictx.lessons import run
from musictx.lessons.hymns import roll
from musictx.lessons.squeeze import Net


def test_gates_that_hear_the_whole_name_more_degrees_and_know_near_keys():
    rows = {name: [float(cell.rstrip("%")) for cell in cells if cell] for name, *cells in run("squeeze", 0.1).rows}
    right, fifth, six_fifths = rows["squeeze and excitation"]
    assert right > rows["gates without a squeeze"][0] + 4
    assert right > rows["with another hymn's gates"][0] + 10
    assert fifth > 0.3 > -0.3 > six_fifths


def test_a_chord_hears_of_the_others_by_the_squeeze_alone():
    chords = torch.tensor([[[67, 62, 59, 43], [69, 62, 57, 50], [67, 60, 55, 48]]])
    other = chords.clone()
    other[:, 2] += 1
    assert roll(chords, 30, 64).sum(1).tolist() == [[4, 4, 4]]
    for squeeze in (False, True):
        net = Net(squeeze)
        first, second = (net(roll(each, 30, 64))[0][..., :2] for each in (chords, other))
        assert torch.equal(first, second) == (not squeeze)
