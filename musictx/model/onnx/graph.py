"""The nodes of an ONNX graph, with names and shapes of weights, and without their numbers."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.errors import UserError

OPSET, OURS, IR = 21, "com.microsoft", 10  # the first are those of every ONNX runtime
BITS = "MatMulNBits"  # of ONNX Runtime: weights in blocks, a scale each; every row of its input has its own scales too
BLOCK = 32  # weights with one scale
WEIGHTS = ("float32", "int8")
MIDDLE = 128  # the uint8 that means 0

Array = NDArray[Any]


class Value(NamedTuple):
    """An input, an output or a weight; a size that is a word is known only at run time."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]

    @property
    def size(self) -> int:
        """Bytes."""
        return prod(int(each) for each in self.shape) * np.dtype(self.dtype).itemsize


class Node(NamedTuple):
    op: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any]


class Graph:
    """Every method that makes a node returns the name of its result."""

    def __init__(self, int8: bool = False) -> None:
        self.int8 = int8  # whether large linear layers have weights in 8 bits
        self.nodes: list[Node] = []
        self.inputs: list[Value] = []
        self.outputs: list[Value] = []
        self.weights: dict[str, Value] = {}
        self.tensors: dict[str, list[int]] = {}  # shapes of the model's own
        self.constants: dict[str, Array] = {}
        self._known: dict[tuple[Any, ...], str] = {}  # constants by what they are

    @property
    def n_parameters(self) -> int:
        """The number of learned numbers: all but tables of the tokenizer."""
        tables = {v.name for v in self.weights.values() if v.dtype == "int64"} | {"pace"}
        return sum(prod(shape) for name, shape in self.tensors.items() if name not in tables)

    def input(self, name: str, dtype: str, *shape: int | str) -> str:
        self.inputs.append(Value(name, dtype, shape))
        return name

    def output(self, name: str, dtype: str, *shape: int | str) -> str:
        """A name for `named=` of the node that makes this output."""
        self.outputs.append(Value(name, dtype, shape))
        return name

    def op(self, op: str, *inputs: str, named: str = "", **attributes: Any) -> str:
        """A node with one result, called `named` or after its number."""
        result = named or f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(Node(op, list(inputs), [result], attributes))
        return result

    def split(self, x: str, axis: int, n: int, sizes: str = "") -> list[str]:
        """n parts along an axis, of equal or these sizes."""
        parts = [f"split_{len(self.nodes)}_{k}" for k in range(n)]
        alike = {} if sizes else {"num_outputs": n}
        self.nodes.append(Node("Split", [x, sizes] if sizes else [x], parts, {"axis": axis} | alike))
        return parts

    def const(self, value: Any, dtype: str = "int64") -> str:
        """Numbers of the graph itself, each only once."""
        array = np.array(value, dtype)
        key = dtype, array.shape, array.tobytes()
        if key not in self._known:
            self._known[key] = f"const_{len(self.constants)}"
            self.constants[self._known[key]] = array
        return self._known[key]

    def weight(self, name: str, *shape: int, dtype: str = "float32") -> str:
        """A tensor of the model."""
        self.weights[name] = Value(name, dtype, shape)
        if ":" not in name:
            self.tensors[name] = [*shape]
        return name

    def linear(
        self, x: str, name: str, n_in: int, n_out: int, *, bias: bool = True, exact: bool = False, named: str = ""
    ) -> str:
        """(N, in) -> (N, out). `exact` keeps its weights in float32."""
        biases = [self.weight(f"{name}.bias", n_out)] if bias else []
        if exact or not self.int8:
            return self.op("Gemm", x, self.weight(f"{name}.weight", n_out, n_in), *biases, named=named, transB=1)
        n, self.tensors[f"{name}.weight"] = -(-n_in // BLOCK), [n_out, n_in]
        whole = self.weight(f"{name}.weight:int8", n_out, n, BLOCK, dtype="uint8")
        scale = self.weight(f"{name}.weight:scale", n_out, n)
        size = {"K": n_in, "N": n_out, "bits": 8, "block_size": BLOCK, "accuracy_level": 4}  # 4: products of int8
        return self.op(BITS, x, whole, scale, *(["", "", *biases] if biases else []), named=named, **size)

    def norm(self, x: str, name: str, width: int) -> str:
        """A LayerNorm of the last axis."""
        scale, bias = self.weight(f"{name}.weight", width), self.weight(f"{name}.bias", width)
        return self.op("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-5)

    def reshape(self, x: str, *shape: int | str) -> str:
        """A view; each size is a number, or the name of a scalar (1,)."""
        if all(isinstance(each, int) for each in shape):
            return self.op("Reshape", x, self.const(shape))
        parts = [each if isinstance(each, str) else self.const([each]) for each in shape]
        return self.op("Reshape", x, self.op("Concat", *parts, axis=0))


def numbers(graph: Graph, tensors: Mapping[str, Array]) -> dict[str, Array]:
    """All weights of a graph, from the tensors of its model. Raises UserError for int8 of NaN or infinity."""
    arrays: dict[str, Array] = {}
    for name in graph.tensors:
        tensor, whole, scale = tensors[name], f"{name}:int8", f"{name}:scale"
        if name in graph.weights:
            arrays[name] = tensor
        if whole in graph.weights:
            arrays[whole], arrays[scale] = quantise(tensor)
    for name, value in graph.weights.items():
        arrays[name] = np.ascontiguousarray(arrays[name], value.dtype)
        if arrays[name].shape != value.shape:
            raise ValueError(f"{name} is {arrays[name].shape}, its graph takes {value.shape}")
        if graph.int8 and value.dtype == "float32" and not np.isfinite(arrays[name]).all():
            what = f"{name.partition(':')[0]} has NaN or infinity, which products in 8 bits would hide"
            raise UserError(what, "train it again with a lower lr=")
    return arrays


def quantise(weight: Array) -> tuple[Array, Array]:
    """(out, in) -> uint8 (out, blocks, 32), zeros behind the end of a row, and float32 scales (out, blocks)."""
    n_out, n_in = weight.shape
    blocks = np.pad(weight.astype(np.float32), ((0, 0), (0, -n_in % BLOCK))).reshape(n_out, -1, BLOCK)
    with np.errstate(invalid="ignore", over="ignore"):  # the scale of NaN is NaN
        scale = np.maximum(np.abs(blocks).max(2), 1e-12) / np.float32(127)
        return (np.rint(blocks / scale[..., None]) + MIDDLE).astype(np.uint8), scale
