"""Opens a bundle as a session of ONNX Runtime, with no file in between and without PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import onnx

from musictx.errors import BundleError, UserError
from musictx.files import printable
from musictx.model.header import AGAIN, DAMAGE, BundleHeader, read_header, reason
from musictx.model.onnx.decoder import decoder
from musictx.model.onnx.graph import WEIGHTS, Graph, numbers
from musictx.model.onnx.keyboard import KEY_TABLE, is_key_table
from musictx.model.onnx.session import OnnxModel, start
from musictx.model.onnx.settings import checked
from musictx.model.onnx.steps import OnnxSteps
from musictx.model.onnx.write import model_of
from musictx.model.sizes import one_of
from musictx.model.tensors import Tensors, differing


class OnnxPlayer:
    """A model as `generate/` plays it."""

    def __init__(self, model: OnnxModel) -> None:
        self.model = model

    @property
    def window(self) -> int:
        """How many tokens back it should look in endless music."""
        return self.model.window

    @property
    def cycle(self) -> int:
        """After how many tokens its places repeat; 1: it has none."""
        return self.model.config.cycle

    def __str__(self) -> str:
        """One line: what the model is made of, and its size."""
        c = self.model.config
        return f"model: {c.n_layers} layers, attention: {c.position}, {self.model.graph.n_parameters:,} parameters"

    def begin(self, room: int, rolling: bool = False) -> OnnxSteps:
        """One row that has seen nothing, for `room` tokens in all; a rolling one has no end, and each token sees so
        many."""
        return OnnxSteps(self.model, 1, room if rolling else None)

    def join(self, parts: Sequence[OnnxSteps], of_row: Sequence[int]) -> OnnxSteps:
        """Steps whose row b goes on from parts[of_row[b]], each of one row, as it would alone."""
        return OnnxSteps.join(parts, of_row)


def open_player(
    path: Path, weights: str = "float32", threads: int = 1, header: BundleHeader | None = None
) -> OnnxPlayer:
    """The player of a bundle for which `can_play` holds, or of a checkpoint. Raises BundleError for a file that is
    damaged, or that is not what its header says; ConfigError for unknown weights. A `header` that was read before need
    not be read again."""
    one_of("weights", weights, WEIGHTS)
    header = header or read_header(path)
    try:
        config = checked(header.model)
    except (UserError, *DAMAGE) as error:
        raise BundleError(f"{path}: its model config is damaged ({reason(error)})", AGAIN) from None
    graph = decoder(config, weights == "int8")
    try:
        tensors = Tensors(path)
        if wrong := differing(graph.tensors, tensors.shapes):
            raise ValueError(wrong)
        held = numbers(graph, tensors)
        if KEY_TABLE in held and not is_key_table(held[KEY_TABLE]):
            raise ValueError(f"{KEY_TABLE} names keys that no piano has")
    except (UserError, *DAMAGE) as error:
        raise BundleError(f"{path}: its weights are damaged ({reason(error)})", AGAIN) from None
    try:
        session = start(_without_weights(graph), threads, held)
    except Exception as error:
        raise BundleError(f"{path}: ONNX Runtime refuses it ({printable(str(error))[:200]})", AGAIN) from None
    return OnnxPlayer(OnnxModel(session, graph, config, asdict(header), weights, held))


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
