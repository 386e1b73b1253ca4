"""Opens the graphs of a bundle as sessions of ONNX Runtime, with no file in between and without PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import onnx

from musictx.errors import BundleError, UserError
from musictx.files import printable
from musictx.model.header import AGAIN, DAMAGE, BundleHeader, read_header, reason
from musictx.model.onnx.graph import WEIGHTS, Graph, numbers
from musictx.model.onnx.keyboard import KEY_TABLE, is_key_table
from musictx.model.onnx.session import OnnxModel, start
from musictx.model.onnx.settings import checked
from musictx.model.onnx.write import model_of
from musictx.model.settings import TransformerSettings, one_of
from musictx.model.tensors import Tensors, differing


def open_graphs(
    path: Path,
    of: type[TransformerSettings],
    graphs: Sequence[Callable[[Any, bool], Graph]],
    weights: str,
    threads: int,
    header: BundleHeader | None,
) -> list[OnnxModel]:
    """A model of each graph; all have the settings and the weights of one bundle, or checkpoint.

    Raises BundleError for a file that is damaged, or that is not what its header says; ConfigError for unknown weights.
    A `header` that was read before need not be read again.
    """
    one_of("weights", weights, WEIGHTS)
    header = header or read_header(path)
    try:
        config = checked(header.model, of)
    except (UserError, *DAMAGE) as error:
        raise BundleError(f"{path}: its model config is damaged ({reason(error)})", AGAIN) from None
    made = [graph(config, weights == "int8") for graph in graphs]
    try:
        tensors = Tensors(path)
        if wrong := differing({name: shape for each in made for name, shape in each.tensors.items()}, tensors.shapes):
            raise ValueError(wrong)
        held = [numbers(each, tensors) for each in made]
        if KEY_TABLE in held[0] and not is_key_table(held[0][KEY_TABLE]):
            raise ValueError(f"{KEY_TABLE} names keys that no piano has")
    except (UserError, *DAMAGE) as error:
        raise BundleError(f"{path}: its weights are damaged ({reason(error)})", AGAIN) from None
    try:
        sessions = [start(_without_weights(each), threads, own) for each, own in zip(made, held, strict=True)]
    except Exception as error:
        raise BundleError(f"{path}: ONNX Runtime refuses it ({printable(str(error))[:200]})", AGAIN) from None
    parts = zip(sessions, made, held, strict=True)
    return [OnnxModel(session, each, config, asdict(header), weights, own) for session, each, own in parts]


def _without_weights(graph: Graph) -> bytes:
    """The graph's bytes, whose weights are outside of it."""
    model = model_of(graph)
    for tensor in model.graph.initializer:
        if tensor.name in graph.weights:
            tensor.ClearField("raw_data")
            tensor.data_location = onnx.TensorProto.EXTERNAL
            tensor.external_data.add(key="location", value="in memory")  # the format asks for a word
    content: bytes = model.SerializeToString()
    return content
