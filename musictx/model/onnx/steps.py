"""Steps of a decoder in numpy, on ONNX Runtime, without PyTorch.

The cache is whole arrays that the graph reads as they lie: nothing of them is copied for a step. They grow by blocks of
slots. With a window they end at its size, and new tokens take the oldest slots.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from musictx.errors import ConfigError
from musictx.model.onnx.decoder import EMPTY, EVERYTHING
from musictx.model.onnx.graph import Array
from musictx.model.onnx.keyboard import LONG_S
from musictx.model.onnx.session import OnnxModel

SLOTS = 128  # the cache grows by a multiple of this: each growth copies it, and empty slots take time
BLOCK = 256  # tokens of a prompt that are read at once
ROW_AXIS = {"keys": 1, "values": 1, "recent": 1, "clock": 0, "keyboard": 0, "held": 0, "length": 0}
SLOT_AXIS = {"keys": -1, "values": -2, "held": -1}


class OnnxSteps:
    """Some rows of a decoder: what they have seen, and their next steps. Cached steps equal one full pass."""

    def __init__(self, model: OnnxModel, rows: int = 1, window: int | None = None) -> None:
        """With a `window` each token sees at most so many, itself included, and memory stays constant."""
        self.model, self.window = model, window
        self.most = None if window is None else -(-window // SLOTS) * SLOTS  # slots
        sizes: dict[int | str, int] = {"B": rows, "R": 1}
        self.state: dict[str, Array] = {
            "held": np.full((rows, 1), EMPTY, np.int64),  # the index of the token in each slot
            "length": np.zeros(rows, np.int64),  # tokens that each row has seen
        }
        parts: dict[str, list[Array]] = {}
        for name, dtype, shape in model.inputs:
            kind = name.partition("_")[0]
            if kind in ROW_AXIS and kind != "held":
                parts.setdefault(kind, []).append(np.zeros([sizes.get(n) or int(n) for n in shape], dtype))
        for kind, first in parts.items():  # each layer lies as one piece
            self.state[kind] = np.stack(first) if kind in ("keys", "values") else first[0]
        if "keyboard" in self.state:
            self.state["keyboard"][:, 1] = LONG_S  # all keys are up, and none was ever struck

    @property
    def rows(self) -> int:
        return len(self.state["length"])

    def prefill(self, ids: Array) -> Array:
        """Reads ids (B, T) in blocks -> logits (B, V) after the last. Raises ConfigError for more tokens than the model
        has positions."""
        self._check_reach(ids.shape[1])
        for start in range(0, ids.shape[1], BLOCK):
            logits = self._run(ids[:, start : start + BLOCK])
        return logits

    def step(self, ids: Array) -> Array:
        """One token a row, ids (B,) -> logits (B, V)."""
        return self.prefill(ids[:, None])

    def move(self, rows: Array) -> None:
        """Row b becomes what row rows[b] was, (B,)."""
        to = np.flatnonzero(rows != np.arange(self.rows))
        for name, x in self.state.items():
            by_row = np.moveaxis(x, ROW_AXIS[name], 0)
            by_row[to] = by_row[rows[to]]

    def take(self, rows: Array) -> OnnxSteps:
        """These rows (n,), in that order, with a state of their own."""
        return self._with({name: x.take(rows, ROW_AXIS[name]) for name, x in self.state.items()})

    @staticmethod
    def join(parts: Sequence[OnnxSteps], of_row: Sequence[int]) -> OnnxSteps:
        """Steps of one model and window whose row b goes on from parts[of_row[b]], each of one row, as it would
        alone."""
        room = max(part.state["held"].shape[1] for part in parts)
        states = [part._widened(room) for part in parts]
        rows = [states[of] for of in of_row]
        return parts[0]._with({name: np.concatenate([x[name] for x in rows], ROW_AXIS[name]) for name in rows[0]})

    def _with(self, state: dict[str, Array]) -> OnnxSteps:
        other = OnnxSteps.__new__(OnnxSteps)
        other.model, other.window, other.most, other.state = self.model, self.window, self.most, state
        return other

    def _check_reach(self, t: int) -> None:
        length, reach = int(self.state["length"].max()) + t, self.model.reach
        if reach is not None and length > reach:
            raise ConfigError("max_positions", got=reach, why=f"{length} tokens are more than this model has positions")

    def _widened(self, room: int) -> dict[str, Array]:
        """The state with so many slots; it shares what needs no more."""
        wide = dict(self.state)
        if wide["held"].shape[1] == room:
            return wide
        for name, axis in SLOT_AXIS.items():
            old = self.state[name]
            shape = list(old.shape)
            shape[axis] = room
            wide[name] = np.full(shape, EMPTY if name == "held" else 0, old.dtype)
            np.moveaxis(wide[name], axis, -1)[..., : old.shape[axis]] = np.moveaxis(old, axis, -1)
        return wide

    def _run(self, ids: Array) -> Array:
        state = self.state
        index = state["length"][:, None] + np.arange(ids.shape[1])  # (B, T)
        feed = {name: x for name, x in state.items() if name not in ("keys", "values", "length")}
        feed |= {"ids": ids.astype(np.int64, copy=False), "index": index}
        feed["window"] = np.array([EVERYTHING if self.window is None else self.window])
        for name in ("keys", "values"):
            feed |= {f"{name}_{layer}": x for layer, x in enumerate(state[name])}
        new = dict(zip(self.model.outputs, self.model.session.run(self.model.outputs, feed), strict=True))
        slots = index if self.most is None else index % self.most
        if slots.max() >= state["held"].shape[1]:  # only now: the graph would have read empty slots
            room = -(-(int(index.max()) + 1) // SLOTS) * SLOTS
            state = self.state = self._widened(min(room, self.most or room))
        for row, at in enumerate(slots):  # where a block is longer than the window, its last tokens stay
            state["held"][row, at] = index[row]
            state["keys"][:, row][..., at] = new["new_keys"][:, row]
            state["values"][:, row][:, :, at] = new["new_values"][:, row]
        state |= {name: new[f"new_{name}"] for name in ("recent", "clock", "keyboard") if name in state}
        state["length"] += ids.shape[1]
        logits: Array = new["logits"]
        return logits
