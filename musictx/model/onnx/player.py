"""Opens a bundle's graphs and plays them on ONNX Runtime, with no file in between and without PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from math import prod
from pathlib import Path
from typing import Any

import onnx

from musictx.errors import BundleError, UserError
from musictx.files import printable
from musictx.model.header import AGAIN, DAMAGE, BundleHeader, read_header, reason
from musictx.model.onnx.decoder import decoder
from musictx.model.onnx.encoder_decoder import encoder, target
from musictx.model.onnx.file import model_of
from musictx.model.onnx.graph import WEIGHTS, Array, Graph, numbers
from musictx.model.onnx.keyboard import KEY_TABLE, is_key_table
from musictx.model.onnx.session import OnnxModel, start
from musictx.model.onnx.settings import file_settings
from musictx.model.onnx.steps import OnnxSteps
from musictx.model.settings import EncoderDecoderSettings, TransformerSettings, one_of
from musictx.model.tensors import Tensors, shape_difference


class OnnxPlayer:
    """Obeys `musictx.model.steps.Player`."""

    def __init__(self, model: OnnxModel) -> None:
        self.model = model

    @property
    def window(self) -> int:
        return self.model.window

    @property
    def cycle(self) -> int:
        return self.model.config.cycle

    def __str__(self) -> str:
        """The model's parts and size, in a line."""
        c = self.model.config
        return f"model: {c.n_layers} layers, attention: {c.position}, {self.model.graph.n_parameters:,} parameters"

    def begin(self, room: int, rolling: bool = False) -> OnnxSteps:
        return OnnxSteps(self.model, 1, room if rolling else None)

    def join(self, parts: Sequence[OnnxSteps], of_row: Sequence[int]) -> OnnxSteps:
        return OnnxSteps.join(parts, of_row)


def open_player(
    path: Path, weights: str = "float32", threads: int = 1, header: BundleHeader | None = None
) -> OnnxPlayer:
    """The player of a bundle for which `can_play` holds. Raises the errors of `open_graphs`."""
    return OnnxPlayer(*open_graphs(path, TransformerSettings, [decoder], weights, threads, header))


class OnnxSourcePlayer:
    """Obeys `musictx.model.steps.SourcePlayer`."""

    def __init__(self, encoder: OnnxModel, decoder: OnnxModel) -> None:
        assert isinstance(decoder.config, EncoderDecoderSettings)
        self.encoder, self.decoder, self.config = encoder, decoder, decoder.config

    def __str__(self) -> str:
        """The model's parts and size, in a line."""
        c, tensors = self.config, self.encoder.graph.tensors | self.decoder.graph.tensors
        size = sum(prod(shape) for name, shape in tensors.items() if name != "pace")
        layers = f"{c.n_encoder_layers} layers of encoder and {c.n_layers} of decoder"
        return f"model: {layers}, attention: {c.position}, {size:,} parameters"

    def begin(self, source: Array, room: int) -> OnnxSteps:
        """Raises ConfigError for more tokens than the model has positions."""
        self.encoder.check_reach(source.shape[1] // self.config.source_voices)
        return OnnxSteps(self.decoder, len(source), source=self.encoder.run({"source": source}))


def open_source_player(
    path: Path, weights: str = "float32", threads: int = 1, header: BundleHeader | None = None
) -> OnnxSourcePlayer:
    """The player of a bundle for which `can_play_source` holds. Raises the errors of `open_graphs`."""
    graphs = [encoder, target]
    return OnnxSourcePlayer(*open_graphs(path, EncoderDecoderSettings, graphs, weights, threads, header))


def open_graphs(
    path: Path,
    of: type[TransformerSettings],
    graphs: Sequence[Callable[[Any, bool], Graph]],
    weights: str,
    threads: int,
    header: BundleHeader | None,
) -> list[OnnxModel]:
    """A model of each graph, with the settings and weights of one bundle or checkpoint. A known `header` is not read
    again.

    Raises BundleError for a file that is damaged, or that is not as its header says; ConfigError for unknown weights.
    """
    one_of("weights", weights, WEIGHTS)
    header = header or read_header(path)
    try:
        config = file_settings(header.model, of)
    except (UserError, *DAMAGE) as error:
        raise BundleError(f"{path}: its model config is damaged ({reason(error)})", AGAIN) from None
    all_graphs = [graph(config, weights == "int8") for graph in graphs]
    try:
        tensors = Tensors(path)
        if wrong := shape_difference(
            {name: shape for each in all_graphs for name, shape in each.tensors.items()}, tensors.shapes
        ):
            raise ValueError(wrong)
        arrays = [numbers(each, tensors) for each in all_graphs]
        if KEY_TABLE in arrays[0] and not is_key_table(arrays[0][KEY_TABLE]):
            raise ValueError(f"{KEY_TABLE} names keys that no piano has")
    except (UserError, *DAMAGE) as error:
        raise BundleError(f"{path}: its weights are damaged ({reason(error)})", AGAIN) from None
    try:
        sessions = [start(_without_weights(each), threads, own) for each, own in zip(all_graphs, arrays, strict=True)]
    except Exception as error:
        raise BundleError(f"{path}: ONNX Runtime refuses it ({printable(str(error))[:200]})", AGAIN) from None
    parts = zip(sessions, all_graphs, arrays, strict=True)
    return [OnnxModel(session, each, config, asdict(header), weights, own) for session, each, own in parts]


def _without_weights(graph: Graph) -> bytes:
    """The graph's bytes, with weights outside of it."""
    model = model_of(graph)
    for tensor in model.graph.initializer:
        if tensor.name in graph.weights:
            tensor.ClearField("raw_data")
            tensor.data_location = onnx.TensorProto.EXTERNAL
            tensor.external_data.add(key="location", value="in memory")  # the format asks for a word
    content: bytes = model.SerializeToString()
    return content
