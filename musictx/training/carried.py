"""The state that a recurrent model carries from batch to batch, as a checkpoint keeps it."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from musictx.model.additive import Past
from musictx.model.recurrent import RecurrentState

Gather = Callable[[Tensor], Tensor]  # (·) of each process -> (processes, ·)


def pack(state: RecurrentState, gather: Gather) -> dict[str, Any]:
    """All rows of all processes, in the order of the global batch."""
    hidden = [gather(x).transpose(0, 1).flatten(1, 2) for x in state.hidden]  # (layers, rows, C)
    packed: dict[str, Any] = {"hidden": hidden, "length": state.length}
    if state.past is not None:
        packed["past"] = gather(state.past.rows).flatten(0, 1)
        packed["alive"] = gather(state.past.alive.byte()).flatten(0, 1)
        packed["end"] = state.past.end
    return packed


def unpack(packed: dict[str, Any], rank: int, world_size: int, device: torch.device) -> RecurrentState:
    """The rows of one of the processes."""
    hidden = tuple(x.chunk(world_size, 1)[rank].contiguous().to(device) for x in packed["hidden"])
    past = None
    if "past" in packed:
        rows, alive = (packed[name].chunk(world_size)[rank].to(device) for name in ("past", "alive"))
        past = Past(rows, alive.bool(), packed["end"])
    return RecurrentState(hidden, past, packed["length"])
