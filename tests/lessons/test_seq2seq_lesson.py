"""Encoder and decoder: one vector is wrong more often the longer the line, and attention is wrong less often."""

import torch

from musictx.lessons import run
from musictx.lessons.hymns import thirds
from musictx.lessons.seq2seq import Harmoniser, write


def test_one_vector_loses_more_of_a_longer_line_and_more_than_attention():
    rows = run("seq2seq", 0.1).rows
    fixed, attention = ([int(row[column].rstrip("%")) for row in rows[:3]] for column in (2, 3))
    assert fixed[0] + 5 < fixed[2]
    assert attention[0] + 5 < fixed[0]
    assert attention[1] < fixed[1]


def test_a_third_below_is_in_the_key():
    x, y = thirds(8, held_out=True)  # the first of them is in E flat
    assert x[0].tolist() == [67, 70, 70, 70, 67, 67, 67, 67]
    assert y[0].tolist() == [63, 67, 67, 67, 63, 63, 63, 63]


def test_it_writes_after_its_own_notes():
    net, x = Harmoniser(attends=True), torch.randint(0, 44, (3, 6))
    y = write(net, x)
    assert (net(x, y).argmax(-1) == y).all()


def test_the_weights_of_attention_add_up_to_one_and_no_note_hears_itself():
    net = Harmoniser(attends=True)
    weights = net.weights(torch.randn(2, 5, 64), torch.randn(2, 7, 64))
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 5))
    x, y = torch.randint(0, 44, (2, 6)), torch.randint(0, 44, (2, 6))
    later = torch.cat([y[:, :3], (y[:, 3:] + 1) % 44], 1)
    torch.testing.assert_close(net(x, y)[:, :4], net(x, later)[:, :4])  # the fourth is not heard before the fifth
