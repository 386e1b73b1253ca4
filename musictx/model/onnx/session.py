"""An open model: its session of ONNX Runtime, with inputs and outputs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # read when it is imported: else it tells its makers of models and machine
import onnxruntime as onnxruntime

from musictx.errors import ConfigError
from musictx.model.onnx.graph import Array, Graph, Value
from musictx.model.settings import TransformerSettings

NO_MEMORY = ("std::bad_alloc", "Failed to allocate memory")


class OnnxModel(NamedTuple):
    """A decoder that is ready to read ids, and its file's settings."""

    session: Any
    graph: Graph
    config: TransformerSettings
    header: dict[str, Any]
    weights: str
    arrays: Mapping[str, Array] = {}  # numbers that the session reads where they lie

    @property
    def inputs(self) -> list[Value]:
        return self.graph.inputs

    @property
    def outputs(self) -> list[str]:
        return [each.name for each in self.graph.outputs]

    def run(self, feed: Mapping[str, Array]) -> dict[str, Array]:
        """All outputs, by name. Raises MemoryError where memory runs out."""
        try:
            return dict(zip(self.outputs, self.session.run(self.outputs, feed), strict=True))
        except Exception as error:  # of ONNX Runtime's own kinds, which say it in words
            if any(words in str(error) for words in NO_MEMORY):
                raise MemoryError("ONNX Runtime ran out of memory") from None
            raise

    @property
    def reach(self) -> int | None:
        """The number of positions; None: unlimited."""
        return self.config.max_positions if self.config.position == "learned" else None

    def check_reach(self, n_tokens: int) -> None:
        """Raises ConfigError if a row of so many tokens has too few positions."""
        if self.reach is not None and n_tokens > self.reach:
            why = f"{n_tokens} tokens are more than this model has positions"
            raise ConfigError("max_positions", got=self.reach, why=why)

    @property
    def window(self) -> int:
        """Tokens to look back in endless music."""
        return int(self.config.trained_length or self.reach or 2 * self.config.max_distance)


def start(content: bytes, threads: int, outside: Mapping[str, Array] | None = None) -> Any:
    """A session of a model's bytes. The weights `outside` must live as long as the session. Raises exceptions of ONNX
    Runtime's own kinds, which derive from Exception alone."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 4  # an error is raised, and need not be printed too
    if outside:
        values = [onnxruntime.OrtValue.ortvalue_from_numpy(x) for x in outside.values()]
        options.add_external_initializers([*outside], values)
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
