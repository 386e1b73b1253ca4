"""AdamW for everything, or Muon for the matrices inside the blocks and AdamW for the rest; and the learning rate.

It warms up, then falls by a cosine to a tenth, or stays and then falls linearly to zero.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from musictx.training.muon import Muon

OPTIMIZERS = ("adamw", "muon")


class Joint(Optimizer):
    """Several optimizers as one: Lightning's loop, clipping and schedule take a single optimizer."""

    def __init__(self, *parts: Optimizer) -> None:
        self.parts = parts
        # the groups themselves, not copies: a schedule that sets `lr` here sets it for the part
        super().__init__([group for part in parts for group in part.param_groups], {})

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = closure() if closure is not None else None
        for part in self.parts:
            part.step()
        return loss

    def state_dict(self) -> dict[str, Any]:
        return {"parts": [part.state_dict() for part in self.parts]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        for part, state in zip(self.parts, state_dict["parts"], strict=True):
            part.load_state_dict(state)
        self.param_groups = [group for part in self.parts for group in part.param_groups]


def decayed(model: nn.Module) -> list[nn.Parameter]:
    """The parameters that weight decay acts on: the matrices of linear layers and recurrent cells. Not
    embeddings, even where they are the head too, nor norms, biases, tables of distances or frequencies. A pull towards
    zero would give all distances one wavelength: it left 0.41 to 0.47 of the frequencies."""
    layers = [m for m in model.modules() if isinstance(m, nn.Linear | nn.RNNBase)]
    return [p for m in layers for p in m.parameters() if p.dim() >= 2 and p.requires_grad]


def build_optimizer(model: nn.Module, name: str, lr: float, weight_decay: float) -> Optimizer:
    """`muon`: matrices of linear layers and cells by Muon at AdamW's scale of updates, so that one learning rate serves
    both. The gates of a cell are one matrix."""
    matrices = decayed(model)
    taken = {id(p) for p in matrices}
    rest = [p for p in model.parameters() if p.requires_grad and id(p) not in taken]
    decaying = {"params": [] if name == "muon" else matrices, "weight_decay": weight_decay}
    groups = [decaying, {"params": rest, "weight_decay": 0.0}]
    adamw = torch.optim.AdamW(groups, lr=lr, betas=(0.9, 0.98), fused=True)
    # else Lightning refuses to clip under mixed precision: gradients must be unscaled before the step, not in it
    adamw._step_supports_amp_scaling = False
    if name != "muon":
        return adamw
    return Joint(Muon(matrices, lr, weight_decay), adamw)


SCHEDULES = ("cosine", "hold")


def warmup_cosine(step: int, warmup_steps: int, total_steps: int) -> float:
    """Factor on the peak learning rate at an optimizer step counted from 0: 1 when warm-up ends, 0.1 at the end."""
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    done = min((step - warmup_steps) / max(total_steps - warmup_steps, 1), 1.0)
    return 0.1 + 0.45 * (1 + math.cos(math.pi * done))


def warmup_hold(step: int, warmup_steps: int, total_steps: int, decay_share: float) -> float:
    """The same factor. 1 from the end of warm-up until the last `decay_share` of all steps, in which it falls linearly
    to zero (Hägele et al. 2024, section 3). With a share of 0 a run can end, or branch off, at any step."""
    rise = (step + 1) / warmup_steps if step < warmup_steps else 1.0
    decay_steps = decay_share * total_steps
    left = (total_steps - step) / decay_steps if decay_steps else 1.0
    return max(min(rise, left, 1.0), 0.0)
