"""Chance, one stream a row: what row k draws is a function of (seed, k), whoever else is in the batch."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

BLOCK = 256  # tokens drawn for ahead
MAX_SEED = 2**63 - 1


class Uniforms:
    """Numbers in [0, 1) for a batch, one (B, 1) float64 a token; row b follows key b, (seed, k).

    Philox counts from its key (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"), so no two keys
    share a stream, and it is numpy's on every device.
    """

    def __init__(self, keys: Sequence[tuple[int, int]], device: torch.device | str) -> None:
        self.device, self.at = device, BLOCK
        self.generators = [np.random.Generator(np.random.Philox(key=np.array(key, np.uint64))) for key in keys]
        self.block = torch.empty(0)

    def next(self) -> Tensor:
        if self.at == BLOCK:
            block = np.stack([generator.random(BLOCK) for generator in self.generators], 1)  # (BLOCK, B)
            self.block, self.at = torch.from_numpy(block[..., None]).to(self.device), 0
        self.at += 1
        return self.block[self.at - 1]
