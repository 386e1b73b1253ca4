"""The settings of each kind of model. A preset in `conf/model/` names its kind."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from omegaconf import MISSING

from musictx.errors import ConfigError
from musictx.setting import setting


@dataclass
class TransformerSettings:
    """The model to train: a Transformer."""

    kind: str = setting("transformer", "set by the preset")
    d_model: int = setting(MISSING, "width")
    n_layers: int = setting(MISSING, "layers")
    n_heads: int = setting(MISSING, "heads of attention")
    d_ff: int = setting(MISSING, "width inside the feed-forward layers")
    dropout: float = setting(MISSING, "share dropped in training, everywhere but on the attention weights")
    attention_dropout: float = setting(0.0, "dropout on the attention weights")
    position: str = setting("relative", "relative, relative_fourier, rope, sinusoidal, learned or none")
    max_distance: int = setting(
        MISSING, "longest distance in tokens; farther tokens share the last row of the relative table"
    )
    clock: str = setting(
        "index", "position=relative_fourier and rope: index counts tokens, time counts seconds or sixteenths"
    )
    n_frequencies: int = setting(16, "position=relative_fourier: frequencies in each head")
    max_positions: int = setting(2048, "position=learned: the longest input, in tokens")
    cycle: int = setting(
        1, "each token learns its place in a cycle of so many tokens, 16 for a beat of four voices; 1: no cycle"
    )
    mlp: str = setting("gelu", "gelu, or swiglu; the d_ff of swiglu is the width after its gate")
    qk_norm: bool = setting(False, "scale queries and keys to one length, with a learned gain for each head")
    value_residual: bool = setting(False, "mix each layer's values with the first layer's; learns faster")
    keyboard: str = setting(
        "none", "where the model sees which keys are down, and since when: none, input, head or both"
    )


@dataclass
class RecurrentSettings:
    """The model to train: a recurrent net."""

    kind: str = setting("recurrent", "set by the preset")
    d_model: int = setting(MISSING, "width")
    n_layers: int = setting(MISSING, "layers")
    dropout: float = setting(MISSING, "share dropped in training")
    cell: str = setting("lstm", "lstm or rnn")
    additive: bool = setting(False, "attention over the past states of the top layer")
    d_attention: int = setting(128, "width of that attention")
    window: int = setting(512, "how many past states that attention sees")
    keyboard: str = setting(
        "none", "where the model sees which keys are down, and since when: none, input, head or both"
    )


@dataclass
class EncoderDecoderSettings:
    """The model to train: an encoder-decoder Transformer, for objective=conditional."""

    kind: str = setting("encoder_decoder", "set by the preset")
    d_model: int = setting(MISSING, "width")
    n_layers: int = setting(MISSING, "layers of the decoder")
    n_encoder_layers: int = setting(MISSING, "layers of the encoder")
    n_heads: int = setting(MISSING, "heads of attention")
    d_ff: int = setting(MISSING, "width inside the feed-forward layers")
    dropout: float = setting(MISSING, "share dropped in training, everywhere but on the attention weights")
    attention_dropout: float = setting(0.0, "dropout on the attention weights")
    position: str = setting("relative", "relative, relative_fourier, rope, sinusoidal, learned or none")
    max_distance: int = setting(
        MISSING, "longest distance in tokens; farther tokens share the outer rows of the relative tables"
    )
    clock: str = setting(
        "index", "position=relative_fourier and rope, ids that tell seconds: index counts tokens, time counts seconds"
    )
    n_frequencies: int = setting(16, "position=relative_fourier: frequencies in each head")
    max_positions: int = setting(2048, "position=learned: the longest source or target, in tokens")
    source_group: int = setting(1, "tokens of the source that make one step of time")
    target_group: int = setting(3, "tokens of the target that make one step of time")
    cycle: int = setting(
        1, "each token learns its place in a cycle of so many tokens of both, 16 for a beat; 1: no cycle"
    )
    mlp: str = setting("gelu", "gelu, or swiglu; the d_ff of swiglu is the width after its gate")
    qk_norm: bool = setting(False, "scale queries and keys to one length, with a learned gain for each head")
    value_residual: bool = setting(False, "mix each layer's values with the first layer's")


@dataclass
class RecurrentEncoderDecoderSettings:
    """The model to train: a recurrent encoder-decoder, for objective=conditional."""

    kind: str = setting("recurrent_encoder_decoder", "set by the preset")
    d_model: int = setting(MISSING, "width")
    n_layers: int = setting(MISSING, "layers of the decoder, 2 or more: the lowest queries the source")
    n_encoder_layers: int = setting(MISSING, "layers of the encoder, which reads in both directions")
    cell: str = setting("gru", "gru or lstm")
    d_attention: int = setting(64, "width of the attention over the source")
    dropout: float = setting(MISSING, "share dropped in training")


MODELS: dict[str, type[Any]] = {
    "transformer": TransformerSettings,
    "recurrent": RecurrentSettings,
    "encoder_decoder": EncoderDecoderSettings,
    "recurrent_encoder_decoder": RecurrentEncoderDecoderSettings,
}


def schema_of(kind: str) -> type[Any]:
    """The schema of a kind of model. Raises ConfigError for an unknown kind."""
    if kind not in MODELS:
        raise ConfigError("model.kind", got=kind, allowed=f"one of {', '.join(MODELS)}")
    return MODELS[kind]


def kind_of_settings(model: Any) -> str:
    """The kind of some settings, by their schema, whatever `kind` says. Raises ConfigError for settings of no kind."""
    for kind, schema in MODELS.items():
        if type(model) is schema:
            return kind
    raise ConfigError(
        "model",
        got=model,
        why="these are not the settings of a model",
        allowed="a preset, as in model=small or model=lstm",
        hint=f"begin one of your own with `defaults: [{next(iter(MODELS))}_schema]`",
    )


def check_settings(model: Any) -> None:
    """Raises ConfigError unless these are the settings of the kind of model that they name."""
    own = kind_of_settings(model)
    if schema_of(model.kind) is not MODELS[own]:
        raise ConfigError(
            "model.kind",
            got=model.kind,
            why=f"these are the settings of a {own} model",
            allowed="a preset of another kind, as in model=small or model=lstm",
        )


def settings_of_kind(stored: Mapping[str, Any]) -> dict[str, Any]:
    """The stored settings that belong to their kind: earlier versions wrote those of every kind. Settings of a kind
    that is not installed stay as they are."""
    kind = stored.get("kind", "transformer")
    names = {each.name for each in fields(MODELS[kind])} if kind in MODELS else set(stored)
    return {"kind": kind} | {name: value for name, value in stored.items() if name in names}
