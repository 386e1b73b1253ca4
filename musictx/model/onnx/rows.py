"""Rows of a decoder that one call of ONNX Runtime reads together, in numpy.

The graph reads the cache's arrays as they lie. They grow by blocks of slots, one array after another, so that memory
holds no second cache. With a window new tokens take the oldest slots. Shared slots are never written.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from musictx.model.onnx.graph import Array
from musictx.model.onnx.session import OnnxModel
from musictx.model.onnx.slots import EMPTY, EVERYTHING
from musictx.model.settings import LONG_S

SLOTS = 128  # a cache has a multiple of this: each growth copies it, and empty slots take time
SLOT_AXIS = {"keys": -1, "values": -2, "held": -1}

State = dict[str, Array]  # by the names of the graph's inputs; all has rows first, but `recent` layers


class OnnxRows:
    """The caches of some rows."""

    def __init__(self, model: OnnxModel, window: int | None, state: State, shared: State, sharing: int) -> None:
        """The first `sharing` rows see the slots of `shared` too."""
        self.model, self.window, self.state, self.shared, self.sharing = model, window, state, shared, sharing
        self.most = None if window is None else -(-window // SLOTS) * SLOTS  # slots
        self.shared_feed = {"sharing": np.array([sharing]), "shared_held": shared["held"]}
        self.shared_feed["window"] = np.array([EVERYTHING if window is None else window])
        for name, x in shared.items():
            if name.startswith(("keys", "values")):
                self.shared_feed[f"shared_{name}"] = x.swapaxes(0, 1)  # (H, 1, ·, ·)

    def __len__(self) -> int:
        return len(self.state["length"])

    def read(self, ids: Array) -> Array:
        """One block, ids (B, T) -> logits (B, V) after the last."""
        state = self.state
        index = state["length"][:, None] + np.arange(ids.shape[1])  # (B, T)
        feed = {name: x for name, x in state.items() if name not in ("length", "start")}
        feed |= self.shared_feed | {"ids": ids.astype(np.int64, copy=False), "index": index}
        new = self.model.run(feed)
        del feed  # it would keep the cache that grows
        slots = index - state["start"][:, None]
        if self.most is not None:
            slots %= self.most
        if (last := int(slots.max())) >= slots_of(state):  # only now: the graph would have read empty slots
            widen(state, -(-(last + 1) // SLOTS) * SLOTS)
        rows = np.arange(len(ids))[:, None]
        state["held"][rows, slots] = index  # where a block is longer than the window, its last tokens stay
        for layer, (k, v) in enumerate(zip(new["new_keys"], new["new_values"], strict=True)):
            state[f"keys_{layer}"][rows, :, :, slots] = k.transpose(0, 3, 1, 2)
            state[f"values_{layer}"][rows, :, slots] = v.transpose(0, 2, 1, 3)
        state |= {name: new[f"new_{name}"] for name in ("recent", "clock", "keyboard") if name in state}
        state["length"] += ids.shape[1]
        logits: Array = new["logits"]
        return logits

    def move(self, rows: Array) -> None:
        """Row b becomes the former row rows[b], (B,), of the same prompt."""
        to = np.flatnonzero(rows != np.arange(len(self)))
        for name, x in self.state.items():
            by_row = np.moveaxis(x, row_axis(name), 0)
            by_row[to] = by_row[rows[to]]

    def take(self, rows: Array) -> OnnxRows:
        """These rows, sharers first, with a state of their own."""
        state = {name: x.take(rows, row_axis(name)) for name, x in self.state.items()}
        return OnnxRows(self.model, self.window, state, self.shared, int((rows < self.sharing).sum()))


def empty_state(model: OnnxModel, rows: int) -> State:
    """The state of empty rows, without slots."""
    sizes: dict[int | str, int] = {"B": rows, "R": 0}
    state: State = {
        "held": np.zeros((rows, 0), np.int64),  # the index of the token in each slot
        "length": np.zeros(rows, np.int64),  # tokens that each row has seen
        "start": np.zeros(rows, np.int64),  # how many of them have no slot of its own
    }
    for name, dtype, shape in model.inputs:
        if name.partition("_")[0] in ("keys", "values", "recent", "clock", "keyboard"):
            state[name] = np.zeros([sizes[n] if n in sizes else int(n) for n in shape], dtype)
    if "keyboard" in state:
        state["keyboard"][:, 1] = LONG_S  # all keys are up, and none was ever struck
    return state


def slots_of(state: State) -> int:
    """The number of slots of each row."""
    return int(state["held"].shape[1])


def sharer_state(state: State) -> State:
    """A row that goes on after shared slots, and has none of its own."""
    none = {name: x.take(np.arange(0), axis) for name, x in state.items() if (axis := slot_axis(name))}
    return state | none | {"start": state["length"]}


def widen(state: State, room: int) -> None:
    """Gives each row so many slots."""
    if slots_of(state) == room:
        return
    for name, old in state.items():
        if axis := slot_axis(name):
            shape = list(old.shape)
            shape[axis] = room
            state[name] = np.full(shape, EMPTY if name == "held" else 0, old.dtype)
            np.moveaxis(state[name], axis, -1)[..., : old.shape[axis]] = np.moveaxis(old, axis, -1)


def concatenate(states: Sequence[State]) -> State:
    """The rows of all states, with as many slots as the longest has."""
    room, wide = max(map(slots_of, states)), [dict(state) for state in states]
    for state in wide:
        widen(state, room)
    return {name: np.concatenate([state[name] for state in wide], row_axis(name)) for name in wide[0]}


def row_axis(name: str) -> int:
    return int(name == "recent")


def slot_axis(name: str) -> int | None:
    return SLOT_AXIS.get(name.partition("_")[0])
