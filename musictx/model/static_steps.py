"""Cached steps of one shape for a CUDA graph: one launch a token instead of hundreds. Keys and values are in a ring
buffer.
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

    A prompt is read into a KVCache as usual. The first step with a cache moves its content here for good. The cache
    then only counts tokens and gives no rows; there is room for one cache at a time. Each step
    overwrites the logits of the last, and the model's weights must stay at their addresses.
    """

    def __init__(self, model: Transformer) -> None:
        self.model = model
        self.state: KVCache | None = None  # the cache whose content is here
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
        """One token a row. Raises ValueError for a full cache, or one whose content another's has replaced here."""
        if state is not self.state:
            self._take(state)
        assert self.ring is not None
        if state.window is None and state.length >= self.ring.room:
            raise ValueError(
                f"{state.length + 1} tokens do not fit a cache of {state.length}: raise max_T in init_state"
            )
        self.model.config.check_reach(state.length + 1)
        self.ring.length = state.length
        state.length += 1
        self.ids.copy_(ids)
        if self.ids.device.type == "cuda":
            self.graph = self.graph or self._capture(self.ring)
            self.graph.replay()
        else:
            self.advance()
        return self.logits

    def _take(self, state: KVCache) -> None:
        """Moves a cache here; keeps the graph while the shapes are the same."""
        if state.k.shape[3] < state.end:
            raise ValueError("StaticSteps has taken the content of this cache already: prefill a new one")
        if not state.length:
            raise ValueError("StaticSteps takes a cache that has tokens: prefill it first")
        if self.ring is None or not self.ring.fits(state):
            self.graph, self.ring = None, Ring(state)
            batch = state.k.shape[1]
            self.ids = torch.empty(batch, dtype=torch.long, device=state.k.device)
            self.logits = state.k.new_empty(batch, self.model.config.vocab_size)
        self.ring.fill(state)
        state.k, state.v = (x.new_empty(*x.shape[:3], 0, x.shape[4]) for x in (state.k, state.v))  # its memory is free
        self.state = state

    def _capture(self, ring: Ring) -> torch.cuda.CUDAGraph:
        """Captures a step; whatever the warm-up writes is written again before a query sees it."""
        at, clock = ring.at.clone(), ring.clock.clone()
        keyboard = None if ring.keyboard is None else ring.keyboard.clone()
        recent = {layer: x.clone() for layer, x in ring.recent.items()}
        aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(3):
                self.advance()
                ring.at.copy_(at)
                ring.clock.copy_(clock)
                ring.keyboard = keyboard
                ring.keep(recent)
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.advance()
        return graph

    def advance(self) -> None:
        """One step of the model: what a graph is made of, and what runs where there are none."""
        assert self.ring is not None
        self.logits.copy_(self.model.step(self.ids, self.ring))


class Ring:
    """The last keys (layers, B, H, room, Dk) and values (…, D), token i at slot i % room: a query looks at all slots,
    `masked` marks those its row may not see, and `age` gives the keys' order.

    All that changes from step to step is on the device, in memory that stays, so a step can be a CUDA graph.
    `length` counts all tokens ever seen; StaticSteps keeps the count.
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
        self.slot = self.age = self.masked = self.slots  # of the current step: `begin` sets them
        self.length = 0
        self._keyboard = None if like.keyboard is None else like.keyboard.clone()
        self.recent = {layer: x.clone() for layer, x in like.recent.items()}

    @property
    def keyboard(self) -> Tensor | None:
        return self._keyboard

    @keyboard.setter
    def keyboard(self, state: Tensor | None) -> None:
        if self._keyboard is not None and state is not None:
            self._keyboard.copy_(state)  # its memory stays

    def fits(self, cache: KVCache) -> bool:
        """Whether the content of that cache fits this memory."""
        layers, b, h, n, width = cache.k.shape
        return (self.k.shape, self.k.dtype) == ((layers, b, h, cache.window or n, width), cache.k.dtype)

    def fill(self, cache: KVCache) -> None:
        held = min(cache.end, self.room)
        slots = torch.arange(cache.length - held, cache.length, device=self.slots.device) % self.room
        for mine, theirs in ((self.k, cache.k), (self.v, cache.v)):
            mine.zero_()  # masked slots must be finite too
            mine[:, :, :, slots] = theirs[:, :, :, cache.end - held : cache.end]
        self.at.fill_(cache.length)
        self.behind.copy_(cache.behind if cache.behind is not None else torch.zeros_like(self.behind))
        self.clock.copy_(cache.clock)
        self.keyboard = cache.keyboard
        self.keep(cache.recent)

    def keep(self, recent: dict[int, Tensor]) -> None:
        """Copies the last inputs of each layer's convolution here."""
        for layer, x in recent.items():
            self.recent[layer].copy_(x)  # its memory stays

    def begin(self, t: int) -> Tensor:
        """Makes room for one token a row; returns its position in its row, (B, 1)."""
        assert t == 1, "a ring takes steps of one token"
        self.slot = self.at % self.room  # (1,)
        self.age = (self.at - self.slots) % self.room  # (room,)
        self.masked = self.age > self.at - self.behind  # (B, room)
        return (self.at - self.behind).double()

    def append(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Stores new k, v (B, H, 1, ·) of a layer; returns all its slots."""
        keys, values = self.k[layer], self.v[layer]
        keys.index_copy_(2, self.slot, k)
        values.index_copy_(2, self.slot, v)
        return keys, values

    def before(self, layer: int, x: Tensor, n: int) -> Tensor:
        """Stores the new token's input (B, 1, C) of a layer's convolution; returns the n before it, (B, n, C)."""
        before = self.recent[layer].clone()
        self.recent[layer].copy_(torch.cat([before, x], 1)[:, 1:])
        return before

    def advance(self, t: int, clock: Tensor) -> None:
        """Counts the token that all layers have stored, and sets the clock (B, 1)."""
        self.at += t
        self.clock.copy_(clock)
