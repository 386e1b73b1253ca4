"""Cached steps of one shape, so that a CUDA graph can hold one: one launch a token instead of hundreds. Their keys and
values lie in places that are written round and round.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from musictx.model.cache import KVCache
from musictx.model.transformer import Transformer


class StaticSteps:
    """A Transformer behind `musictx.model.protocol.LanguageModel`, for sampling on a GPU. On a CPU it takes the same
    steps without a graph, which is slower than the model itself.

    A prompt is read into a KVCache as ever. The first step with a cache moves its content here, for good: the cache
    then counts tokens alone, and no rows can be taken of it; there is room for one at a time. The logits of a step are
    overwritten by the next, and the model's weights must stay where they are.
    """

    def __init__(self, model: Transformer) -> None:
        self.model = model
        self.state: KVCache | None = None  # whose content this holds
        self.graph: torch.cuda.CUDAGraph | None = None
        self.ring: Ring | None = None

    def __call__(self, ids: Tensor) -> Tensor:
        logits: Tensor = self.model(ids)
        return logits

    @property
    def window(self) -> int:
        return self.model.window

    @property
    def cycle(self) -> int:
        return self.model.cycle

    def init_state(self, batch: int, max_T: int, rolling: bool = False) -> KVCache:
        return self.model.init_state(batch, max_T, rolling)

    def prefill(self, ids: Tensor, state: KVCache) -> Tensor:
        return self.model.prefill(ids, state)

    @torch.inference_mode()
    def step(self, ids: Tensor, state: Any) -> Tensor:
        """Raises ValueError for a cache that is full, or whose content had moved here and made way for another's."""
        if state is not self.state:
            self._take(state)
        assert self.ring is not None
        if state.window is None and state.length >= self.ring.room:
            raise ValueError(
                f"{state.length + 1} tokens do not fit a cache of {state.length}: raise max_T in init_state"
            )
        self.model.check_reach(state.length + 1)
        self.ring.length = state.length
        state.length += 1
        self.ids.copy_(ids)
        if self.ids.device.type == "cuda":
            self.graph = self.graph or self._capture(self.ring)
            self.graph.replay()
        else:
            self._step()
        return self.logits

    def _take(self, state: KVCache) -> None:
        """Moves a cache here; a graph is kept while the shapes are the same."""
        if state.k.shape[3] < state.end:
            raise ValueError("the content of this cache was moved into StaticSteps, once: prefill a new one")
        if self.ring is None or not self.ring.fits(state):
            self.graph, self.ring = None, Ring(state)
            batch = state.k.shape[1]
            self.ids = torch.empty(batch, dtype=torch.long, device=state.k.device)
            self.logits = state.k.new_empty(batch, self.model.config.vocab_size)
        self.ring.fill(state)
        state.k, state.v = (x.new_empty(*x.shape[:3], 0, x.shape[4]) for x in (state.k, state.v))  # its memory is free
        self.state = state

    def _capture(self, ring: Ring) -> torch.cuda.CUDAGraph:
        """What the warm-up writes is written again before it is seen."""
        at, clock = ring.at.clone(), ring.clock.clone()
        aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(3):
                self._step()
                ring.at.copy_(at)
                ring.clock.copy_(clock)
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._step()
        return graph

    def _step(self) -> None:
        assert self.ring is not None
        self.logits.copy_(self.model.step(self.ids, self.ring))


class Ring:
    """The last keys (layers, B, H, room, Dk) and values (…, D), token i at slot i % room: a query looks at all slots,
    what its row may not see is `masked`, and the keys' order is told by their `age`.

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
        self.slot = self.age = self.masked = self.slots  # of the step under way: `begin` tells
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
        self.masked = self.age > self.at - self.behind  # (B, room)
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
