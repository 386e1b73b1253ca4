"""The forms of position of `model/position/` as nodes of a graph."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from musictx.model.onnx.graph import Graph


class Form:
    """No position. `at` (B, T) float64 is the clock; `index` (B, T) int64 counts the tokens of each row."""

    more_key_width = 0
    by_distance = False  # whether `logits` counts distances

    def __init__(self, g: Graph, config: Any, index: str, at: str) -> None:
        self.g, self.config, self.index, self.at = g, config, index, at
        self.n_heads, self.d_head = config.n_heads, config.d_model // config.n_heads

    def place(self, x: str, name: str = "places") -> str:
        """Adds places to the embeddings (B, T, C); their table has this name."""
        return x

    def begin(self, name: str) -> None:
        """Makes the nodes that keys and queries of a layer share; its weights are called after `name`."""
        self.name = name

    def keys(self, k: str) -> str:
        """(B, H, T, D) -> (B, H, T, key width)."""
        return k

    def queries(self, q: str) -> str:
        """(B, H, T, D) -> (B, H, T, key width)."""
        return q

    def logits(self, q: str, distance: str) -> str | None:
        """The logits (B, H, T, S) of the distances (B, 1, T, S) to keys; None without any."""
        return None

    def phases(self, frequency: str) -> tuple[str, str]:
        """cos and sin (B, H or 1, T, F) of the clock times frequencies (H or 1, 1, F) float64, reduced in float64."""
        clock = self.g.op("Unsqueeze", self.at, self.g.const([1, 3]))
        turns = self.g.op("Mul", clock, frequency)
        angle = self.g.op("Mod", turns, self.g.const(2 * math.pi, "float64"), fmod=1)
        angle = self.g.op("Cast", angle, to=to("float32"))
        return self.g.op("Cos", angle), self.g.op("Sin", angle)


class Learned(Form):
    def place(self, x: str, name: str = "places") -> str:
        c = self.config
        table = self.g.weight(f"{name}.weight", c.max_positions, c.d_model)
        return self.g.op("Add", x, self.g.op("Gather", table, self.index, axis=0))


class Sinusoidal(Form):
    def place(self, x: str, name: str = "places") -> str:
        g, c = self.g, self.config.d_model
        frequency = 10_000.0 ** (-np.arange(0, c, 2, dtype=np.float64) / c)
        cos, sin = (
            g.op("Unsqueeze", g.op("Squeeze", each, g.const([1])), g.const([3]))  # (B, T, F, 1)
            for each in self.phases(g.const(frequency[None, None], "float64"))
        )
        both = g.reshape(g.op("Concat", sin, cos, axis=3), 0, 0, -1)
        if c % 2:
            both = g.op("Slice", both, g.const([0]), g.const([c]), g.const([2]))
        return g.op("Add", g.op("Mul", x, g.const(math.sqrt(c), "float32")), both)


class Rotary(Form):
    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        frequency = [10_000 ** (-2 * i / self.d_head) for i in range(self.d_head // 2)]
        self.cos, self.sin = self.phases(self.g.const([[frequency]], "float64"))  # one for all layers

    def keys(self, k: str) -> str:
        g, half = self.g, self.d_head // 2
        a, b, *rest = g.split(k, 3, 2 + self.d_head % 2, g.const([half, half, *[1] * (self.d_head % 2)]))
        first = g.op("Sub", g.op("Mul", a, self.cos), g.op("Mul", b, self.sin))
        second = g.op("Add", g.op("Mul", a, self.sin), g.op("Mul", b, self.cos))
        return g.op("Concat", first, second, *rest, axis=3)

    def queries(self, q: str) -> str:
        return self.keys(q)


class Fourier(Form):
    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.more_key_width = 2 * self.config.n_frequencies

    def begin(self, name: str) -> None:
        super().begin(name)
        g, h, f = self.g, self.n_heads, self.config.n_frequencies
        logs = g.op("Cast", g.weight(f"{name}.log_frequency", h, f), to=to("float64"))
        self.cos, self.sin = self.phases(g.op("Unsqueeze", g.op("Exp", logs), g.const([1])))

    def keys(self, k: str) -> str:
        return self.g.op("Concat", k, self.cos, self.sin, axis=3)

    def queries(self, q: str) -> str:
        g = self.g
        basis = g.weight(f"{self.name}.basis", self.n_heads, self.d_head, 2 * self.config.n_frequencies)
        a, b = g.split(g.op("MatMul", q, basis), 3, 2)  # (B, H, T, F) each
        even = g.op("Add", g.op("Mul", a, self.cos), g.op("Mul", b, self.sin))
        odd = g.op("Sub", g.op("Mul", a, self.sin), g.op("Mul", b, self.cos))
        return g.op("Concat", q, even, odd, axis=3)


class Table(Form):
    by_distance = True

    def logits(self, q: str, distance: str) -> str:
        return self.of_rows(q, distance, 0)

    def of_rows(self, q: str, distance: str, nearest: int) -> str:
        """The logits of a table with rows for distances from `nearest` to the longest one."""
        g, farthest = self.g, self.config.max_distance - 1
        rel = g.weight(f"{self.name}.rel", self.n_heads, farthest - nearest + 1, self.d_head)
        by_distance = g.op("MatMul", q, g.op("Transpose", rel, perm=[0, 2, 1]))  # (B, H, T, M)
        row = g.op("Clip", distance, g.const(nearest), g.const(farthest))
        row = row if nearest == 0 else g.op("Sub", row, g.const(nearest))
        row = g.op("Expand", row, g.const([1, self.n_heads, 1, 1]))
        return g.op("GatherElements", by_distance, row, axis=3)


class TwoSided(Table):
    """Distances below 0 count too: rows for all from -M + 1 to M - 1."""

    def logits(self, q: str, distance: str) -> str:
        return self.of_rows(q, distance, 1 - self.config.max_distance)


FORMS: dict[str, type[Form]] = {
    "relative": Table,
    "relative_fourier": Fourier,
    "rope": Rotary,
    "sinusoidal": Sinusoidal,
    "learned": Learned,
    "none": Form,
}
BOTH_WAYS = FORMS | {"relative": TwoSided}  # for what looks ahead too


def to(dtype: str) -> int:
    """ONNX's number of a type."""
    return {"float32": 1, "uint8": 2, "int64": 7, "bool": 9, "float64": 11}[dtype]
