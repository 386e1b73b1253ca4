"""Keys and values in places that are written round and round, by steps that the host cannot tell apart."""

from __future__ import annotations

import torch
from torch import Tensor

from musictx.model.cache import KVCache


class Ring:
    """The last keys (layers, B, H, room, Dk) and values (…, D), token i at slot i % room: a query looks at all slots,
    what its row may not see is `hidden`, and the keys' order is told by their `age`.

    What changes from step to step stands on the device, in memory that stays, so a CUDA graph can hold a step.
    `length` counts all tokens ever seen; who replays the steps counts.
    """

    def __init__(self, like: KVCache) -> None:
        layers, b, h, n, _ = like.k.shape
        self.room = like.window or n
        self.k, self.v = (x.new_empty(layers, b, h, self.room, x.shape[4]) for x in (like.k, like.v))
        device = like.k.device
        self.slots = torch.arange(self.room, device=device)
        self.at = torch.empty(1, dtype=torch.long, device=device)  # the index of the next token
        self.behind = torch.empty(b, 1, dtype=torch.long, device=device)
        self.clock = torch.empty(b, 1, dtype=torch.float64, device=device)
        self.slot = self.age = self.hidden = self.slots  # of the step under way: `begin` tells
        self.length = 0

    def fits(self, cache: KVCache) -> bool:
        """Whether the content of that cache can be moved into this memory."""
        layers, b, h, n, width = cache.k.shape
        return (self.k.shape, self.k.dtype) == ((layers, b, h, cache.window or n, width), cache.k.dtype)

    def fill(self, cache: KVCache) -> None:
        held = min(cache.end, self.room)
        slots = torch.arange(cache.length - held, cache.length, device=self.slots.device) % self.room
        for mine, theirs in ((self.k, cache.k), (self.v, cache.v)):
            mine.zero_()  # what is masked must be a number all the same
            mine[:, :, :, slots] = theirs[:, :, :, cache.end - held : cache.end]
        self.at.fill_(cache.length)
        self.behind.copy_(cache.behind if cache.behind is not None else torch.zeros_like(self.behind))
        self.clock.copy_(cache.clock)

    def begin(self, t: int) -> Tensor:
        """One token a row; where it stands in its row, (B, 1)."""
        assert t == 1, "a ring takes steps of one token"
        self.slot = self.at % self.room  # (1,)
        self.age = (self.at - self.slots) % self.room  # (room,)
        self.hidden = self.age > self.at - self.behind  # (B, room)
        return (self.at - self.behind).double()

    def append(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Stores new k, v (B, H, 1, ·) of a layer; returns all of its slots."""
        keys, values = self.k[layer], self.v[layer]
        keys.index_copy_(2, self.slot, k)
        values.index_copy_(2, self.slot, v)
        return keys, values

    def advance(self, t: int, clock: Tensor) -> None:
        """The token is in all layers."""
        self.at += t
        self.clock.copy_(clock)
