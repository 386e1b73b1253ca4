"""A decoder as `generate/` plays it, on ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from musictx.model.header import BundleHeader
from musictx.model.onnx.decoder import decoder
from musictx.model.onnx.opening import open_graphs
from musictx.model.onnx.session import OnnxModel
from musictx.model.onnx.steps import OnnxSteps
from musictx.model.settings import TransformerSettings


class OnnxPlayer:
    """Obeys `musictx.model.steps.Player`."""

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
    """The player of a bundle for which `can_play` holds. Raises what `open_graphs` does."""
    return OnnxPlayer(*open_graphs(path, TransformerSettings, [decoder], weights, threads, header))
