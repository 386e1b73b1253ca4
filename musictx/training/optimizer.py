"""AdamW, or Muon for the matrices of linear layers and cells (Jordan et al. 2024), and the learning rate's schedule.

Not `torch.optim.Muon`: that one always iterates in bfloat16, which most processors only emulate.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from musictx.system import processor

OPTIMIZERS = ("adamw", "muon")


class Joint(Optimizer):
    """Several optimizers as one, as Lightning's loop, clipping and schedule need it."""

    def __init__(self, *parts: Optimizer) -> None:
        self.parts = parts
        # the groups themselves, not copies: a schedule that sets `lr` here sets it for the part
        super().__init__([group for part in parts for group in part.param_groups], {})

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = closure() if closure is not None else None
        for part in self.parts:
            part.step()
        return loss

    def state_dict(self) -> dict[str, Any]:
        return {"parts": [part.state_dict() for part in self.parts]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        for part, state in zip(self.parts, state_dict["parts"], strict=True):
            part.load_state_dict(state)
        self.param_groups = [group for part in self.parts for group in part.param_groups]


def layer_matrices(model: nn.Module) -> list[nn.Parameter]:
    """The matrices of linear layers and recurrent cells, which alone get weight decay."""
    # decay towards zero would give all distances one wavelength: it left 0.41 to 0.47 of the frequencies
    layers = [m for m in model.modules() if isinstance(m, nn.Linear | nn.RNNBase)]
    return [p for m in layers for p in m.parameters() if p.dim() >= 2 and p.requires_grad]


def build_optimizer(model: nn.Module, name: str, lr: float, weight_decay: float) -> Optimizer:
    """The optimizer called `name`; both take one learning rate, since Muon has AdamW's scale of updates."""
    matrices = layer_matrices(model)
    matrix_ids = {id(p) for p in matrices}
    rest = [p for p in model.parameters() if p.requires_grad and id(p) not in matrix_ids]
    decay_group = {"params": [] if name == "muon" else matrices, "weight_decay": weight_decay}
    groups = [decay_group, {"params": rest, "weight_decay": 0.0}]
    adamw = torch.optim.AdamW(groups, lr=lr, betas=(0.9, 0.98), fused=True)
    # else Lightning refuses to clip under mixed precision: gradients must be unscaled before the step, not in it
    adamw._step_supports_amp_scaling = False
    if name != "muon":
        return adamw
    return Joint(Muon(matrices, lr, weight_decay), adamw)


ITERATIONS = 5
A, B, C = 3.4445, -4.7750, 2.0315  # steepest at zero (Jordan et al. 2024): all singular values reach 0.7 to 1.2


class Muon(Optimizer):
    """Muon for matrices (N, M): Nesterov momentum, decoupled decay, AdamW's scale (Liu et al. 2025, section 2.2)."""

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
                update = orthogonal(p.grad.lerp(momentum, beta), iteration_dtype(p))
                p.mul_(1 - lr * group["weight_decay"])
                p.add_(update, alpha=-lr * 0.2 * math.sqrt(max(p.shape)))
        return loss


def iteration_dtype(p: Tensor) -> torch.dtype:
    """bfloat16, or float32 where it is emulated and 10 times as slow."""
    native = torch.cuda.is_bf16_supported(including_emulation=False) if p.is_cuda else processor().bfloat16
    return torch.bfloat16 if native else torch.float32


def orthogonal(matrix: Tensor, dtype: torch.dtype) -> Tensor:
    """The matrix (N, M) with all singular values near 1, by Newton-Schulz iteration."""
    tall = matrix.shape[0] > matrix.shape[1]
    x = (matrix.mT if tall else matrix).to(dtype)  # (n, m), n <= m
    x = x / x.norm().clamp(min=1e-7)
    for _ in range(ITERATIONS):
        gram = x @ x.mT  # (n, n)
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=B, alpha=C), x, beta=A)
    return x.mT if tall else x


SCHEDULES = ("cosine", "hold")


def warmup_cosine(step: int, warmup_steps: int, total_steps: int) -> float:
    """Factor on the peak learning rate at a step from 0: 1 after warm-up, then a cosine down to 0.1."""
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    progress = min((step - warmup_steps) / max(total_steps - warmup_steps, 1), 1.0)
    return 0.1 + 0.45 * (1 + math.cos(math.pi * progress))


def warmup_hold(step: int, warmup_steps: int, total_steps: int, decay_share: float) -> float:
    """Constant factor until the last `decay_share` of steps, then linear to 0 (Hägele et al. 2024, section 3)."""
    rise = (step + 1) / warmup_steps if step < warmup_steps else 1.0
    decay_steps = decay_share * total_steps
    left = (total_steps - step) / decay_steps if decay_steps else 1.0
    return max(min(rise, left, 1.0), 0.0)
