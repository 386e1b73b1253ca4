"""The head of `model/keyboard.py` as nodes of a graph, for the last of some tokens."""

from typing import Any

import numpy as np

from musictx.model.onnx.graph import Array, Graph
from musictx.model.onnx.position import to
from musictx.model.settings import CLEAR, HIDDEN, LONG_S, N_FEATURES, N_KEYS, RANK, REACH, RELEASE, STRIKE

KEY_TABLE = "keyboard.key"


def features(g: Graph, config: Any, ids: str, before: str) -> str:
    """ids (B, T) after the keys' state (B, 2, 128) float64 -> features (B, 4, 128) after the last; the new state is an
    output."""

    def table(name: str) -> str:
        return g.op("Gather", g.weight(f"keyboard.{name}", config.vocab_size, dtype="int64"), ids, axis=0)

    key, act, wait_us = (table(name) for name in ("key", "act", "wait_us"))  # (B, T)
    one, zero = g.const([1]), g.const(0)
    t = g.op("Shape", ids, start=1, end=2)
    place = g.op("Range", g.const(1), g.op("Add", g.op("Squeeze", t), g.const(1)), g.const(1))  # (T,)
    moved = g.op("Equal", g.op("Unsqueeze", key, g.const([2])), g.const(range(N_KEYS)))  # (B, T, 128)

    def last(kind: int) -> str:
        """(B, 128) the place of the last such act on each key, from 1 on; 0: none yet."""
        acts = g.op("Unsqueeze", g.op("Equal", act, g.const(kind)), g.const([2]))
        at = g.op("Where", g.op("And", moved, acts), g.op("Unsqueeze", place, g.const([1])), zero)
        return g.op("ReduceMax", at, one, keepdims=0)

    def seconds(us: str) -> str:
        return g.op("Div", g.op("Cast", us, to=to("float64")), g.const(1e6, "float64"))

    struck, released = last(STRIKE), last(RELEASE)
    cleared = g.op("ReduceMax", g.op("Where", g.op("Equal", act, g.const(CLEAR)), place, zero), one, keepdims=1)
    now_s = seconds(g.op("CumSum", wait_us, g.const(1)))  # (B, T)
    end_s = g.op("Gather", now_s, g.const([-1]), axis=1)  # (B, 1)
    was_down, was_since_s = (g.op("Squeeze", each, one) for each in g.split(before, 1, 2))
    at_s = g.op("GatherElements", now_s, g.op("Max", g.op("Sub", struck, g.const(1)), zero), axis=1)
    hit = g.op("Greater", struck, zero)
    since_s = g.op("Where", hit, g.op("Sub", end_s, at_s), g.op("Add", was_since_s, end_s))
    long_s = g.const(LONG_S, "float64")
    since_s = g.op("Min", g.op("Where", g.op("Less", struck, cleared), long_s, since_s), long_s)
    up = g.op("Max", released, cleared)
    moves = g.op("Greater", g.op("Max", struck, up), zero)
    down = g.op("Where", moves, g.op("Cast", g.op("Greater", struck, up), to=to("float64")), was_down)
    state = [g.op("Unsqueeze", each, one) for each in (down, since_s)]
    g.op("Concat", *state, axis=1, named=g.output("new_keyboard", "float64", "B", 2, N_KEYS))
    pressed, age_s = (g.op("Cast", each, to=to("float32")) for each in state)  # (B, 1, 128)
    fades = g.op("Exp", g.op("Neg", age_s))
    slowly = g.op("Exp", g.op("Mul", age_s, g.const(-0.5, "float32")))
    grows = g.op("Log", g.op("Add", age_s, g.const(1, "float32")))
    parts = [pressed, g.op("Mul", pressed, fades), g.op("Mul", pressed, grows)]
    return g.op("Concat", *parts, slowly, axis=1)


def add_logits(g: Graph, config: Any, logits: str, y: str, key_features: str) -> str:
    """Logits (B, V) plus the head's, from the model's output y (B, C) and the features (B, 4, 128)."""
    near = g.weight("keyboard.near.weight", HIDDEN, N_FEATURES, 2 * REACH + 1)
    around = g.op("Relu", g.op("Conv", key_features, near, g.weight("keyboard.near.bias", HIDDEN), pads=[REACH, REACH]))
    rows = g.reshape(g.op("Transpose", around, perm=[0, 2, 1]), -1, HIDDEN)
    u = g.reshape(g.linear(rows, "keyboard.read", HIDDEN, RANK, exact=True), -1, N_KEYS, RANK)  # (B, 128, rank)
    steer = g.reshape(g.linear(y, "keyboard.steer", config.d_model, 2 * RANK, exact=True), -1, 2, RANK)
    gained = g.reshape(g.op("MatMul", steer, g.op("Transpose", u, perm=[0, 2, 1])), -1, 2 * N_KEYS)
    none = g.op("Mul", g.op("Gather", gained, g.const([0]), axis=1), g.const(0, "float32"))
    gained = g.op("Concat", gained, none, axis=1)  # (B, 257), 0 for all other ids
    key, act = KEY_TABLE, "keyboard.act"
    strikes, releases = (g.op("Equal", act, g.const(kind)) for kind in (STRIKE, RELEASE))
    slot = g.op("Where", strikes, key, g.op("Add", key, g.const(N_KEYS)))
    slot = g.op("Where", g.op("Or", strikes, releases), slot, g.const(2 * N_KEYS))  # (V,)
    return g.op("Add", logits, g.op("Gather", gained, slot, axis=1), named="logits")


def is_key_table(keys: Array) -> bool:
    """Whether all its keys exist."""
    return bool(np.isin(keys, np.arange(N_KEYS)).all())
