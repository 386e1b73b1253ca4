"""Cached steps of one shape for a CUDA graph: one launch a token instead of hundreds."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from musictx.model.cache import KVCache, Ring
from musictx.model.transformer import Transformer


class StaticSteps:
    """Obeys `musictx.model.protocol.LanguageModel`. A CPU takes the same steps without a graph.

    The first step with a KVCache moves its content here for good; it then only counts tokens. Each step overwrites the
    last logits, and weights must stay at their addresses.
    """

    def __init__(self, model: Transformer) -> None:
        self.model, self.window, self.cycle = model, model.window, model.cycle
        self.init_state, self.prefill = model.init_state, model.prefill
        self.state: KVCache | None = None  # the cache whose content is here
        self.graph: torch.cuda.CUDAGraph | None = None
        self.ring: Ring | None = None

    def __call__(self, ids: Tensor) -> Tensor:
        logits: Tensor = self.model(ids)
        return logits

    @torch.inference_mode()
    def step(self, ids: Tensor, state: Any) -> Tensor:
        """Raises ValueError for a full cache, or one whose content another's has replaced here."""
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

    def move(self, rows: Tensor) -> None:
        assert self.ring is not None
        self.ring.move(rows)

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
        """Captures a step; the warm-up's writes are overwritten before a query sees them."""
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
        """One step of the model, the content of the graph."""
        assert self.ring is not None
        self.logits.copy_(self.model.step(self.ids, self.ring))
