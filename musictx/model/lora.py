"""LoRA (Hu et al. 2021): a bundle's weights W stay, and training learns a matrix of low rank beside each, W + B A.

We do not use the package peft: it brings transformers and accelerate and takes seconds to import. Our adapters keep the
name of their weight, so every other part of the training stays the same.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from musictx.errors import ConfigError
from musictx.model.transformer import Transformer

ADAPTED = ".parametrizations.weight."  # part of an adapted matrix's names: ADAPTED + original, 0.a, 0.b


class Adapter(nn.Module):
    """W (out, in) -> W + B A. B begins as zero: before the first step nothing changes."""

    def __init__(self, weight: Tensor, rank: int) -> None:
        super().__init__()
        n_out, n_in = weight.shape
        self.a = nn.Parameter(torch.empty(rank, n_in).uniform_(-1 / math.sqrt(n_in), 1 / math.sqrt(n_in)))
        self.b = nn.Parameter(torch.zeros(n_out, rank))

    def forward(self, weight: Tensor) -> Tensor:
        return weight + self.b @ self.a


def add_adapters(model: Transformer, rank: int) -> None:
    """Adds an adapter to each linear layer of the blocks; nothing else learns from then on. Raises ConfigError for a
    rank above that of the matrices."""
    layers = [m for m in model.blocks.modules() if isinstance(m, nn.Linear)]
    least = min(min(layer.weight.shape) for layer in layers)
    if rank > least:
        why = f"the matrices of this model have rank {least} at most"
        raise ConfigError("lora_rank", got=rank, why=why, allowed=f"1 to {least}, or null to learn all weights")
    model.requires_grad_(False)
    for layer in layers:
        parametrize.register_parametrization(layer, "weight", Adapter(layer.weight, rank))


def describe_adapters(model: nn.Module, rank: int) -> str:
    """One line: how much of the model learns."""
    learns = sum(p.numel() for p in model.parameters() if p.requires_grad)
    stays = sum(p.numel() for p in model.parameters()) - learns
    return f"LoRA rank {rank}: {learns:,} parameters learn, the bundle's {stays:,} stay"


def merged(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """A state dict without adapters: each is added to its weight."""
    plain = {name: tensor for name, tensor in tensors.items() if ADAPTED not in name}
    for name, weight in tensors.items():
        if name.endswith(f"{ADAPTED}original"):
            layer = name.removesuffix(f"{ADAPTED}original")
            plain[f"{layer}.weight"] = weight + tensors[f"{layer}{ADAPTED}0.b"] @ tensors[f"{layer}{ADAPTED}0.a"]
    return plain
