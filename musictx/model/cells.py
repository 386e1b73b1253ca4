"""LSTM cells by PyTorch's kernels, stacked plainly or as residual layers."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from musictx.model.recall import Past, Recall
from musictx.system import processor

EMULATES = not processor().bfloat16  # asked once: a compiler of models cannot look into it


def build_cells(d_model: int, n_layers: int = 1, dropout: float = 0.0) -> nn.LSTM:
    """Layers of cells in one call of PyTorch's kernel, with dropout between them."""
    return nn.LSTM(d_model, d_model, n_layers, batch_first=True, dropout=dropout if n_layers > 1 else 0.0)


def run_cells(
    cells: nn.Module, x: Tensor, before: tuple[Tensor, ...] | None, weight_dropout: float = 0.0
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The top layer's states (B, T, C) for x (B, T, C), and the hidden state (h, c) of all layers. Training drops a
    share `weight_dropout` of the recurrent weights, the same at all steps."""
    # oneDNN has no cells of bfloat16 where the processor emulates it
    if EMULATES and x.device.type == "cpu" and torch.is_autocast_enabled("cpu"):
        with torch.autocast("cpu", enabled=False):
            return run_cells(cells, x.float(), before, weight_dropout)
    if weight_dropout and cells.training:
        weights = {name: p for name, p in cells.named_parameters() if name.startswith("weight_hh")}
        recurrent_weights = {name: F.dropout(p, weight_dropout) for name, p in weights.items()}
        states, after = functional_call(cells, recurrent_weights, (x, before))
    else:
        states, after = cells(x, before)
    return states, after


def lacks_cells(model: nn.Module) -> str:
    """The reason why this CPU cannot run the model in bfloat16; "" if it can."""
    if not EMULATES or not any(isinstance(m, nn.RNNBase) for m in model.modules()):
        return ""
    return f"PyTorch has no recurrent cells of bfloat16 for this processor ({processor().sets})"


def initialise(cells: nn.Module) -> None:
    """Biases of zero, but open forget gates."""
    for part in (part for part in cells.modules() if isinstance(part, nn.LSTM)):
        for name, p in part.named_parameters():
            if name.startswith("bias"):
                nn.init.zeros_(p)
            if name.startswith("bias_ih"):
                # at 0 the gate would halve the memory, and its gradient, at each step (Jozefowicz et al. 2015)
                nn.init.ones_(p.data[part.hidden_size : 2 * part.hidden_size])


class ResidualCells(nn.Module):
    """Layers x + dropout(cells(norm(x))), then a last norm. `Recall` follows the first layer: there it learned to copy
    in a fraction of the steps."""

    def __init__(self, d_model: int, n_layers: int, dropout: float) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(n_layers))
        self.layers = nn.ModuleList(build_cells(d_model) for _ in range(n_layers))
        self.dropout, self.norm = nn.Dropout(dropout), nn.LayerNorm(d_model)

    def forward(
        self,
        x: Tensor,
        before: tuple[Tensor, ...] | None,
        weight_dropout: float = 0.0,
        recall: Recall | None = None,
        past: Past | None = None,
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """x (B, T, C) -> the normed sum (B, T, C), and the hidden state, as `run_cells` has it."""
        every: list[tuple[Tensor, ...]] = []
        for n, (norm, cells) in enumerate(zip(self.norms, self.layers, strict=True)):
            own = None if before is None else tuple(part[n : n + 1] for part in before)
            read = norm(x)
            states, after = run_cells(cells, read, own, weight_dropout)
            x = x + self.dropout(states)
            if n == 0 and recall is not None:
                last = torch.zeros_like(states[:, 0]) if own is None else own[0][0]
                x = x + self.dropout(recall(states, read, last, past))
            every.append(after)
        return self.norm(x), tuple(torch.cat(parts) for parts in zip(*every, strict=True))
