"""An ONNX file of ours: a graph with its weights, written and opened.

The graph of a file must be the one of its settings, before ONNX Runtime gets it. So a stranger's file computes nothing
of its own, names no other file, and takes no more memory than its bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import onnx

from musictx.errors import BundleError, UserError
from musictx.files import all_printable, replacing
from musictx.model.onnx.decoder import decoder
from musictx.model.onnx.graph import BITS, IR, OPSET, OURS, WEIGHTS, Array, Graph, Value, numbers
from musictx.model.onnx.keyboard import KEY_TABLE, is_key_table
from musictx.model.onnx.position import to
from musictx.model.onnx.session import OnnxModel, start
from musictx.model.onnx.settings import file_settings

KEY = "musictx"
MOST = 2**31 - 2**24  # bytes of weights: a file of this format has less than 2 GiB
MOST_TEXT = 2**24  # bytes of one of its notes
AGAIN = "copy it again, or export its bundle again"


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
    """Writes a model, the whole file or nothing, with its bundle's header. Raises UserError if it is too large for one
    file."""
    graph = decoder(config, int8=weights == "int8")
    if (size := sum(each.size for each in graph.weights.values())) > MOST:
        raise UserError(
            f"a file of this kind has less than 2 GiB, this model {size / 2**30:.1f}", "export a smaller one"
        )
    model = model_of(graph, numbers(graph, tensors))
    props = {"licence": header["licence"], "tokenizer": header["tokenizer"], "corpus": header["corpus"]}
    props |= {"citation": str(header["notes"].get("citation", "")), "weights": weights, KEY: json.dumps(header)}
    onnx.helper.set_model_props(model, props)
    with replacing(path) as partial:
        partial.write_bytes(model.SerializeToString())
    return graph


def open_onnx(path: Path, threads: int = 1) -> OnnxModel:
    """Opens a file of `write_onnx`. Raises BundleError for another, for a damaged one, and for one whose graph or sizes
    are not those of its settings."""
    if not path.is_file():
        raise BundleError(f"{path}: no such file", "musictx export writes one")
    try:
        props = notes(path)
    except (ValueError, EOFError, OSError) as error:
        raise BundleError(f"{path} is damaged or not an ONNX file ({error})", AGAIN) from None
    if KEY not in props:
        raise BundleError(f"{path} is not a model of musictx", "give a file that musictx export wrote")
    try:
        header = json.loads(props[KEY])
        config, weights = file_settings(header["model"]), props.get("weights", "")
        if weights not in WEIGHTS:
            raise ValueError(f"weights={weights}")
    except (UserError, ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise BundleError(f"{path}: its settings are damaged ({all_printable(str(error))[:200]})", AGAIN) from None
    graph = decoder(config, weights == "int8")
    content = _content(path, graph, str(all_printable(header.get("version"))))
    try:
        session = start(content, threads)
    except Exception as error:
        raise BundleError(f"{path}: ONNX Runtime refuses it ({all_printable(str(error))[:200]})", AGAIN) from None
    return OnnxModel(session, graph, config, all_printable(header), weights)


def _content(path: Path, graph: Graph, version: str) -> bytes:
    """The bytes of a file with this graph. Raises BundleError for another graph."""
    expected, size = model_of(graph), path.stat().st_size
    least = sum(each.size for each in graph.weights.values())
    if not least < size < least + expected.ByteSize() + 64 * len(graph.weights) + 2 * MOST_TEXT:
        what = f"{path} is damaged: its settings mean weights of {least:,} bytes, the whole file has {size:,}"
        raise BundleError(what, AGAIN)
    content = path.read_bytes()
    try:
        actual = onnx.load_model_from_string(content)
    except Exception as error:  # of the library protobuf
        raise BundleError(f"{path} is damaged ({all_printable(str(error))[:200]})", AGAIN) from None
    for tensor in actual.graph.initializer:
        value = graph.weights.get(tensor.name)
        if value is not None:
            if len(tensor.raw_data) != value.size:
                raise BundleError(f"{path} is damaged: {all_printable(tensor.name)} has another size", AGAIN)
            if tensor.name == KEY_TABLE and not is_key_table(np.frombuffer(tensor.raw_data, value.dtype)):
                raise BundleError(f"{path} is damaged: {KEY_TABLE} names keys that no piano has", AGAIN)
            tensor.ClearField("raw_data")
    del actual.metadata_props[:]
    if actual.SerializeToString(deterministic=True) != expected.SerializeToString(deterministic=True):
        what = f"{path} computes something else than its settings mean"
        raise BundleError(what, f"export its bundle again; musictx {version} wrote it")
    return content


def notes(path: Path) -> dict[str, str]:
    """The notes of an ONNX file; no more is read. Raises ValueError, EOFError."""
    props = {}
    with open(path, "rb") as file:
        for number in _fields(file, path.stat().st_size):
            if number == 14:  # metadata_props
                entry = BytesIO(_bytes(file))
                both = {which: _bytes(entry).decode() for which in _fields(entry, len(entry.getbuffer()))}
                props[both.get(1, "")] = both.get(2, "")
    return props


def _fields(file: BinaryIO, end: int) -> Iterator[int]:
    """The number of each field of a protobuf message with content of bytes; the caller may read the field or not."""
    while file.tell() < end:
        number, kind = divmod(_varint(file), 8)
        if kind == 0:
            _varint(file)
            continue
        if kind != 2:
            raise ValueError(f"a field of kind {kind}")
        here = file.tell()
        after = _varint(file) + file.tell()
        if after > end:
            raise EOFError("it is cut short")
        file.seek(here)
        yield number
        file.seek(after)


def _bytes(file: BinaryIO) -> bytes:
    if (size := _varint(file)) > MOST_TEXT:
        raise ValueError(f"a note of {size} bytes")
    return file.read(size)


def _varint(file: BinaryIO) -> int:
    value = 0
    for shift in range(0, 70, 7):
        byte = file.read(1)
        if not byte:
            raise EOFError("it is cut short")
        value |= (byte[0] & 127) << shift
        if byte[0] < 128:
            return value
    raise ValueError("a number without an end")
