"""Backpropagation through time: the tanh RNN's gradient vanishes first, and its chain rule is autograd's."""

import torch

from musictx.lessons import run
from musictx.lessons.rnn import CELLS, Net, backward
from musictx.model.cells import build_cells


def test_the_gradient_vanishes_soonest_in_the_tanh_rnn_which_learns_least():
    (tanh, tanh_right), (gru, gru_right), (lstm_, lstm_right) = (
        ([float(cell) for cell in gradient], int(right.rstrip("%"))) for _, _, *gradient, right in run("rnn", 0.1).rows
    )
    for gradient in (tanh, gru, lstm_):
        assert gradient == sorted(gradient, reverse=True)  # further back, less of it
    assert 4 * tanh[-1] < gru[-1] < lstm_[-1] / 1.5
    assert tanh_right + 10 < min(gru_right, lstm_right)


def test_the_chain_rule_by_hand_is_that_of_autograd():
    net = Net(*CELLS["tanh RNN"])
    x = torch.randn(2, 5, 64, requires_grad=True)  # (B, T, C)
    h = net.unroll(x)
    d = torch.randn_like(h)
    torch.testing.assert_close(backward(net, x, d), torch.autograd.grad(h, x, d)[0])


def test_the_lstm_is_that_of_the_toolkit():
    net, cells = Net(*CELLS["LSTM"]), build_cells(64)
    open_forget = torch.zeros(256).index_fill(0, torch.arange(64, 128), 1.0)
    weights = (net.w.weight, net.u.weight, open_forget, torch.zeros(256))
    cells.load_state_dict(dict(zip(cells.state_dict(), weights, strict=True)))
    x = torch.randn(2, 5, 64)  # (B, T, C)
    torch.testing.assert_close(net.unroll(x), cells(x)[0][:, -1])
