"""The shapes of a model, and its memory, before any is taken."""

from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from musictx.errors import UserError

BYTES = 4  # of a weight
DRAWS = {"normal_", "uniform_", "kaiming_uniform_"}


def shapes_of(model: nn.Module) -> dict[str, list[int]]:
    """Those of all its tensors."""
    return {name: [*x.shape] for name, x in model.state_dict().items()}


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
