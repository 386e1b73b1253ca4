"""The parts of a layer that an encoder and a decoder share, as nodes of a graph."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from musictx.model.onnx.graph import Graph

RMS_EPSILON = 2.0**-23  # PyTorch's: the rounding of float32


class Blocks:
    """Layers whose weights are called after `name`. Between them the stream is (B · T, C)."""

    def __init__(self, g: Graph, config: Any, ids: str, name: str) -> None:
        self.g, self.config, self.name = g, config, name
        self.n_heads, self.d_head = config.n_heads, config.d_model // config.n_heads
        self.size = g.op("Shape", ids, start=0, end=1), g.op("Shape", ids, start=1, end=2)  # B, T
        self.first_v = ""

    def pre_norm(self, layer: int, x: str) -> str:
        """The stream as a layer's attention reads it."""
        c = self.config
        return x if c.norm == "post" else self.g.norm(x, f"{self.name}.{layer}.norm_1", c.d_model)

    def heads(self, layer: int, x: str) -> tuple[str, str, str]:
        """Queries, keys and values (B, H, T, D) of the normed stream, without their positions."""
        g, c, name = self.g, self.config, f"{self.name}.{layer}"
        qkv = g.linear(x, f"{name}.qkv", c.d_model, 3 * c.d_model)
        qkv = g.op("Transpose", g.reshape(qkv, *self.size, 3, self.n_heads, self.d_head), perm=[2, 0, 3, 1, 4])
        qk, v = g.split(qkv, 0, 2, g.const([2, 1]))
        q, k = (g.op("Squeeze", each, g.const([0])) for each in g.split(self.scale_heads(layer, qk), 0, 2))
        v = g.op("Squeeze", v, g.const([0]))
        if c.value_residual and layer:
            own, first = g.split(g.weight(f"{name}.shares", 2), 0, 2)
            v = g.op("Add", g.op("Mul", v, own), g.op("Mul", self.first_v, first))
        self.first_v = self.first_v or v
        return q, k, v

    @cached_property
    def scale(self) -> str:
        """The factors of queries and keys; queries also have that of their products. One number a head: ONNX Runtime
        would move a scalar into the product, which is slower then."""
        scale = np.ones((2, 1, self.n_heads, 1, 1))
        scale[0] = self.d_head**-0.5
        return self.g.const(scale * (self.d_head**0.5 if self.config.qk_norm else 1), "float32")

    @cached_property
    def no_gain(self) -> str:
        return self.g.const(np.ones((1, 1, self.n_heads, 1, 1)), "float32")

    def scale_heads(self, layer: int, qk: str) -> str:
        """Queries and keys (2, B, H, T, D), normed or not."""
        g, c = self.g, self.config
        if not c.qk_norm:
            return g.op("Mul", qk, self.scale)
        gain = g.op("Unsqueeze", g.weight(f"{self.name}.{layer}.gain", c.n_heads), g.const([0, 1, 3, 4]))
        gain = g.op("Mul", g.op("Concat", gain, self.no_gain, axis=0), self.scale)
        squares = g.op("ReduceSumSquare", qk, g.const([-1]), keepdims=1)
        length = g.op("Sqrt", g.op("Add", squares, g.const(RMS_EPSILON * self.d_head, "float32")))
        return g.op("Mul", g.op("Div", qk, length), gain)

    def add(self, layer: int, x: str, output: str) -> str:
        """Adds attention's output (B, H, T, D) to the stream."""
        g, c, name = self.g, self.config, f"{self.name}.{layer}"
        output = g.reshape(g.op("Transpose", output, perm=[0, 2, 1, 3]), -1, c.d_model)
        x = g.op("Add", x, g.linear(output, f"{name}.project", c.d_model, c.d_model))
        return g.norm(x, f"{name}.norm_1", c.d_model) if c.norm == "post" else x

    def feed(self, layer: int, x: str) -> str:
        """Adds the MLP's output to the stream."""
        g, c, name = self.g, self.config, f"{self.name}.{layer}"
        gated, post = c.mlp == "swiglu", c.norm == "post"
        wide = g.linear(
            x if post else g.norm(x, f"{name}.norm_2", c.d_model), f"{name}.up", c.d_model, c.d_ff * (1 + gated)
        )
        if gated:
            content, gate = g.split(wide, 1, 2)
            wide = g.op("Mul", content, g.op("Mul", gate, g.op("Sigmoid", gate)))
        else:
            wide = g.op({"gelu": "Gelu", "relu": "Relu"}[c.mlp], wide)
        x = g.op("Add", x, g.linear(wide, f"{name}.down", c.d_ff, c.d_model))
        return g.norm(x, f"{name}.norm_2", c.d_model) if post else x
