"""The gates of an LSTM, which PyTorch's kernel never returns: made again from each layer's inputs and states."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from musictx.model.readout import each_reading
from musictx.model.recurrent import Recurrent

GATES = ("input", "forget", "output")
NAMES = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
ORDER = [0, 1, 3]  # of PyTorch's four parts; the third is the new content, no gate


@torch.inference_mode()
def read_gates(model: Recurrent, ids: Tensor) -> Tensor:
    """ids (B, T) -> (layers, B, 3, T, C), each gate of `GATES` between 0 and 1 for each cell, at each id."""
    given: list[tuple[nn.Module, Tensor]] = []
    with each_reading(model, nn.LSTM, lambda cells, inputs: given.append((cells, inputs[0]))):
        model(ids)
    return torch.stack([gates for cells, x in given for gates, _ in layers(cells, x)])


def layers(cells: Any, x: Tensor) -> list[tuple[Tensor, Tensor]]:
    """The gates (B, 3, T, C) and the outputs (B, T, C) of each layer, for the first one's inputs x (B, T, C)."""
    found = []
    for layer in range(cells.num_layers):
        weights = {name: getattr(cells, f"{name}_l{layer}") for name in NAMES}
        one = nn.LSTM(x.shape[2], cells.hidden_size, batch_first=True, device=x.device, dtype=x.dtype)
        one.load_state_dict({f"{name}_l0": weight for name, weight in weights.items()})
        h, _ = one(x)
        before = F.pad(h[:, :-1], (0, 0, 1, 0))  # (B, T, C)
        w_ih, w_hh, b_ih, b_hh = weights.values()
        parts = F.linear(x, w_ih, b_ih) + F.linear(before, w_hh, b_hh)  # (B, T, 4C)
        gates = torch.stack(parts.chunk(4, -1), 1)[:, ORDER].sigmoid()  # (B, 3, T, C)
        found.append((gates, h))
        x = h
    return found
