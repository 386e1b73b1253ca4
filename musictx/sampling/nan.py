"""Where the numbers went wrong: the first part of a model to yield what is no number."""

from typing import Any

import torch
from torch import Tensor, nn

from musictx.errors import UserError


class NanError(UserError):
    """Logits that are no numbers: nothing can be drawn from them."""


@torch.inference_mode()
def nan_error(model: Any, ids: Tensor) -> NanError:
    """What to tell a person whose model gave NaN or infinity somewhere after ids (T,): the layer is looked for in a
    forward pass of its own."""
    first = first_bad_module(model, ids) if isinstance(model, nn.Module) else ""
    weights = [name for name, p in model.named_parameters() if not p.isfinite().all()] if first else []
    where = f"; {first} is the first layer to give them" if first else ""
    cause = f", and its weights have them ({weights[0]})" if weights else ""
    return NanError(f"the model's logits are not finite numbers (NaN){where}{cause}: train it again, or use float32")


def first_bad_module(model: nn.Module, ids: Tensor) -> str:
    """The name of the first module whose output holds NaN or infinity for ids (T,); "" when none does."""
    found: list[str] = []

    def look(name: str) -> Any:
        def hook(module: nn.Module, args: Any, output: Any) -> None:
            out = output[0] if isinstance(output, tuple) else output
            if not found and isinstance(out, Tensor) and not out.isfinite().all():
                found.append(name)

        return hook

    # inner modules finish, and so report, before those around them
    handles = [part.register_forward_hook(look(name)) for name, part in model.named_modules() if name]
    try:
        model(ids[None])
    finally:
        for handle in handles:
            handle.remove()
    return found[0] if found else ""
