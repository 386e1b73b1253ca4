"""Which models have a graph, and whether settings make sense, as a file says them: without PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from musictx.model.header import BundleHeader
from musictx.model.onnx.position import FORMS
from musictx.model.sizes import one_of
from musictx.model.transformer_settings import TransformerSettings

KIND = "transformer"
TIMED = ("relative_fourier", "rope")  # forms that can count musical time


def can_play(header: BundleHeader) -> bool:
    """Whether a bundle's model has a graph: a decoder of the packaged forms, and nothing of a person's own."""
    return header.model.get("kind", KIND) == KIND and header.model.get("position", "relative") in [*FORMS]


def checked(settings: Mapping[str, Any]) -> TransformerSettings:
    """The settings of a Transformer, as a file has them. Raises UserError, TypeError, ValueError."""
    config = TransformerSettings(**{name: value for name, value in settings.items() if name != "kind"})
    one_of("position", config.position, FORMS)
    if config.clock == "time" and config.position not in TIMED:
        raise ValueError(f"clock=time with position={config.position}")
    for name in ("qk_norm", "value_residual"):
        if type(value := getattr(config, name)) is not bool:
            raise ValueError(f"{name}={value!r}")
    return config


def reach(config: TransformerSettings) -> int | None:
    """How many positions there are; None: unlimited."""
    return config.max_positions if config.position == "learned" else None
