"""Cached steps of one shape for ever, so that a CUDA graph can hold one: a candidate for the sampler on a GPU.

A query looks at all of the cache's room, what is not written yet is masked, and where the next token goes is a number
on the device: no step differs from another to the host, which then has one launch to make instead of hundreds.
"""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from musictx.model.cache import KVCache
from musictx.model.position import Table
from musictx.model.transformer import Block, Transformer


class StaticSteps:
    """A Transformer with a relative table behind `musictx.model.protocol.LanguageModel`, for `batch` rows of one age
    and at most `room` tokens. On a CPU it takes the same steps without a graph."""

    def __init__(self, model: Transformer, batch: int, room: int) -> None:
        c, weight = model.config, model.embed.weight
        self.model, self.room, self.window, self.cycle = model, room, model.window, model.cycle
        shape = (c.n_layers, batch, c.n_heads, room, c.d_model // c.n_heads)
        self.k, self.v = weight.new_zeros(shape), weight.new_zeros(shape)
        self.ids = torch.zeros(batch, dtype=torch.long, device=weight.device)
        self.at = torch.zeros(1, dtype=torch.long, device=weight.device)  # the slot of the next token
        self.slots = torch.arange(room, device=weight.device)
        self.state: KVCache | None = None  # whose content this holds
        self.graph: torch.cuda.CUDAGraph | None = None
        self.logits = weight.new_zeros(batch, c.vocab_size)

    def __call__(self, ids: Tensor) -> Tensor:
        logits: Tensor = self.model(ids)
        return logits

    def init_state(self, batch: int, max_T: int, rolling: bool = False) -> KVCache:
        return self.model.init_state(batch, max_T, rolling)

    def prefill(self, ids: Tensor, state: KVCache) -> Tensor:
        return self.model.prefill(ids, state)

    def step(self, ids: Tensor, state: Any) -> Tensor:
        """Raises ValueError for a cache that rolls, of rows of different ages, or that is full."""
        if state is not self.state:
            self._take(state)
        if state.length == self.room:
            raise ValueError(f"{self.room} tokens are all that StaticSteps has room for")
        state.length += 1
        self.ids.copy_(ids)
        if self.ids.device.type == "cuda":
            if self.graph is None:
                self.graph = self._capture()
            self.graph.replay()
        else:
            self._step()
        return self.logits

    def _take(self, state: KVCache) -> None:
        if state.window is not None or state.behind is not None:
            raise ValueError("StaticSteps takes caches that do not roll, of rows of one age")
        for mine, theirs in ((self.k, state.k), (self.v, state.v)):
            mine[:, :, :, : state.end] = theirs[:, :, :, : state.end]
        self.at.fill_(state.end)
        self.state = state

    def _capture(self) -> torch.cuda.CUDAGraph:
        """What the warm-up writes lies at slots that are masked until they are written again."""
        at = self.at.clone()
        aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(3):
                self._step()
                self.at.copy_(at)
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._step()
        self.at.copy_(at)
        return graph

    def _step(self) -> None:
        distance = self.at - self.slots  # (room,)
        x = self.model._embed(self.ids[:, None], self.at[None].double())[:, 0]  # (B, C)
        for layer, block in enumerate(self.model.blocks):
            assert isinstance(block, Block)
            x = x + self._attend(block, x, layer, distance)
            x = x + block.down(block.activate(block.up(block.norm_2(x))))
        self.logits.copy_(F.linear(self.model.norm(x), self.model.embed.weight))
        self.at += 1

    def _attend(self, block: Block, x: Tensor, layer: int, distance: Tensor) -> Tensor:
        assert isinstance(block.attend, Table)
        (b, c), h = x.shape, self.k.shape[2]
        q, k, v = block.qkv(block.norm_1(x)).view(b, 3, h, 1, c // h).unbind(1)  # (B, H, 1, D)
        self.k[layer].index_copy_(2, self.at, k)
        self.v[layer].index_copy_(2, self.at, v)
        rel = block.attend.rel.to(q.dtype)  # (H, M, D)
        by_distance = q @ rel.transpose(-1, -2)  # (B, H, 1, M)
        relative = by_distance[..., distance.clamp(0, rel.shape[1] - 1)]
        logits = (q @ self.k[layer].transpose(-1, -2) + relative) / math.sqrt(c // h)
        weights = logits.masked_fill(distance < 0, -torch.inf).softmax(-1)  # (B, H, 1, room)
        out: Tensor = block.project((weights @ self.v[layer]).reshape(b, c))
        return out
