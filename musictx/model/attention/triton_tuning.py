"""Tiles, warps and stages of the Triton kernels for each card.

Each kernel gets the largest tile that the compiler keeps within the card's shared memory and within 100 spilled bytes a
thread. `make kernels` compiles all of them on any machine and prints their use; none has been timed on a GPU.
"""

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import torch
from torch import Tensor

from musictx.errors import ConfigError

OLDEST = 80  # compute capability 8.0 (Ampere): older cards have no bfloat16 and are not checked
LARGEST_D = 128  # above it two (N, D) accumulators in float32 no longer fit the registers beside the tiles
# bytes of shared memory a block may have on data-centre cards since Hopper; others have 99 or 163 KB
ROOMY = 227 * 1024


class Launch(NamedTuple):
    block: int  # queries and keys of a tile
    warps: int
    stages: int  # of loads in flight


class Tuning(NamedTuple):
    """The launches of the four kernels. The table's has the queries' tiles, since it completes their gradients."""

    forward: Launch
    queries: Launch
    keys: Launch
    table: Launch


def _same_launches(launch: Launch) -> Tuning:
    return Tuning(*[launch] * 4)


INTERPRETED = _same_launches(Launch(16, 1, 1))  # small: several tiles in a test of a hundred positions

_ALL_CARDS = {
    (16, 2): Tuning(Launch(64, 4, 3), Launch(64, 8, 2), Launch(64, 4, 2), Launch(64, 8, 2)),
    (16, 4): _same_launches(Launch(32, 8, 2)),  # no tensor cores take float32: nearly the same for all cards
    (32, 4): _same_launches(Launch(32, 8, 2)),
    (64, 4): Tuning(Launch(32, 8, 2), Launch(32, 8, 2), Launch(32, 8, 2), Launch(32, 8, 1)),
    (128, 4): _same_launches(Launch(16, 8, 2)),
}
# by the oldest capability it serves, then by head size, padded, and bytes of a number
TUNING: dict[int, dict[tuple[int, int], Tuning]] = {
    80: {
        (32, 2): Tuning(Launch(64, 4, 3), Launch(32, 4, 2), Launch(64, 8, 2), Launch(32, 4, 2)),
        (64, 2): Tuning(Launch(64, 8, 2), Launch(32, 4, 2), Launch(32, 4, 2), Launch(32, 4, 2)),
        (128, 2): _same_launches(Launch(32, 8, 2)),
        **_ALL_CARDS,
    },
    90: {
        (32, 2): Tuning(Launch(64, 4, 3), Launch(64, 8, 2), Launch(64, 4, 2), Launch(64, 8, 2)),
        (64, 2): Tuning(Launch(64, 4, 3), Launch(64, 8, 2), Launch(64, 4, 2), Launch(64, 8, 1)),
        (128, 2): Tuning(Launch(64, 8, 2), Launch(32, 8, 2), Launch(32, 8, 2), Launch(32, 8, 2)),
        **_ALL_CARDS,
    },
    100: {
        (32, 2): Tuning(Launch(64, 4, 3), Launch(64, 8, 2), Launch(64, 4, 2), Launch(64, 8, 2)),
        (64, 2): Tuning(Launch(64, 4, 3), Launch(64, 8, 2), Launch(64, 8, 2), Launch(64, 8, 1)),
        (128, 2): Tuning(Launch(64, 8, 2), Launch(64, 8, 2), Launch(64, 8, 1), Launch(64, 8, 1)),
        **_ALL_CARDS,
    },
}


def tuning_for(capability: int, shared_bytes: int, d: int, number_bytes: int) -> Tuning:
    """The tuning for a card of compute capability 80 or more (8.0 is 80) with `shared_bytes` for a block; d is padded.

    A card with less than Hopper's memory takes Ampere's tuning; a newer one with as much takes Blackwell's.
    """
    generation = 80 if shared_bytes < ROOMY or capability < 90 else 90 if capability < 100 else 100
    return TUNING[generation][d, number_bytes]


class Card(NamedTuple):
    name: str
    capability: int  # 8.0 is 80
    shared_bytes: int  # the most that a block may ask for

    @classmethod
    def of(cls, t: Tensor) -> "Card | None":
        """The card of `t`; None in the interpreter."""
        if not t.is_cuda:
            return None
        card = torch.cuda.get_device_properties(t.device)
        shared_bytes: int = card.shared_memory_per_block_optin  # type: ignore[attr-defined]
        return cls(card.name, 10 * card.major + card.minor, shared_bytes)


def launches(q: Tensor, tuning: Sequence[int]) -> Sequence[int]:
    """The numbers of a given tuning, else those of q's card. Raises ConfigError if the card of q (…, D) is too old."""
    card = Card.of(q)
    if card and card.capability < OLDEST:
        raise ConfigError(
            "impl",
            got="triton",
            why=f"it needs compute capability {OLDEST / 10} or more, this {card.name} has {card.capability / 10}",
            allowed="chunked",
            hint="it has no bfloat16: train with precision=16-mixed or 32-true",
        )
    if tuning:
        return tuning
    return list(chain(*(tuning_for(*card[1:], q.shape[-1], q.element_size()) if card else INTERPRETED)))
