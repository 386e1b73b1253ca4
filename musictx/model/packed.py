"""Linear layers in the order in which a CPU's matrix kernels read them: a step of few rows there is the time to read
all weights once, and the kernels of plain layers read those of a single row with one thread."""

from typing import Any, NoReturn, TypeVar

import torch
from torch import Tensor, nn

from musictx.model.transformer import Block

M = TypeVar("M", bound=nn.Module)
ROWS = 16  # what oneDNN is told to expect: its order for 1 row was slower at 1 to 16 rows (docs/log.md)


class PackedLinear(nn.Module):
    """The same linear layer within rounding; its weights have an order of oneDNN's own, which cannot be changed, saved
    or sent elsewhere. With `dtype` bfloat16 the weights, what they are multiplied with and the results are rounded to
    it, sums are not. With `gelu` that follows in the same kernel. Raises RuntimeError when gradients or its state are
    asked for."""

    def __init__(self, linear: nn.Linear, dtype: torch.dtype, gelu: bool = False) -> None:
        super().__init__()
        self.dtype, self.then = dtype, ("gelu", "none") if gelu else ("none", "")  # its kind of GELU is the exact one
        self.packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach().to(dtype), ROWS)
        self.bias = None if linear.bias is None else linear.bias.detach().to(dtype)

    def forward(self, x: Tensor) -> Tensor:
        if x.requires_grad and torch.is_grad_enabled():
            self._refuse("trained")
        then, kind = self.then
        y: Tensor = torch.ops.mkldnn._linear_pointwise(x.to(self.dtype), self.packed, self.bias, then, [], kind)
        return y.to(x.dtype)

    def __deepcopy__(self, memo: Any) -> "PackedLinear":
        copied = PackedLinear.__new__(PackedLinear)
        nn.Module.__init__(copied)
        for name in ("dtype", "then", "packed", "bias"):  # nothing ever writes to them
            setattr(copied, name, getattr(self, name))
        return copied

    def _save_to_state_dict(self, *args: Any) -> None:
        self._refuse("saved")

    def _refuse(self, what: str) -> NoReturn:
        raise RuntimeError(f"a model that was packed for generating cannot be {what}: open its bundle again")


def can_pack(dtype: torch.dtype) -> bool:
    """Whether this PyTorch and this CPU have kernels for packed weights of that type."""
    if not torch.backends.mkldnn.is_available() or not hasattr(torch.ops.mkldnn, "_linear_pointwise"):  # type: ignore[no-untyped-call]
        return False
    return dtype == torch.float32 or (dtype == torch.bfloat16 and torch.ops.mkldnn._is_mkldnn_bf16_supported())


def pack(model: M, dtype: torch.dtype = torch.float32) -> M:
    """Packs the float32 linear layers of a model that is to generate on a CPU, in place; where that cannot be, nothing
    changes. A layer that holds what is no number stays as it is, so that it can be named. A GELU
    goes into the kernel of its block's `up`."""
    if not can_pack(dtype):
        return model
    for parent in list(model.modules()):
        for name, layer in list(parent.named_children()):
            if type(layer) is nn.Linear and all(_is_plain(p) for p in layer.parameters()):
                gelu = isinstance(parent, Block) and name == "up" and isinstance(parent.activate, nn.GELU)
                setattr(parent, name, PackedLinear(layer, dtype, gelu))
                if gelu:
                    parent.activate = nn.Identity()
    return model


def _is_plain(p: Tensor) -> bool:
    return p.device.type == "cpu" and p.dtype == torch.float32 and bool(p.isfinite().all())
