"""Cached steps of one shape for ever, so that a CUDA graph can hold one: one launch a token instead of hundreds.

A query looks at all of a ring of keys, what its row may not see is masked, and which token this is stands in a number
on the device: to the host no step differs from another.
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
        self.k = self.v = torch.empty(0)  # (layers, B, H, room, Dk and D): token i is at slot i % room

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
        if state.window is None and state.length >= self.k.shape[3]:
            raise ValueError(
                f"{state.length + 1} tokens do not fit a cache of {state.length}: raise max_T in init_state"
            )
        self.model.check_reach(state.length + 1)
        state.length += 1
        self.ids.copy_(ids)
        if self.ids.device.type == "cuda":
            self.graph = self.graph or self._capture()
            self.graph.replay()
        else:
            self._step()
        return self.logits

    def _take(self, state: KVCache) -> None:
        """Moves a cache here; a graph is kept while the shapes are the same."""
        c, (layers, b, h, n, _) = self.model.config, state.k.shape
        if n < state.end:
            raise ValueError("the content of this cache was moved into StaticSteps, once: prefill a new one")
        room = state.window or n
        if (self.k.shape, self.k.dtype) != ((layers, b, h, room, state.k.shape[4]), state.k.dtype):
            like, self.graph = state.k, None
            self.k, self.v = (x.new_empty(layers, b, h, room, x.shape[4]) for x in (state.k, state.v))
            self.slots = torch.arange(room, device=like.device)
            self.at = torch.empty(1, dtype=torch.long, device=like.device)  # the index of the next token
            self.behind = torch.empty(b, 1, dtype=torch.long, device=like.device)
            self.clock = torch.empty(b, 1, dtype=torch.float64, device=like.device)
            self.ids = torch.empty(b, dtype=torch.long, device=like.device)
            self.logits = like.new_empty(b, c.vocab_size)
        held = min(state.end, room)
        slots = torch.arange(state.length - held, state.length, device=self.slots.device) % room
        for mine, theirs in ((self.k, state.k), (self.v, state.v)):
            mine.zero_()  # what is masked must be a number all the same
            mine[:, :, :, slots] = theirs[:, :, :, state.end - held : state.end]
        self.at.fill_(state.length)
        self.behind.copy_(state.behind if state.behind is not None else torch.zeros_like(self.behind))
        self.clock.copy_(state.clock)
        state.k, state.v = (x.new_empty(*x.shape[:3], 0, x.shape[4]) for x in (state.k, state.v))  # its memory is free
        self.state = state

    def _capture(self) -> torch.cuda.CUDAGraph:
        """What the warm-up writes is written again before it is seen."""
        at, clock = self.at.clone(), self.clock.clone()
        aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(3):
                self._step()
                self.at.copy_(at)
                self.clock.copy_(clock)
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._step()
        return graph

    def _step(self) -> None:
        model, room = self.model, self.k.shape[3]
        index = (self.at - self.behind).double()  # (B, 1)
        if model.config.clock == "time":
            self.clock += model.pace[self.ids][:, None].double()
        clock = self.clock if model.config.clock == "time" else index
        age = (self.at - self.slots) % room  # (room,)
        hidden = age > self.at - self.behind  # (B, room)
        x = model.embed_at(self.ids[:, None], index)  # (B, 1, C)
        first_v = None
        for layer, block in enumerate(model.blocks):
            assert isinstance(block, Block)
            x, first_v = self._block(block, x, first_v, layer, clock, age, hidden)
        self.logits.copy_(F.linear(model.norm(x[:, 0]), model.embed.weight))
        self.at += 1

    def _block(
        self, block: Block, x: Tensor, first_v: Tensor | None, layer: int, clock: Tensor, age: Tensor, hidden: Tensor
    ) -> tuple[Tensor, Tensor]:
        q, k, v = block.heads(x, first_v)  # (B, H, 1, D)
        phase = block.attend.phase(clock, k.dtype)
        keys, values, slot = self.k[layer], self.v[layer], self.at % self.k.shape[3]
        keys.index_copy_(2, slot, block.attend.keys(k, phase))
        values.index_copy_(2, slot, v)
        if isinstance(block.attend, Table):
            y = _by_age(q, keys, values, block.attend.rel, age, hidden)
        else:
            y = block.attend(q, keys, values, phase, 0.0, hidden)
        return block.mix(x, y), v if first_v is None else first_v


def _by_age(q: Tensor, k: Tensor, v: Tensor, rel: Tensor, age: Tensor, hidden: Tensor) -> Tensor:
    """`relative_attention` of one query to keys that are `age` (Tk,) tokens old, in any order."""
    by_distance = torch.einsum("bhqd,hmd->bhqm", q, rel.to(q.dtype))  # (B, H, 1, M)
    logits = (k @ q.mT).mT + by_distance[..., age.clamp(max=rel.shape[1] - 1)]  # (B, H, 1, Tk)
    logits = (logits / math.sqrt(q.shape[-1])).masked_fill(hidden[:, None, None], -torch.inf)
    return logits.softmax(-1) @ v
