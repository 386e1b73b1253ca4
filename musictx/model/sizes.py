"""What the sizes of a model may be, and whether they are those of a file, before any memory is taken."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from musictx.errors import ConfigError, UserError

LARGEST, MOST_LAYERS = 2**20, 2**10  # no model of any size known comes near
BYTES = 4  # of a weight
DRAWS = {"normal_", "uniform_", "kaiming_uniform_"}


def check_numbers(config: Any) -> None:
    """Raises ConfigError unless each size of a config is a whole number that a model can have, and each share is from 0
    to below 1. The settings with a whole number as default are sizes, those with a fraction are shares."""
    for each in fields(config):
        value, size = getattr(config, each.name), type(each.default) is int and "meaning" in each.metadata
        if size or each.name == "vocab_size" or (each.name == "trained_length" and value is not None):
            most = MOST_LAYERS if "layers" in each.name else LARGEST
            if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
                raise ConfigError(each.name, got=value, allowed=f"a whole number from 1 to {most}")
        elif type(each.default) is float and (not isinstance(value, int | float) or not 0 <= value < 1):
            raise ConfigError(each.name, got=value, allowed="a share from 0 up to below 1")


def one_of(field: str, value: str, known: Iterable[str]) -> str:
    """The value. Raises ConfigError for one that is not known."""
    if value not in known:
        raise ConfigError(field, got=value, allowed=f"one of {', '.join(known)}")
    return value


def differing(model: nn.Module, shapes: Mapping[str, list[int]]) -> str:
    """In what a model differs from a file's tensors: a few words; none if it does not."""
    own = {name: [*x.shape] for name, x in model.state_dict().items()}
    for name in sorted(own.keys() | shapes.keys()):
        if own.get(name) != shapes.get(name):
            claimed, found = (of.get(name, "no such tensor") for of in (own, shapes))
            return f"{name}: its settings mean {claimed}, the file has {found}"
    return ""


def memory_of(model: nn.Module) -> int:
    """Bytes of all parameters and tables, as float32. A model on the device "meta" has them only in its shapes."""
    return BYTES * sum(x.numel() for each in (model.parameters(), model.buffers()) for x in each)


class NoValues(TorchFunctionMode):
    """Draws no initial values: on the device "meta" that would import PyTorch's compiler, for more than a second."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func.__name__ in DRAWS:
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)


def without_memory(build: Any) -> nn.Module:
    """What `build` makes, on the device "meta": shapes without values. Raises UserError for sizes beyond all
    numbers."""
    try:
        with torch.device("meta"), NoValues():
            made: nn.Module = build()
    except (RuntimeError, OverflowError) as error:
        raise UserError(f"a model of these sizes cannot be built ({' '.join(str(error).split())[:100]})") from None
    return made
