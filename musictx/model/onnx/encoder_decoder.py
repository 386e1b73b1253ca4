"""An encoder-decoder as two graphs: the source is read once, the decoder attends to it at every step.

The first gives the inputs of the second: `source_keys_0`, `source_values_0` and so on, `source_hidden`, -inf where a
row has ended, and `source_at`, the time of each place, where a table counts distances.
"""

from __future__ import annotations

import numpy as np

from musictx.model.onnx.blocks import Blocks
from musictx.model.onnx.decoder import Layers
from musictx.model.onnx.graph import Graph
from musictx.model.onnx.position import BOTH_WAYS, Form, to
from musictx.model.onnx.slots import HIDDEN
from musictx.model.settings import EncoderDecoderSettings


def encoder(config: EncoderDecoderSettings, int8: bool = False) -> Graph:
    """The graph of the encoder. It takes sources (B, S · voices), PAD where they have ended."""
    g, c = Graph(int8), config.stream(config.source_group)
    source, voices = g.input("source", "int64", "B", "N"), c.source_voices
    chords = g.reshape(source, 0, -1, voices)  # (B, S, voices)
    places = g.op("Squeeze", g.op("Shape", chords, start=1, end=2))
    index = g.op("Range", g.const(0), places, g.const(1))
    index = g.op("Expand", index, g.op("Shape", chords, start=0, end=2))  # (B, S)
    at, own = _steps(g, index, c.source_group), g.op("Cast", index, to=to("float64"))
    form, layers = BOTH_WAYS[c.position](g, c, index, own), Blocks(g, c, index, "encoder")
    x = g.op("Gather", g.weight("embed.weight", c.vocab_size, c.d_model), chords, axis=0)  # (B, S, voices, C)
    if voices > 1:
        x = g.linear(g.reshape(x, -1, voices * c.d_model), "chord", voices * c.d_model, c.d_model)
    x = _add_places(g, c, form, g.reshape(x, *layers.size, c.d_model), index, "source")
    hidden = _padding_mask(g, c, chords, index)
    apart = ""  # how far, (B, 1, S, S)
    if form.by_distance:
        apart = g.op("Sub", *(g.op("Unsqueeze", index, g.const(axes)) for axes in ([1, 3], [1, 2])))
    for layer in range(c.n_encoder_layers):
        q, k, v = layers.heads(layer, layers.pre_norm(layer, x))
        form.begin(f"encoder.{layer}.attend")
        k = g.op("Transpose", form.keys(k), perm=[0, 1, 3, 2])
        output = _attend(g, form, form.queries(q), k, v, apart, hidden)
        x = layers.feed(layer, layers.add(layer, x, output))
    x = g.norm(x, "source.norm", c.d_model)
    _put_out(g, c, layers, BOTH_WAYS[c.position](g, c, index, at), x)
    g.output(hidden, "float32", "B", 1, 1, "S")
    if form.by_distance:
        g.op("Identity", at, named=g.output("source_at", "float64", "B", "S"))
    return g


def _put_out(g: Graph, config: EncoderDecoderSettings, layers: Blocks, form: Form, x: str) -> None:
    """Makes outputs of the source's keys and values for each layer of the decoder, from the encoder's output (B · S,
    C)."""
    c, d = config, layers.d_head
    for layer in range(c.n_layers):
        name = f"decoder.{layer}.cross"
        both = g.linear(x, f"{name}.keys_values", c.d_model, 2 * c.d_model)
        both = g.op("Transpose", g.reshape(both, *layers.size, 2, c.n_heads, d), perm=[2, 0, 3, 1, 4])
        k, v = g.split(both, 0, 2)
        form.begin(f"{name}.attend")
        k = form.keys(g.op("Squeeze", k, g.const([0])))
        keys = g.output(f"source_keys_{layer}", "float32", "B", c.n_heads, d + form.more_key_width, "S")
        g.op("Transpose", k, named=keys, perm=[0, 1, 3, 2])
        values = g.output(f"source_values_{layer}", "float32", "B", c.n_heads, "S", d)
        g.op("Squeeze", v, g.const([0]), named=values)


def target(config: EncoderDecoderSettings, int8: bool = False) -> Graph:
    """The graph of the decoder, as `decoder` makes one. It also takes the outputs of `encoder`."""
    g, c = Graph(int8), config.stream(config.target_group)
    ids = g.input("ids", "int64", "B", "T")
    layers = CrossLayers(g, c, ids, "decoder")
    x = g.op("Gather", g.weight("embed.weight", c.vocab_size, c.d_model), ids, axis=0)
    x = _add_places(g, c, layers.form, x, layers.index, "target")
    for layer in range(c.n_layers):
        x = layers.feed(layer, layers.attend(layer, x))
    layers.put_out()
    x = g.norm(x, "target.norm", c.d_model)
    g.linear(x, "embed", c.d_model, c.vocab_size, bias=False, named=g.output("logits", "float32", "B", c.vocab_size))
    return g


