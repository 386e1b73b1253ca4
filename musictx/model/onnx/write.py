"""Writes a graph with its weights as a whole ONNX file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx

from musictx.errors import UserError
from musictx.files import replacing
from musictx.model.onnx.decoder import decoder
from musictx.model.onnx.graph import BITS, IR, OPSET, OURS, Array, Graph, Value, numbers
from musictx.model.onnx.position import to

KEY = "musictx"
MOST = 2**31 - 2**24  # bytes of weights: a file of this format has less than 2 GiB


def model_of(graph: Graph, weights: Mapping[str, Array] | None = None) -> Any:
    """The graph as ONNX's own object; without weights it has their sizes and no numbers."""
    make, parts = onnx.helper, [onnx.numpy_helper.from_array(x, name) for name, x in graph.constants.items()]

    def declared(values: list[Value]) -> list[Any]:
        return [make.make_tensor_value_info(v.name, to(v.dtype), v.shape) for v in values]

    nodes = [
        make.make_node(n.op, n.inputs, n.outputs, name=n.outputs[0], domain=OURS * (n.op == BITS), **n.attributes)
        for n in graph.nodes
    ]
    for name, value in graph.weights.items():
        data = None if weights is None else weights[name].tobytes()
        parts.append(onnx.TensorProto(name=name, data_type=to(value.dtype), dims=map(int, value.shape), raw_data=data))
    whole = make.make_graph(nodes, "decoder", declared(graph.inputs), declared(graph.outputs), parts)
    domains = [make.make_opsetid("", OPSET), *([make.make_opsetid(OURS, 1)] if graph.int8 else [])]
    return make.make_model(whole, opset_imports=domains, ir_version=IR, producer_name=KEY)


def write_onnx(path: Path, config: Any, header: Mapping[str, Any], tensors: Mapping[str, Array], weights: str) -> Graph:
    """Writes a model, the whole file or nothing. `header` is that of its bundle, `tensors` has those of its state.
    Raises UserError for a model that is too large for one file."""
    graph = decoder(config, int8=weights == "int8")
    if (size := sum(each.size for each in graph.weights.values())) > MOST:
        raise UserError(
            f"a file of this kind has less than 2 GiB, this model {size / 2**30:.1f}", "export a smaller one"
        )
    model = model_of(graph, numbers(graph, tensors))
    said = {"licence": header["licence"], "tokenizer": header["tokenizer"], "corpus": header["corpus"]}
    said |= {"citation": str(header["notes"].get("citation", "")), "weights": weights, KEY: json.dumps(header)}
    onnx.helper.set_model_props(model, said)
    with replacing(path) as partial:
        partial.write_bytes(model.SerializeToString())
    return graph
