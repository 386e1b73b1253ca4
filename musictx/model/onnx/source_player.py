"""An encoder-decoder as `generate/` plays it, on ONNX Runtime."""

from __future__ import annotations

from math import prod
from pathlib import Path

from musictx.model.header import BundleHeader
from musictx.model.onnx.encoder_decoder import encoder, target
from musictx.model.onnx.graph import Array
from musictx.model.onnx.opening import open_graphs
from musictx.model.onnx.session import OnnxModel
from musictx.model.onnx.steps import OnnxSteps
from musictx.model.settings import EncoderDecoderSettings


class OnnxSourcePlayer:
    """Obeys `musictx.model.steps.SourcePlayer`."""

    def __init__(self, encoder: OnnxModel, decoder: OnnxModel) -> None:
        assert isinstance(decoder.config, EncoderDecoderSettings)
        self.encoder, self.decoder, self.config = encoder, decoder, decoder.config

    def __str__(self) -> str:
        """One line: what the model is made of, and its size."""
        c, tensors = self.config, self.encoder.graph.tensors | self.decoder.graph.tensors
        size = sum(prod(shape) for name, shape in tensors.items() if name != "pace")
        layers = f"{c.n_encoder_layers} layers of encoder and {c.n_layers} of decoder"
        return f"model: {layers}, attention: {c.position}, {size:,} parameters"

    def begin(self, source: Array, room: int) -> OnnxSteps:
        """Rows for a source each (B, S), PAD where it has ended. Raises ConfigError for more tokens than the model has
        positions."""
        self.encoder.check_reach(source.shape[1] // self.config.source_voices)
        return OnnxSteps(self.decoder, len(source), source=self.encoder.run({"source": source}))


def open_source_player(
    path: Path, weights: str = "float32", threads: int = 1, header: BundleHeader | None = None
) -> OnnxSourcePlayer:
    """The player of a bundle for which `can_play_source` holds. Raises what `open_graphs` does."""
    graphs = [encoder, target]
    return OnnxSourcePlayer(*open_graphs(path, EncoderDecoderSettings, graphs, weights, threads, header))
