"""Teacher forcing: the less truth in training, the less is lost without it, and the more is lost with it."""

import torch

from musictx.lessons import run
from musictx.lessons.teacher_forcing import Bass, music


def test_a_net_that_was_told_less_loses_less_on_its_own_and_knows_less_after_the_truth():
    (always, often, rarely) = ([float(x) for x in row[:4]] for row in run("teacher_forcing", 0.1).rows)
    assert [row[0] for row in (always, often, rarely)] == [1.0, 0.7, 0.3]
    assert always[3] > often[3] + 0.05
    assert often[3] > rarely[3] + 0.05  # the gap
    assert rarely[1] > always[1] + 0.05  # after the truth
    assert rarely[2] < always[2] - 0.1  # after its own notes


def test_on_its_own_no_true_note_but_the_first_is_heard_and_with_the_truth_no_own_one():
    net, (x, y) = Bass(), music(held_out=True)
    other = torch.cat([y[:, :1], y[:, 1:].flip(0)], 1)
    with torch.no_grad():
        assert torch.equal(net(x, y, p=0.0, best=True)[0], net(x, other, p=0.0, best=True)[0])
        assert torch.equal(net(x, y, p=1.0)[0], net(x, y, p=1.0)[0])
        assert not torch.equal(net(x, y, p=1.0)[0], net(x, other, p=1.0)[0])
