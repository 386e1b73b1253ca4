"""The one place that knows every kind of model: settings in, model out."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from torch import Tensor

from musictx.errors import ConfigError
from musictx.model.position import describe
from musictx.model.recurrent import Recurrent, RecurrentConfig
from musictx.model.transformer import Transformer, TransformerConfig

Model = Transformer | Recurrent
KINDS: dict[str, type[TransformerConfig] | type[RecurrentConfig]] = {
    "transformer": TransformerConfig,
    "recurrent": RecurrentConfig,
}


def check_kind(kind: str) -> None:
    """Raises ConfigError for a kind of model that does not exist."""
    if kind not in KINDS:
        raise ConfigError(f"model.kind={kind}: choose one of {', '.join(KINDS)}")


def settings_of(kind: str) -> set[str]:
    """The names of all settings that this kind of model has."""
    return {field.name for field in fields(KINDS[kind])}


def model_config(kind: str, settings: Mapping[str, Any]) -> TransformerConfig | RecurrentConfig:
    """Raises ConfigError for an unknown kind and sizes that cannot be, TypeError for settings it does not have."""
    check_kind(kind)
    return KINDS[kind](**settings)


def build_model(config: TransformerConfig | RecurrentConfig, pace: Tensor | None = None) -> Model:
    """`pace` (V,) as in `Transformer`."""
    return Transformer(config, pace) if isinstance(config, TransformerConfig) else Recurrent(config)


def kind_of(model: Model) -> str:
    """The key in KINDS."""
    return "transformer" if isinstance(model, Transformer) else "recurrent"


def describe_model(model: Model) -> str:
    """One line: what the model is made of and which kernel runs."""
    config = model.config
    parameters = f"{sum(p.numel() for p in model.parameters()):,} parameters"
    if isinstance(config, RecurrentConfig):
        past = f", additive attention over {config.window} past states" if config.additive else ""
        return f"model: {config.n_layers} layers of {config.cell} cells{past}, {parameters}"
    return f"model: {config.n_layers} layers, {parameters}; {describe(config.position, config.attention)}"
