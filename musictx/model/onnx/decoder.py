"""A decoder as one graph: more tokens after a cache that the caller keeps."""

from __future__ import annotations

from typing import Any

from musictx.model.onnx.blocks import Blocks
from musictx.model.onnx.graph import Graph
from musictx.model.onnx.keyboard import add_logits, features
from musictx.model.onnx.position import FORMS, to
from musictx.model.onnx.slots import Slots
from musictx.model.settings import N_KEYS


def decoder(config: Any, int8: bool = False) -> Graph:
    """The graph of a `TransformerConfig`, or of its fields.

    It takes ids (B, T), their index in their rows, and the caches. It gives logits (B, V) after the last, and the new
    keys and values of all layers, (L, B, H, Dk, T) and (L, B, H, T, D).
    """
    g, c = Graph(int8), config
    ids = g.input("ids", "int64", "B", "T")
    layers = Layers(g, c, ids)
    x = g.op("Gather", g.weight("embed.weight", c.vocab_size, c.d_model), ids, axis=0)  # (B, T, C)
    if c.cycle > 1:
        place = g.op("Mod", g.op("Sub", layers.index, g.const(1)), g.const(c.cycle))
        x = g.op("Add", x, g.op("Gather", g.weight("place.weight", c.cycle, c.d_model), place, axis=0))
    x = g.reshape(layers.form.place(x), -1, c.d_model)  # (B · T, C), and so between all layers
    for layer in range(c.n_layers):
        x = layers.feed(layer, layers.attend(layer, x))
    layers.put_out()
    y = x if c.norm == "post" else g.norm(x, "norm", c.d_model)  # (B, C)
    final = g.output("logits", "float32", "B", c.vocab_size)
    if c.keyboard == "none":
        g.linear(y, "embed", c.d_model, c.vocab_size, bias=False, named=final)
    else:
        key_features = features(g, c, ids, g.input("keyboard", "float64", "B", 2, N_KEYS))
        add_logits(g, c, g.linear(y, "embed", c.d_model, c.vocab_size, bias=False), y, key_features)
    return g


class Layers(Blocks):
    """Layers that read a cache."""

    def __init__(self, g: Graph, config: Any, ids: str, name: str = "blocks") -> None:
        super().__init__(g, config, ids, name)
        self.index, c = g.input("index", "int64", "B", "T"), config
        self.form = FORMS[c.position](g, c, self.index, self.clock(ids))
        self.slots = Slots(g, c, self.form, self.index)
        if c.conv > 1:
            self.recent = g.input("recent", "float32", c.n_layers, "B", c.conv - 1, c.d_model)
        self.new: dict[str, list[str]] = {"keys": [], "values": [], "recent": []}  # of each layer

    def clock(self, ids: str) -> str:
        """(B, T) float64 after each id; musical time goes on from the input `clock`."""
        g = self.g
        if self.config.clock != "time":
            return g.op("Cast", self.index, to=to("float64"))
        before = g.input("clock", "float64", "B", 1)
        pace = g.op("Gather", g.weight("pace", self.config.vocab_size), ids, axis=0)
        passed = g.op("CumSum", g.op("Cast", pace, to=to("float64")), g.const(1))
        at = g.op("Add", before, passed)
        g.op("Gather", at, g.const([-1]), axis=1, named=g.output("new_clock", "float64", "B", 1))
        return at

    def attend(self, layer: int, x: str) -> str:
        """Adds attention's output to the stream; in the last layer for the last token of each row alone, (B, C)."""
        g, c = self.g, self.config
        pre_norm = self.pre_norm(layer, x)
        q, k, v = self.heads(layer, self.convolve(layer, pre_norm) if c.conv > 1 else pre_norm)
        self.form.begin(f"{self.name}.{layer}.attend")
        q = self.form.queries(q)
        if layer + 1 == c.n_layers:
            q, x = self.slots.last(q), g.op("Gather", g.reshape(x, *self.size, c.d_model), g.const(-1), axis=1)
        k = g.op("Transpose", self.form.keys(k), perm=[0, 1, 3, 2])  # (B, H, Dk, T)
        output = self.slots.find(layer, q, k, v)  # (B, H, T, D)
        self.new["keys"].append(k)
        self.new["values"].append(v)
        return self.add(layer, x, output)

    def convolve(self, layer: int, x: str) -> str:
        """Adds a weighted sum of the last tokens, (B · T, C)."""
        g, c, before = self.g, self.config, self.config.conv - 1
        x = g.reshape(x, *self.size, c.d_model)
        window = g.op("Concat", g.op("Gather", self.recent, g.const(layer), axis=0), x, axis=1)  # (B, T + before, C)
        taps = g.split(g.weight(f"{self.name}.{layer}.conv.weight", c.conv, c.d_model), 0, c.conv)
        for shift, tap in enumerate(taps):
            end = shift - before or 2**31  # without an end
            shifted = g.op("Slice", window, g.const([shift]), g.const([end]), g.const([1]))
            x = g.op("Add", x, g.op("Mul", shifted, tap))
        self.new["recent"].append(g.op("Slice", window, g.const([-before]), g.const([2**31]), g.const([1])))
        return g.reshape(x, -1, c.d_model)

    def put_out(self) -> None:
        """Makes outputs of each layer's new cache."""
        g, c, h, d = self.g, self.config, self.n_heads, self.d_head
        sizes: dict[str, tuple[int | str, ...]] = {
            "keys": (h, d + self.form.more_key_width, "T"),
            "values": (h, "T", d),
            "recent": (c.conv - 1, c.d_model),
        }
        for name, parts in self.new.items():
            if parts:
                parts = [g.op("Unsqueeze", each, g.const([0])) for each in parts]
                g.op("Concat", *parts, axis=0, named=g.output(f"new_{name}", "float32", c.n_layers, "B", *sizes[name]))
