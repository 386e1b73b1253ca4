"""Opens an ONNX file of ours.

The graph of a file must be the one that its own settings mean. This is seen before ONNX Runtime gets it. So a
stranger's file computes nothing of its own, names no other file, and takes no more memory than its bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from musictx.errors import BundleError
from musictx.files import all_printable
from musictx.model.onnx.decoder import decoder
from musictx.model.onnx.graph import Graph, Value
from musictx.model.onnx.keyboard import KEY_TABLE, N_KEYS
from musictx.model.onnx.position import FORMS
from musictx.model.onnx.write import KEY, WEIGHTS, libraries, model_of

MOST_TEXT = 2**24  # bytes of one of its notes
AGAIN = "copy it again, or export its bundle again"
LIMITS = {  # of the sizes in a file's settings, as in `model/sizes.py`
    **dict.fromkeys(("vocab_size", "d_model", "n_heads", "d_ff", "max_distance", "max_positions", "cycle"), 2**20),
    "n_frequencies": 2**20,
    "n_layers": 2**10,
    "conv": 64,
}
TIMED = ("relative_fourier", "rope")  # forms that can count musical time
WORDS: dict[str, tuple[Any, ...]] = {
    "position": tuple(FORMS),
    "clock": ("index", "time"),
    "mlp": ("gelu", "relu", "swiglu"),
    "norm": ("pre", "post"),
    "keyboard": ("none", "head"),
    "qk_norm": (False, True),
    "value_residual": (False, True),
}


class OnnxModel(NamedTuple):
    """An open file: its session of ONNX Runtime, what that takes and gives, and what the bundle's header said."""

    session: Any
    inputs: list[Value]
    outputs: list[str]
    config: Any  # the fields of a `TransformerConfig`
    header: dict[str, Any]
    weights: str

    @property
    def reach(self) -> int | None:
        """How many positions there are; None: unlimited."""
        return int(self.config.max_positions) if self.config.position == "learned" else None

    @property
    def window(self) -> int:
        """How many tokens back it should look in endless music."""
        return int(self.config.trained_length or self.reach or 2 * self.config.max_distance)


def open_onnx(path: Path, threads: int = 1) -> OnnxModel:
    """Opens a file that `write_onnx` wrote. Raises BundleError for another, for a damaged one, and for one whose graph
    or sizes are not those of its settings; UserError where ONNX is not installed."""
    _, runtime = libraries()
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
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise BundleError(f"{path}: its settings are damaged ({all_printable(str(error))[:200]})", AGAIN) from None
    graph = decoder(config, weights == "int8")
    content = _content(path, graph, str(all_printable(header.get("version"))))
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 3
    try:
        session = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its own kinds of exceptions derive from this alone
        raise BundleError(f"{path}: ONNX Runtime refuses it ({all_printable(str(error))[:200]})", AGAIN) from None
    return OnnxModel(
        session, graph.inputs, [each.name for each in graph.outputs], config, all_printable(header), weights
    )


def _content(path: Path, graph: Graph, version: str) -> bytes:
    """The bytes of a file whose graph is this one. Raises BundleError for others."""
    expected, size = model_of(graph), path.stat().st_size
    least = sum(each.size for each in graph.weights.values())
    if not least < size < least + expected.ByteSize() + 64 * len(graph.weights) + 2 * MOST_TEXT:
        what = f"{path} is damaged: its settings mean weights of {least:,} bytes, the whole file has {size:,}"
        raise BundleError(what, AGAIN)
    content = path.read_bytes()
    try:
        found = libraries()[0].load_model_from_string(content)
    except Exception as error:  # of the library protobuf
        raise BundleError(f"{path} is damaged ({all_printable(str(error))[:200]})", AGAIN) from None
    for tensor in found.graph.initializer:
        value = graph.weights.get(tensor.name)
        if value is not None:
            if len(tensor.raw_data) != value.size:
                raise BundleError(f"{path} is damaged: {all_printable(tensor.name)} has another size", AGAIN)
            if tensor.name == KEY_TABLE and not set(np.frombuffer(tensor.raw_data, value.dtype)) <= set(range(N_KEYS)):
                raise BundleError(f"{path} is damaged: {KEY_TABLE} names keys that no piano has", AGAIN)
            tensor.ClearField("raw_data")
    del found.metadata_props[:]
    if found.SerializeToString(deterministic=True) != expected.SerializeToString(deterministic=True):
        what = f"{path} computes something else than its settings mean"
        raise BundleError(what, f"export its bundle again; musictx {version} wrote it")
    return content


def checked(settings: Mapping[str, Any]) -> Any:
    """Settings of a model as its config, without PyTorch. Raises ValueError, AttributeError, TypeError."""
    config = SimpleNamespace(**settings)
    for name, most in LIMITS.items():
        if type(value := getattr(config, name)) is not int or not 1 <= value <= most:
            raise ValueError(f"{name}={value!r}")
    for name, known in WORDS.items():
        if (value := getattr(config, name)) not in known:
            raise ValueError(f"{name}={value!r}")
    if config.d_model % config.n_heads:
        raise ValueError(f"n_heads={config.n_heads} with d_model={config.d_model}")
    if config.clock == "time" and config.position not in TIMED:
        raise ValueError(f"clock=time with position={config.position}")
    if config.trained_length is not None and type(config.trained_length) is not int:
        raise ValueError(f"trained_length={config.trained_length!r}")
    return config


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
