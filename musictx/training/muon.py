"""Muon (Jordan et al. 2024): each step of a matrix is its momentum with all singular values near 1.

PyTorch's `torch.optim.Muon` gives the same steps, and always iterates in bfloat16, which most processors only emulate.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from musictx.system import processor

STEPS = 5
A, B, C = 3.4445, -4.7750, 2.0315  # steepest at zero (Jordan et al. 2024): all singular values reach 0.7 to 1.2


class Muon(Optimizer):
    """For matrices (N, M) alone, with Nesterov's momentum, decoupled weight decay and AdamW's scale of updates (Liu et
    al. 2025, section 2.2)."""

    def __init__(
        self, matrices: Iterable[nn.Parameter], lr: float, weight_decay: float, momentum: float = 0.95
    ) -> None:
        super().__init__(matrices, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        with torch.enable_grad():
            loss = closure() if closure is not None else None
        for group in self.param_groups:
            lr, beta = float(group["lr"]), group["momentum"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["momentum_buffer"] = torch.zeros_like(p.grad)
                momentum = state["momentum_buffer"].lerp_(p.grad, 1 - beta)
                update = orthogonal(p.grad.lerp(momentum, beta), iterated_in(p))
                p.mul_(1 - lr * group["weight_decay"])
                p.add_(update, alpha=-lr * 0.2 * math.sqrt(max(p.shape)))
        return loss


def iterated_in(p: Tensor) -> torch.dtype:
    """The type of numbers of the iteration: bfloat16 is enough, and 10 times as slow where it is emulated."""
    able = torch.cuda.is_bf16_supported(including_emulation=False) if p.is_cuda else processor().bfloat16
    return torch.bfloat16 if able else torch.float32


def orthogonal(matrix: Tensor, dtype: torch.dtype) -> Tensor:
    """A matrix (N, M) with its singular vectors, and singular values near 1: Newton and Schulz's iteration."""
    tall = matrix.shape[0] > matrix.shape[1]
    x = (matrix.mT if tall else matrix).to(dtype)  # (n, m), n <= m
    x = x / x.norm().clamp(min=1e-7)
    for _ in range(STEPS):
        gram = x @ x.mT  # (n, n)
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=B, alpha=C), x, beta=A)
    return x.mT if tall else x
