"""Weights in fewer bits: less to read at every step, and what that costs `musictx evaluate` can say."""

from typing import TypeVar

import torch
from torch import nn

from musictx.errors import ConfigError
from musictx.model.build import can
from musictx.model.int8 import Int8Linear, to_int8
from musictx.model.packed import PackedLinear, can_pack, pack

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