class CrossLayers(Layers):
    """Layers with cross-attention after their self-attention."""

    def clock(self, ids: str) -> str:
        """Also sets `at` (B, T), the step of the next token after each id."""
        g, c = self.g, self.config
        self.hidden = g.input("source_hidden", "float32", "B", 1, 1, "S")
        self.source_at = g.input("source_at", "float64", "B", "S") if BOTH_WAYS[c.position].by_distance else ""
        self.at = _steps(g, self.index, c.target_group)
        return g.op("Cast", self.index, to=to("float64"))

    def attend(self, layer: int, x: str) -> str:
        return self.cross_attend(layer, super().attend(layer, x))

    def cross_attend(self, layer: int, x: str) -> str:
        """Adds cross-attention's output to the stream."""
        g, c, name = self.g, self.config, f"{self.name}.{layer}.cross"
        if layer + 1 == c.n_layers:  # of which only the last tokens are here
            self.at = g.op("Gather", self.at, g.const([-1]), axis=1)
        form = BOTH_WAYS[c.position](g, c, self.index, self.at)
        q = g.linear(g.norm(x, f"{name}.norm", c.d_model), f"{name}.query", c.d_model, c.d_model)
        q = g.op("Transpose", g.reshape(q, self.size[0], -1, c.n_heads, self.d_head), perm=[0, 2, 1, 3])
        q = g.op("Mul", q, g.const(np.full((self.n_heads, 1, 1), self.d_head**-0.5), "float32"))
        form.begin(f"{name}.attend")
        k = g.input(f"source_keys_{layer}", "float32", "B", c.n_heads, self.d_head + form.more_key_width, "S")
        v = g.input(f"source_values_{layer}", "float32", "B", c.n_heads, "S", self.d_head)
        output = _attend(g, form, form.queries(q), k, v, self.apart() if form.by_distance else "", self.hidden)
        output = g.reshape(g.op("Transpose", output, perm=[0, 2, 1, 3]), -1, c.d_model)
        return g.op("Add", x, g.linear(output, f"{name}.project", c.d_model, c.d_model))

    def apart(self) -> str:
        """(B, 1, T, S) distances from the source to the tokens, in rows of a table."""
        g = self.g
        sides = g.op("Unsqueeze", self.at, g.const([1, 3])), g.op("Unsqueeze", self.source_at, g.const([1, 2]))
        return g.op("Cast", g.op("Sub", *sides), to=to("int64"))


def _steps(g: Graph, index: str, group: int) -> str:
    """The steps of a grid (B, T) float64 of tokens, `group` each."""
    return g.op("Cast", g.op("Div", index, g.const(group)), to=to("float64"))


def _add_places(g: Graph, config: EncoderDecoderSettings, form: Form, x: str, index: str, side: str) -> str:
    """The stream (B · T, C) of embeddings (B, T, C) with their places."""
    if config.cycle > 1:
        table = g.weight(f"{side}.beat.weight", config.cycle, config.d_model)
        x = g.op("Add", x, g.op("Gather", table, g.op("Mod", index, g.const(config.cycle)), axis=0))
    return g.reshape(form.place(x, f"{side}.places"), -1, config.d_model)


def _padding_mask(g: Graph, config: EncoderDecoderSettings, chords: str, index: str) -> str:
    """(B, 1, 1, S) -inf where all voices (B, S, voices) are PAD, but at the first place; else 0."""
    ended = g.op("Cast", g.op("Equal", chords, g.const(config.pad)), to=to("int64"))
    ended = g.op("Mul", g.op("ReduceMin", ended, g.const([2]), keepdims=0), index)
    ended = g.op("Unsqueeze", g.op("Greater", ended, g.const(0)), g.const([1, 2]))
    sides = g.const(HIDDEN, "float32"), g.const(0, "float32")
    return g.op("Where", ended, *sides, named="source_hidden")


def _attend(g: Graph, form: Form, q: str, k: str, v: str, distance: str, hidden: str) -> str:
    """The output (B, H, T, D) of queries (B, H, T, Dk) over keys (B, H, Dk, S), without a causal mask."""
    logits = g.op("MatMul", q, k)
    if more := form.logits(q, distance):
        logits = g.op("Add", logits, more)
    return g.op("MatMul", g.op("Softmax", g.op("Add", logits, hidden), axis=-1), v)
