"""Weights for generating: in full, in 8 bits, or in the order of a CPU's matrix kernels. A step of few rows on a CPU
takes the time to read all weights once."""

from typing import Any, NoReturn, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from musictx.errors import ConfigError
from musictx.model.build import can
from musictx.model.cells import lacks_cells
from musictx.model.settings import AUTO, WEIGHTS, one_of
from musictx.model.transformer import Block
from musictx.system import processor

M = TypeVar("M", bound=nn.Module)


def choose_weights(weights: str, model: nn.Module) -> str:
    """The kind of `weights=auto`: int8 for a Transformer where that is faster, with the same likelihood
    (docs/results.md), else float32. The number of rows is no reason: a random seed must give the same music."""
    if weights != AUTO:
        return weights
    return "int8" if on_cpu(model) and can(model, "packed") and processor().int8 else "float32"


def with_weights(model: M, weights: str) -> M:
    """Changes weights in place: int8 in linear layers, bfloat16 in a Transformer's linear layers on a CPU, else
    everywhere. Raises ConfigError."""
    if one_of("weights", weights, WEIGHTS) != "float32" and any(isinstance(m, PackedLinear) for m in model.modules()):
        raise ConfigError("weights", got=weights, why="this model was packed already", hint="open its bundle again")
    if weights == "int8":
        if not on_cpu(model):
            raise ConfigError("weights", got="int8", why="it is for a CPU", allowed="bfloat16, or device=cpu")
        if not (layers := _linear_layers(model)):
            raise ConfigError("weights", got="int8", why="this model has no linear layers to shrink", allowed="float32")
        for parent, name, layer in layers:
            setattr(parent, name, Int8Linear(layer))
    elif weights == "bfloat16":
        if on_cpu(model) and can(model, "packed") and can_pack(torch.bfloat16):
            return pack(model, torch.bfloat16)
        if on_cpu(model) and (why := lacks_cells(model)):
            raise ConfigError("weights", got="bfloat16", why=why, allowed="float32")
        model.bfloat16()
    return model


def describe_weights(model: nn.Module) -> str:
    """The model's weights on this machine, in words."""
    if any(isinstance(m, Int8Linear) for m in model.modules()):
        return "int8 linear layers"
    packed = {m.dtype for m in model.modules() if isinstance(m, PackedLinear)}
    if torch.bfloat16 in packed:
        return "bfloat16 linear layers"
    return str(next(model.parameters()).dtype).removeprefix("torch.")


def for_steps(model: M, weights: str = "float32") -> M:
    """Changes the model to its fastest form for generating, in place. Raises ConfigError."""
    return pack(with_weights(model, weights))


FEW_ROWS = 32  # up to this many rows the int8 kernel is faster than widening the weights first
WIDTH = 32  # the kernel reads whole blocks, past the end of a row whose length is not a multiple


class Int8Linear(nn.Module):
    """A linear layer of int8 rows with one scale each (Dettmers et al. 2022, section 2.1, without outliers), and
    activations in bfloat16."""

    weight: Tensor  # (out, in) int8, `in` filled up with zeros to a multiple of `WIDTH`
    scale: Tensor  # (out,) bfloat16

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        full = linear.weight.detach().float()
        scale = full.abs().amax(1).clamp(min=1e-12) / 127
        self.fill = -linear.in_features % WIDTH
        whole = F.pad((full / scale[:, None]).round(), (0, self.fill))
        self.register_buffer("weight", whole.to(torch.int8))
        self.register_buffer("scale", scale.bfloat16())
        self.bias = linear.bias

    def forward(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, x.shape[-1]).bfloat16()  # (N, in)
        if self.fill:
            rows = F.pad(rows, (0, self.fill))
        if len(rows) <= FEW_ROWS:
            y = torch._weight_int8pack_mm(rows, self.weight, self.scale)
        else:
            wide = torch.bfloat16 if processor().bfloat16 else torch.float32
            y = F.linear(rows.to(wide), self.weight.to(wide) * self.scale[:, None])
        y = y.to(x.dtype).view(*x.shape[:-1], -1)
        return y if self.bias is None else y + self.bias


ROWS = 16  # rows that oneDNN is to expect: its order for 1 row was slower at 1 to 16 rows


class PackedLinear(nn.Module):
    """A linear layer in oneDNN's own order, which cannot be changed, saved or moved. `dtype` rounds weights, inputs and
    results, not sums; `gelu` adds a GELU. Raises RuntimeError when something needs its gradients or its state."""

    def __init__(self, linear: nn.Linear, dtype: torch.dtype, gelu: bool = False) -> None:
        super().__init__()
        self.dtype, self.then = dtype, ("gelu", "none") if gelu else ("none", "")  # oneDNN's GELU is the exact one
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
        raise RuntimeError(f"a model packed for generating cannot be {what}: open its bundle again")


def can_pack(dtype: torch.dtype) -> bool:
    """Whether PyTorch and this CPU have kernels for packed weights of that type."""
    if not torch.backends.mkldnn.is_available() or not hasattr(torch.ops.mkldnn, "_linear_pointwise"):  # type: ignore[no-untyped-call]
        return False
    return dtype == torch.float32 or (dtype == torch.bfloat16 and processor().bfloat16)


def pack(model: M, dtype: torch.dtype = torch.float32) -> M:
    """Packs a model's float32 linear layers in place, where a kernel exists. A layer with NaN or infinity stays, so
    that an error can name it."""
    if not can_pack(dtype):
        return model
    for parent, name, layer in _linear_layers(model):
        if all(_is_plain(p) for p in layer.parameters()):
            gelu = isinstance(parent, Block) and name == "up" and isinstance(parent.activate, nn.GELU)
            setattr(parent, name, PackedLinear(layer, dtype, gelu))
            if gelu:
                parent.activate = nn.Identity()
    return model


def _linear_layers(model: nn.Module) -> list[tuple[nn.Module, str, nn.Linear]]:
    """Each plain linear layer, after its parent and its name there."""
    children = [(parent, name, m) for parent in model.modules() for name, m in parent.named_children()]
    return [(parent, name, m) for parent, name, m in children if type(m) is nn.Linear]


def on_cpu(model: nn.Module) -> bool:
    return all(p.device.type == "cpu" for p in model.parameters())


def _is_plain(p: Tensor) -> bool:
    return p.device.type == "cpu" and p.dtype == torch.float32 and bool(p.isfinite().all())
