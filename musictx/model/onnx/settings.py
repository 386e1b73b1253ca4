"""Which models have a graph, and whether a file's settings make sense, without PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from musictx.model.header import BundleHeader
from musictx.model.onnx.position import FORMS
from musictx.model.settings import FORMER, EncoderDecoderSettings, TransformerSettings, one_of

KIND, SOURCE_KIND = "transformer", "encoder_decoder"
TIMED = ("relative_fourier", "rope")  # forms that can count musical time


def can_play(header: BundleHeader) -> bool:
    """Whether a bundle's model has a graph: a decoder with a packaged form of position."""
    return _has_graph(header, KIND)


def can_play_source(header: BundleHeader) -> bool:
    """The same of an encoder-decoder, which has two graphs."""
    return _has_graph(header, SOURCE_KIND)


def _has_graph(header: BundleHeader, kind: str) -> bool:
    return header.model.get("kind", KIND) == kind and header.model.get("position", "relative") in [*FORMS]


def file_settings(
    settings: Mapping[str, Any], of: type[TransformerSettings] = TransformerSettings
) -> TransformerSettings:
    """The settings of a file's model. Raises UserError, TypeError, ValueError."""
    former = FORMER if of is EncoderDecoderSettings else {}
    gone = {"kind"} | {name for name, value in former.items() if settings.get(name) == value}
    config = of(**{name: value for name, value in settings.items() if name not in gone})
    one_of("position", config.position, FORMS)
    if config.clock == "time" and config.position not in TIMED:
        raise ValueError(f"clock=time with position={config.position}")
    for name in ("qk_norm", "value_residual"):
        if type(value := getattr(config, name)) is not bool:
            raise ValueError(f"{name}={value!r}")
    if isinstance(config, EncoderDecoderSettings):
        config.check_cycle()
        if type(config.pad) is not int or not -1 <= config.pad < config.vocab_size:
            raise ValueError(f"pad={config.pad!r}")
    return config
