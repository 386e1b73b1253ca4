"""Rows of a decoder that one call of ONNX Runtime reads together, in numpy.

The cache is whole arrays that the graph reads as they lie: nothing of them is copied for a step. They grow by blocks of
slots. With a window they end at its size, and new tokens take the oldest slots. The first rows may share the slots of
their prompt, which nothing is written into.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from musictx.model.onnx.graph import Array
from musictx.model.onnx.keyboard import LONG_S
from musictx.model.onnx.session import OnnxModel
from musictx.model.onnx.slots import EMPTY, EVERYTHING

SLOTS = 128  # a cache has a multiple of this: each growth copies it, and empty slots take time
ROW_AXIS = {"keys": 1, "values": 1, "recent": 1, "clock": 0, "keyboard": 0, "held": 0, "length": 0, "start": 0}
SLOT_AXIS = {"keys": -1, "values": -2, "held": -1}

State = dict[str, Array]


class OnnxRows:
    """What some rows have seen, and their next tokens."""

    def __init__(self, model: OnnxModel, window: int | None, state: State, shared: State, sharing: int) -> None:
        """The first `sharing` rows see the slots of `shared` too."""
        self.model, self.window, self.state, self.shared, self.sharing = model, window, state, shared, sharing
        self.most = None if window is None else -(-window // SLOTS) * SLOTS  # slots
        self.always = {"sharing": np.array([sharing]), "shared_held": shared["held"]}
        self.always["window"] = np.array([EVERYTHING if window is None else window])
        for name in ("keys", "values"):  # each layer (H, 1, ·, ·)
            self.always |= {f"shared_{name}_{layer}": x.swapaxes(0, 1) for layer, x in enumerate(shared[name])}

    def __len__(self) -> int:
        return len(self.state["length"])

    def read(self, ids: Array) -> Array:
        """One block, ids (B, T) -> logits (B, V) after the last."""
        state = self.state
        index = state["length"][:, None] + np.arange(ids.shape[1])  # (B, T)
        feed = {name: x for name, x in state.items() if name not in ("keys", "values", "length", "start")}
        feed |= self.always | {"ids": ids.astype(np.int64, copy=False), "index": index}
        for name in ("keys", "values"):
            feed |= {f"{name}_{layer}": x for layer, x in enumerate(state[name])}
        new = dict(zip(self.model.outputs, self.model.session.run(self.model.outputs, feed), strict=True))
        slots = index - state["start"][:, None]
        if self.most is not None:
            slots %= self.most
        if (last := int(slots.max())) >= state["held"].shape[1]:  # only now: the graph would have read empty slots
            state = self.state = widened(state, -(-(last + 1) // SLOTS) * SLOTS)
        for row, at in enumerate(slots):  # where a block is longer than the window, its last tokens stay
            state["held"][row, at] = index[row]
            state["keys"][:, row][..., at] = new["new_keys"][:, row]
            state["values"][:, row][:, :, at] = new["new_values"][:, row]
        state |= {name: new[f"new_{name}"] for name in ("recent", "clock", "keyboard") if name in state}
        state["length"] += ids.shape[1]
        logits: Array = new["logits"]
        return logits

    def move(self, rows: Array) -> None:
        """Row b becomes what row rows[b] was, (B,), of the same prompt."""
        to = np.flatnonzero(rows != np.arange(len(self)))
        for name, x in self.state.items():
            by_row = np.moveaxis(x, ROW_AXIS[name], 0)
            by_row[to] = by_row[rows[to]]

    def take(self, rows: Array) -> OnnxRows:
        """These rows, sharers first, with a state of their own."""
        state = {name: x.take(rows, ROW_AXIS[name]) for name, x in self.state.items()}
        return OnnxRows(self.model, self.window, state, self.shared, int((rows < self.sharing).sum()))


def fresh(model: OnnxModel, rows: int) -> State:
    """The state of rows that have seen nothing, without slots."""
    sizes: dict[int | str, int] = {"B": rows, "R": 0}
    state: State = {
        "held": np.zeros((rows, 0), np.int64),  # the index of the token in each slot
        "length": np.zeros(rows, np.int64),  # tokens that each row has seen
        "start": np.zeros(rows, np.int64),  # how many of them have no slot of its own
    }
    parts: dict[str, list[Array]] = {}
    for name, dtype, shape in model.inputs:
        kind = name.partition("_")[0]
        if kind in ROW_AXIS and kind != "held":
            parts.setdefault(kind, []).append(np.zeros([sizes.get(n, n) for n in shape], dtype))
    for kind, first in parts.items():  # each layer lies as one piece
        state[kind] = np.stack(first) if kind in ("keys", "values") else first[0]
    if "keyboard" in state:
        state["keyboard"][:, 1] = LONG_S  # all keys are up, and none was ever struck
    return state


def slots_of(state: State) -> int:
    """How many slots each row has."""
    return int(state["held"].shape[1])


def emptied(state: State) -> State:
    """A row that goes on after slots that it shares, and has none of its own."""
    none = {name: x.take(np.arange(0), SLOT_AXIS[name]) for name, x in state.items() if name in SLOT_AXIS}
    return state | none | {"start": state["length"]}


def widened(state: State, room: int) -> State:
    """The state with so many slots; it shares what needs no more."""
    wide = dict(state)
    if slots_of(state) == room:
        return wide
    for name, axis in SLOT_AXIS.items():
        old = state[name]
        shape = list(old.shape)
        shape[axis] = room
        wide[name] = np.full(shape, EMPTY if name == "held" else 0, old.dtype)
        np.moveaxis(wide[name], axis, -1)[..., : old.shape[axis]] = np.moveaxis(old, axis, -1)
    return wide


def one_after_another(states: Sequence[State]) -> State:
    """The rows of all states, with as many slots as the longest has."""
    room = max(map(slots_of, states))
    wide = [widened(state, room) for state in states]
    return {name: np.concatenate([state[name] for state in wide], ROW_AXIS[name]) for name in wide[0]}
