"""How weights are kept for generating: whole, in 8 bits, or in the order in which a CPU's matrix kernels read them.

A step of few rows on a CPU is the time to read all weights once, and the kernels of plain layers read those of a
single row with one thread. What fewer bits cost, `musictx evaluate` can say.
"""

from typing import Any, NoReturn, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from musictx.errors import ConfigError
from musictx.model.build import can
from musictx.model.transformer import Block

M = TypeVar("M", bound=nn.Module)
WEIGHTS = ("float32", "bfloat16", "int8")
AUTO = "auto"


def check_weights(weights: str, allowed: tuple[str, ...] = WEIGHTS) -> str:
    """The kind of weights, if it exists. Raises ConfigError otherwise."""
    if weights not in allowed:
        raise ConfigError(f"weights={weights}: choose one of {', '.join(allowed)}")
    return weights


def choose_weights(weights: str, model: nn.Module) -> str:
    """What `weights=auto` comes to, or what was asked for: int8 for a Transformer on a CPU with AVX-512, where a step
    is faster with them and the likelihood the same (docs/log.md), else float32. It goes by model and CPU alone, so
    that a seed gives the same music however many rows are drawn."""
    if weights != AUTO:
        return weights
    on_cpu = all(p.device.type == "cpu" for p in model.parameters())
    fast = torch.backends.cpu.get_cpu_capability().startswith("AVX512")
    return "int8" if on_cpu and fast and can(model, "packed") else "float32"


def with_weights(model: M, weights: str) -> M:
    """The model with its weights in fewer bits, in place. On a CPU bfloat16 means a Transformer's linear layers, which
    are nearly all there is to read, and attention stays exact; for other models, where the CPU has no kernels for it,
    and on a GPU, it means the whole model. Raises ConfigError."""
    if check_weights(weights) != "float32" and any(isinstance(m, PackedLinear) for m in model.modules()):
        raise ConfigError(f"weights={weights}: this model was packed already; open its bundle again")
    if weights == "int8":
        to_int8(model)
    elif weights == "bfloat16":
        on_cpu = all(p.device.type == "cpu" for p in model.parameters())
        if on_cpu and can(model, "packed") and can_pack(torch.bfloat16):
            return pack(model, torch.bfloat16)
        model.bfloat16()
    return model


def describe_weights(model: nn.Module) -> str:
    """What `with_weights` came to for this model on this machine, in words."""
    if any(isinstance(m, Int8Linear) for m in model.modules()):
        return "int8 linear layers"
    packed = {m.dtype for m in model.modules() if isinstance(m, PackedLinear)}
    if torch.bfloat16 in packed:
        return "bfloat16 linear layers"
    return str(next(model.parameters()).dtype).removeprefix("torch.")


def for_steps(model: M, weights: str = "float32") -> M:
    """The model as it generates fastest here, in place; it can no longer be trained or saved. Raises ConfigError."""
    return pack(with_weights(model, weights))


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
