"""Attention over a cache that the caller keeps, as nodes of a graph.

The cache is R slots in any order: keys transposed, (B, H, Dk, R), so that a step reads them as they lie, and values (B,
H, R, D). `held` (B, R) is the index of the token in each slot, else `EMPTY`.

The first `sharing` rows also see P shared slots: their prompt, in memory once. Each row has its own product: in a
common one its rounding would depend on the number of others. All rows ask one head before the next, so its keys stay
near the processor.
"""

from __future__ import annotations

from typing import Any

from musictx.model.onnx.graph import Graph
from musictx.model.onnx.position import Form

EMPTY = -(2**40)  # so far back that no window reaches it
EVERYTHING = 2**32  # a window without an end
HIDDEN = float("-inf")


class Slots:
    """The masks and distances of the cache's slots, for all layers."""

    def __init__(self, g: Graph, config: Any, form: Form, index: str) -> None:
        self.g, self.form, self.n_heads, self.d_head = g, form, config.n_heads, config.d_model // config.n_heads
        held, shared_held = g.input("held", "int64", "B", "R"), g.input("shared_held", "int64", 1, "P")
        self.sharing, self.window = g.input("sharing", "int64", 1), g.input("window", "int64", 1)
        others = g.op("Sub", g.op("Shape", index, start=0, end=1), self.sharing)
        self.to_all = g.op("Concat", g.const([0] * 4), others, g.const([0] * 3), axis=0)  # sizes of a padding
        self.rooms = g.op("Concat", *(g.op("Shape", x, start=1, end=2) for x in (shared_held, held, index)), axis=0)
        self.own_visibility = self._visibility(index, g.op("Concat", held, index, axis=1))
        self.shared_visibility = self._visibility(self._sharers(index), shared_held)

    def last(self, q: str) -> str:
        """The last query of each row; later layers ask no others."""
        g = self.g
        pairs = (*self.own_visibility, *self.shared_visibility)
        q, own, own_mask, shared, shared_mask = (g.op("Gather", x, g.const([-1]), axis=2) for x in (q, *pairs))
        self.own_visibility, self.shared_visibility = (own, own_mask), (shared, shared_mask)
        return q

    def find(self, layer: int, q: str, k: str, v: str) -> str:
        """The output (B, H, T, D) of queries (B, H, T, Dk) over all slots and the new keys (B, H, Dk, T)."""
        g, h, d, width = self.g, self.n_heads, self.d_head, self.d_head + self.form.more_key_width
        old_k = g.input(f"keys_{layer}", "float32", "B", h, width, "R")
        old_v = g.input(f"values_{layer}", "float32", "B", h, "R", d)
        shared_k = g.input(f"shared_keys_{layer}", "float32", h, 1, width, "P")
        shared_v = g.input(f"shared_values_{layer}", "float32", h, 1, "P", d)
        own = g.op("Concat", g.op("MatMul", q, old_k), g.op("MatMul", q, k), axis=3)  # (B, H, T, R + T)
        queries = self._sharers(q)
        shared = self._masked_logits(queries, self._shared_product(queries, shared_k), self.shared_visibility)
        shared = g.op("Pad", shared, self.to_all, g.const(HIDDEN, "float32"))  # (B, H, T, P)
        logits = g.op("Concat", shared, self._masked_logits(q, own, self.own_visibility), axis=3)
        of_shared, of_old, of_new = g.split(g.op("Softmax", logits, axis=-1), 3, 3, self.rooms)
        output = g.op("Add", g.op("MatMul", of_old, old_v), g.op("MatMul", of_new, v))
        shared_output = self._shared_product(self._sharers(of_shared), shared_v)
        return g.op("Add", output, g.op("Pad", shared_output, self.to_all))

    def _visibility(self, index: str, held: str) -> tuple[str, str]:
        """Distances (B, 1, T, S) from keys (B or 1, S) to tokens; and -inf for keys ahead or out of the window, else
        0."""
        g = self.g
        distance = g.op("Sub", g.op("Unsqueeze", index, g.const([1, 3])), g.op("Unsqueeze", held, g.const([1, 2])))
        near = g.op("Less", distance, self.window)
        sees = g.op("And", g.op("GreaterOrEqual", distance, g.const(0)), near)
        return distance, g.op("Where", sees, g.const(0, "float32"), g.const(HIDDEN, "float32"))

    def _sharers(self, x: str) -> str:
        return self.g.op("Slice", x, self.g.const([0]), self.sharing, self.g.const([0]))

    def _shared_product(self, x: str, shared: str) -> str:
        """The products of sharers (N, H, T, ·) with the shared (H, 1, ·, ·)."""
        product = self.g.op("MatMul", self.g.op("Transpose", x, perm=[1, 0, 2, 3]), shared)
        return self.g.op("Transpose", product, perm=[1, 0, 2, 3])

    def _masked_logits(self, q: str, logits: str, visibility: tuple[str, str]) -> str:
        """Logits plus those of distances; hidden keys have -inf."""
        g, (distance, hidden) = self.g, visibility
        if more := self.form.logits(q, distance):
            logits = g.op("Add", logits, more)
        return g.op("Add", logits, hidden)
