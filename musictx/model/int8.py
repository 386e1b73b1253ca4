"""Linear layers with weights of 8 bits, for generating on a CPU: a step there is the time to read all weights once."""

from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from musictx.errors import ConfigError

M = TypeVar("M", bound=nn.Module)
FEW_ROWS = 32  # up to here the kernel that reads int8 is faster than widening the weights first
WIDTH = 32  # the kernel reads whole blocks of a row, past its end where a row has no whole number of them


class Int8Linear(nn.Module):
    """A linear layer whose rows are int8 with one scale each, activations in bfloat16 (weight-only quantisation, as in
    Dettmers et al. 2022, section 2.1, without outliers). Errors come from rounding weights to 1/127 of their row's
    largest and activations to 8 bits of mantissa."""

    weight: Tensor  # (out, in) int8, `in` filled up with zeros to a multiple of `WIDTH`
    scale: Tensor  # (out,) bfloat16

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        full = linear.weight.detach().float()
        scale = full.abs().amax(1).clamp(min=1e-12) / 127
        self.fill = -linear.in_features % WIDTH
        rounded = F.pad((full / scale[:, None]).round(), (0, self.fill))
        self.register_buffer("weight", rounded.to(torch.int8))
        self.register_buffer("scale", scale.bfloat16())
        self.bias = linear.bias

    def forward(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, x.shape[-1]).bfloat16()  # (N, in)
        if self.fill:
            rows = F.pad(rows, (0, self.fill))
        if len(rows) <= FEW_ROWS:
            y = torch._weight_int8pack_mm(rows, self.weight, self.scale)
        else:
            y = F.linear(rows, self.weight.bfloat16() * self.scale[:, None])
        y = y.to(x.dtype).view(*x.shape[:-1], -1)
        return y if self.bias is None else y + self.bias


def to_int8(model: M) -> M:
    """Replaces every linear layer, in place; embeddings, norms and positions stay. Raises ConfigError elsewhere than
    on a CPU, and for a model without linear layers."""
    if any(p.device.type != "cpu" for p in model.parameters()):
        raise ConfigError("weights=int8 is for a CPU: give device=cpu, or weights=bfloat16")
    found = [
        (parent, name) for parent in model.modules() for name, m in parent.named_children() if type(m) is nn.Linear
    ]
    if not found:
        raise ConfigError("weights=int8: this model has no linear layers that it could shrink; give weights=float32")
    for parent, name in found:
        setattr(parent, name, Int8Linear(getattr(parent, name)))
    return model
