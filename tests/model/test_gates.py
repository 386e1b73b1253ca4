"""The gates of an LSTM are those that make its states."""

import torch
from proofs import tokens
from torch import nn

from musictx.model.cells import ResidualCells
from musictx.model.gates import layers, read_gates
from musictx.model.recurrent import Recurrent, RecurrentConfig


@torch.inference_mode()
def test_gates_of_residual_layers_are_of_what_each_reads():
    torch.manual_seed(0)
    model = Recurrent(RecurrentConfig(23, d_model=8, n_layers=2, residual=True)).double().eval()
    ids, cells = tokens(2, 9), model.cells
    assert isinstance(cells, ResidualCells)
    x, found = model.embed(ids), read_gates(model, ids)
    assert found.shape == (2, 2, 3, 9, 8)
    for layer in range(2):
        ((gates, h),) = layers(cells.layers[layer], cells.norms[layer](x))
        torch.testing.assert_close(found[layer], gates)
        x = x + h


@torch.inference_mode()
def test_memory_and_gates_make_the_outputs():
    torch.manual_seed(0)
    model = Recurrent(RecurrentConfig(23, d_model=8, n_layers=2, additive=True)).double().eval()
    assert isinstance(model.cells, nn.LSTM)
    ids = tokens(2, 9)
    x, found = model.embed(ids), read_gates(model, ids)
    assert found.shape == (2, 2, 3, 9, 8)
    for layer, (gates, h) in enumerate(layers(model.cells, x)):
        torch.testing.assert_close(found[layer], gates)
        w_ih, w_hh, b_ih, b_hh = model.cells.all_weights[layer]
        memory = last = torch.zeros(2, 8).double()
        for t in range(9):
            opened, kept, shown = gates[:, :, t].unbind(1)
            content = (x[:, t] @ w_ih.T + b_ih + last @ w_hh.T + b_hh)[:, 16:24].tanh()
            memory = kept * memory + opened * content
            last = h[:, t]
            torch.testing.assert_close(last, shown * memory.tanh())
        x = h
    torch.testing.assert_close(x, model.cells(model.embed(ids))[0])
