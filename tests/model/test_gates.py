"""The gates of an LSTM are those that make its states."""

import torch
from proofs import tokens

from musictx.model.gates import layers, read_gates
from musictx.model.recurrent import Recurrent, RecurrentConfig


@torch.inference_mode()
def test_memory_and_gates_make_the_outputs():
    torch.manual_seed(0)
    model = Recurrent(RecurrentConfig(23, d_model=8, n_layers=2, additive=True)).double().eval()
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
