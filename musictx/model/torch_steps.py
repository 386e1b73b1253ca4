"""Steps of PyTorch's models: on a GPU, of one's own kinds, and in float64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from musictx.model.cache import KVCache
from musictx.model.prompt_cache import PromptCache
from musictx.model.protocol import LanguageModel, SourceModel
from musictx.model.protocol import Steps as OfTensors
from musictx.model.static_steps import StaticSteps
from musictx.model.steps import Logits, Rows
from musictx.model.transformer import Transformer

PREFILL_BLOCK = 512  # tokens: attention over a whole prompt of T at once would take memory O(T²)


class TorchSteps:
    """Obeys `musictx.model.steps.Steps`."""

    def __init__(self, model: OfTensors, state: Any, room: int, device: str) -> None:
        self.model, self.state, self.room, self.device = model, state, room, device

    @torch.inference_mode()
    def prefill(self, ids: NDArray[np.int64]) -> Logits:
        for block in torch.split(self._tensor(ids), min(PREFILL_BLOCK, self.room), dim=1):
            logits = self.model.prefill(block, self.state)
        return numbers(logits)

    @torch.inference_mode()
    def step(self, ids: Rows) -> Logits:
        return numbers(self.model.step(self._tensor(ids), self.state))

    @torch.inference_mode()
    def move(self, rows: Rows) -> None:
        (self.model if isinstance(self.model, StaticSteps) else self.state).move(self._tensor(rows))

    @torch.inference_mode()
    def take(self, rows: Rows) -> TorchSteps:
        return TorchSteps(self.model, self.state.take(self._tensor(rows)), self.room, self.device)

    def _tensor(self, ids: NDArray[np.int64]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(ids)).to(self.device)


class TorchPlayer:
    """Obeys `musictx.model.steps.Player`."""

    def __init__(self, model: LanguageModel, device: str = "cpu") -> None:
        self.model, self.device, self.window, self.cycle = model, device, model.window, model.cycle

    @torch.inference_mode()
    def begin(self, room: int, rolling: bool = False) -> TorchSteps:
        return TorchSteps(self.model, self.model.init_state(1, room, rolling), room, self.device)

    @torch.inference_mode()
    def join(self, parts: Sequence[TorchSteps], of_row: Sequence[int]) -> TorchSteps:
        states, room = [part.state for part in parts], parts[0].room
        if isinstance(self.model, Transformer) and self.model.shares_prompts and type(states[0]) is KVCache:
            own = room if states[0].window is not None else max(room - max(state.length for state in states), 1)
            state: Any = PromptCache(states, of_row, own)
        elif len(states) == 1:
            state = states[0].take(torch.zeros(len(of_row), dtype=torch.long, device=self.device))
        else:
            state = type(states[0]).join([states[i] for i in of_row])
        return TorchSteps(self.model, state, room, self.device)


class TorchSourcePlayer:
    """Obeys `musictx.model.steps.SourcePlayer`."""

    def __init__(self, model: SourceModel, device: str = "cpu") -> None:
        self.model, self.device = model, device

    @torch.inference_mode()
    def begin(self, source: NDArray[np.int64], room: int) -> TorchSteps:
        state = self.model.init_state(torch.from_numpy(source).to(self.device), room)
        return TorchSteps(self.model, state, room, self.device)


def numbers(logits: Tensor) -> Logits:
    wide: Logits = logits.to(torch.promote_types(logits.dtype, torch.float32)).cpu().numpy()
    return wide
