"""Linear layers in the order in which a CPU's matrix kernels read them: a step of few rows there is the time to read
all weights once, and the kernels of plain layers read those of a single row with one thread."""

from typing import TypeVar

import torch
from torch import Tensor, nn

M = TypeVar("M", bound=nn.Module)
ROWS = 16  # what oneDNN is told to expect: its order for 1 row was slower at 1 to 16 rows (docs/log.md)


class PackedLinear(nn.Module):
    """The same linear layer within rounding, not to be trained or saved; its weights have an order of oneDNN's own.
    With `dtype` bfloat16 the weights, what they are multiplied with and the results are rounded to it, sums are not."""

    def __init__(self, linear: nn.Linear, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype
        self.packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach().to(dtype), ROWS)
        self.bias = None if linear.bias is None else linear.bias.detach().to(dtype)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = torch.ops.mkldnn._linear_pointwise(x.to(self.dtype), self.packed, self.bias, "none", [], "")
        return y.to(x.dtype)


def can_pack(dtype: torch.dtype) -> bool:
    """Whether this machine's CPU has kernels for packed weights of that type."""
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    return dtype == torch.float32 or (dtype == torch.bfloat16 and torch.ops.mkldnn._is_mkldnn_bf16_supported())


def pack(model: M, dtype: torch.dtype = torch.float32) -> M:
    """Packs the float32 linear layers of a model that is to generate on a CPU, in place; where that cannot be, nothing
    changes. A layer with weights that are no numbers stays as it is, so that it can be named."""
    if not can_pack(dtype):
        return model
    for parent in list(model.modules()):
        for name, layer in list(parent.named_children()):
            if type(layer) is nn.Linear and _is_plain(layer.weight):
                setattr(parent, name, PackedLinear(layer, dtype))
    return model


def _is_plain(weight: Tensor) -> bool:
    return weight.device.type == "cpu" and weight.dtype == torch.float32 and bool(weight.isfinite().all())
