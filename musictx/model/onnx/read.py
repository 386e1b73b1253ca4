"""Opens an ONNX file of ours.

The graph of a file must be the one that its own settings mean. This is seen before ONNX Runtime gets it. So a
stranger's file computes nothing of its own, names no other file, and takes no more memory than its bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import numpy as np
import onnx

from musictx.errors import BundleError, UserError
from musictx.files import all_printable
from musictx.model.onnx.decoder import decoder
from musictx.model.onnx.graph import WEIGHTS, Graph
from musictx.model.onnx.keyboard import KEY_TABLE, is_key_table
from musictx.model.onnx.session import OnnxModel, start
from musictx.model.onnx.settings import checked
from musictx.model.onnx.write import KEY, model_of

MOST_TEXT = 2**24  # bytes of one of its notes
AGAIN = "copy it again, or export its bundle again"


def open_onnx(path: Path, threads: int = 1) -> OnnxModel:
    """Opens a file that `write_onnx` wrote. Raises BundleError for another, for a damaged one, and for one whose graph
    or sizes are not those of its settings."""
    if not path.is_file():
        raise BundleError(f"{path}: no such file", "musictx export writes one")
    try:
        said = notes(path)
    except (ValueError, EOFError, OSError) as error:
        raise BundleError(f"{path} is damaged or not an ONNX file ({error})", AGAIN) from None
    if KEY not in said:
        raise BundleError(f"{path} is not a model of musictx", "give a file that musictx export wrote")
    try:
        header = json.loads(said[KEY])
        config, weights = checked(header["model"]), said.get("weights", "")
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
    """The bytes of a file whose graph is this one. Raises BundleError for others."""
    expected, size = model_of(graph), path.stat().st_size
    least = sum(each.size for each in graph.weights.values())
    if not least < size < least + expected.ByteSize() + 64 * len(graph.weights) + 2 * MOST_TEXT:
        what = f"{path} is damaged: its settings mean weights of {least:,} bytes, the whole file has {size:,}"
        raise BundleError(what, AGAIN)
    content = path.read_bytes()
    try:
        found = onnx.load_model_from_string(content)
    except Exception as error:  # of the library protobuf
        raise BundleError(f"{path} is damaged ({all_printable(str(error))[:200]})", AGAIN) from None
    for tensor in found.graph.initializer:
        value = graph.weights.get(tensor.name)
        if value is not None:
            if len(tensor.raw_data) != value.size:
                raise BundleError(f"{path} is damaged: {all_printable(tensor.name)} has another size", AGAIN)
            if tensor.name == KEY_TABLE and not is_key_table(np.frombuffer(tensor.raw_data, value.dtype)):
                raise BundleError(f"{path} is damaged: {KEY_TABLE} names keys that no piano has", AGAIN)
            tensor.ClearField("raw_data")
    del found.metadata_props[:]
    if found.SerializeToString(deterministic=True) != expected.SerializeToString(deterministic=True):
        what = f"{path} computes something else than its settings mean"
        raise BundleError(what, f"export its bundle again; musictx {version} wrote it")
    return content


def notes(path: Path) -> dict[str, str]:
    """The notes of an ONNX file, of which no more is read. Raises ValueError, EOFError."""
    found = {}
    with open(path, "rb") as file:
        for number in _fields(file, path.stat().st_size):
            if number == 14:  # metadata_props
                entry = BytesIO(_bytes(file))
                both = {which: _bytes(entry).decode() for which in _fields(entry, len(entry.getbuffer()))}
                found[both.get(1, "")] = both.get(2, "")
    return found


def _fields(file: BinaryIO, end: int) -> Iterator[int]:
    """The number of each field of a protobuf message whose content is bytes; goes on where this ends, read or not."""
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
