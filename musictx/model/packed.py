"""Linear layers in the order in which a CPU's matrix kernels read them: a step of few rows there is the time to read
all weights once, and the kernels of plain layers read those of a single row with one thread."""

from typing import TypeVar

import torch
from torch import Tensor, nn

M = TypeVar("M", bound=nn.Module)
ROWS = 16  # what oneDNN is told to expect: its layouts for 1 row were slower at 1 to 16 rows (docs/log.md)


class PackedLinear(nn.Module):
    """The same linear layer within rounding, not to be trained or saved; its weights have an order of oneDNN's own."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach(), ROWS)
        self.bias = linear.bias

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = torch.ops.mkldnn._linear_pointwise(x, self.packed, self.bias, "none", [], "")
        return y


def pack(model: M) -> M:
    """Packs the linear layers of a model that is to generate on a CPU, in place; elsewhere nothing changes. A layer
    with weights that are no numbers stays as it is, so that it can be named."""
    for parent in list(model.modules()):
        for name, layer in list(parent.named_children()):
            if type(layer) is nn.Linear and _can_be_packed(layer.weight):
                setattr(parent, name, PackedLinear(layer))
    return model


def _can_be_packed(weight: Tensor) -> bool:
    if weight.device.type != "cpu" or not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    known = weight.dtype == torch.float32 or (
        weight.dtype == torch.bfloat16 and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    )
    return known and bool(weight.isfinite().all())
