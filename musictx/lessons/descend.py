"""The loop of every training: draw a batch, measure the loss, follow its gradient."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor
from torch.nn import Parameter

from musictx.waiting import estimated


def descend(
    parameters: Iterable[Parameter], loss: Callable[[], Tensor], steps: int, lr: float = 3e-3, warm_up: int = 10
) -> list[float]:
    """Follows the gradient of `loss()`, which draws its own batch, by Adam. Returns each step's loss. Trainings that
    draw alike get the same batches, whatever weights their models drew before."""
    torch.manual_seed(1)
    mine = list(parameters)
    optimizer = torch.optim.AdamW(mine, lr=lr, weight_decay=0.01)
    losses: list[float] = []
    for step in estimated(range(max(1, steps)), "a training"):
        for group in optimizer.param_groups:
            group["lr"] = lr * min(1.0, (step + 1) / warm_up) * (1 - step / steps) ** 0.5
        now = loss()
        optimizer.zero_grad()
        now.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(mine, 1.0)
        optimizer.step()
        losses.append(now.item())
    return losses
