"""The kinds of model: settings in, model out, and the abilities of each kind."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from musictx.errors import ConfigError, UserError
from musictx.model.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from musictx.model.keyboard import KeyboardState, Keys
from musictx.model.position import describe
from musictx.model.recurrent import Recurrent, RecurrentConfig
from musictx.model.settings import FORMER, one_of
from musictx.model.transformer import Transformer, TransformerConfig

Model = Transformer | Recurrent  # these continue music; the others obey `protocol.SourceModel`
SOURCE = ("source", "ids")  # the inputs of a model of a source and a target
WEIGHT_BYTES = 4
DRAWS = {"normal_", "uniform_", "kaiming_uniform_"}  # what fills a tensor with initial values


class Kind(NamedTuple):
    """A kind of model and its abilities. The classes of its config and its model identify it."""

    config: type[Any]  # a dataclass: each `setting` is a person's, training knows the other fields
    model: type[Any]
    describe: Callable[[Any], str]  # its settings in words
    inputs: tuple[str, ...] = ("ids",)  # the inputs of its forward pass; an objective's examples have the same
    carries: bool = False  # `init_state` and `carry`: a training window can start where the last ended
    blocks: bool = False  # `blocks`, which a backward pass can compute again
    packed: bool = False  # on a CPU bfloat16 is only for its linear layers
    static_steps: bool = False  # graph=true
    voices: bool = False  # its config says how many voices of its source it hears as one, and writes as one step
    readout: bool = False  # its attention over the past can be read
    onnx: bool = False  # `musictx export`
    former_settings: Mapping[str, Any] = {}  # settings that it had, with the value that it has now


def _layers_of_cells(config: RecurrentConfig) -> str:
    past = f", attention over the last {config.window} inputs" if config.recall else ""
    return f"{config.n_layers} {'residual ' * config.residual}layers of LSTM cells{past}"


def _both_sides(config: EncoderDecoderConfig) -> str:
    sides = f"{config.n_encoder_layers} layers of encoder and {config.n_layers} of decoder"
    return f"{sides}, {describe(config.position, config.attention)}"


KINDS: dict[str, Kind] = {
    "transformer": Kind(
        TransformerConfig,
        Transformer,
        lambda config: f"{config.n_layers} layers, {describe(config.position, config.attention)}",
        blocks=True,
        packed=True,
        static_steps=True,
        readout=True,
        onnx=True,
    ),
    "recurrent": Kind(
        RecurrentConfig, Recurrent, _layers_of_cells, carries=True, former_settings={"cell": "lstm", "additive": False}
    ),
    "encoder_decoder": Kind(
        EncoderDecoderConfig,
        EncoderDecoder,
        _both_sides,
        inputs=SOURCE,
        voices=True,
        packed=True,
        former_settings=FORMER,
    ),
}


def check_objective(kind: str, name: str, objective: Any) -> None:
    """Raises ConfigError for an objective, its class or an instance, that does not fit this kind of model."""
    row = KINDS[kind]
    if row.inputs != objective.inputs:
        gives, takes = (" and ".join(names) for names in (objective.inputs, row.inputs))
        able = " or ".join(each for each, row in KINDS.items() if row.inputs == objective.inputs)
        why = f"it gives {gives}, kind={kind} takes {takes}"
        raise ConfigError("objective", got=name, why=why, allowed=f"another, or kind={able}" if able else "another")


def training_fields(config: Any, training_values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a config, or its class, that training sets: those that are no `setting`."""
    names = {field.name for field in fields(config) if "meaning" not in field.metadata}
    return {name: value for name, value in training_values.items() if name in names}


def model_config(kind: str, settings: Mapping[str, Any], **training_values: Any) -> Any:
    """The config of a kind of model. Raises ConfigError for an unknown kind or impossible sizes, TypeError for unknown
    settings."""
    config = KINDS[one_of("kind", kind, KINDS)].config
    return config(**settings, **training_fields(config, training_values))


def build_model(config: Any, pace: Tensor | None = None, keys: Keys | None = None) -> Model:
    """The model of a config. `pace` (V,) is each id's step of the clock; `keys` says how ids move the keyboard."""
    (row,) = (kind for kind in KINDS.values() if kind.config is type(config))
    model: Model = row.model(config)
    tables = dict(model.named_buffers())
    if pace is not None and "pace" in tables:
        tables["pace"].copy_(pace)
    if keys is not None:
        for part in model.modules():
            if isinstance(part, KeyboardState):
                part.learn(keys)
    return model


def meta_model(config: Any) -> nn.Module:
    """The model on the device "meta": shapes without values. Raises UserError for sizes beyond all numbers."""
    try:
        with torch.device("meta"), NoValues():
            return build_model(config)
    except (RuntimeError, OverflowError) as error:
        why = " ".join(str(error).split())[:100]
        raise UserError(f"a model of these sizes cannot be built ({why})") from None


class NoValues(TorchFunctionMode):
    """Draws no initial values: on the device "meta" that would import PyTorch's compiler, for more than a second."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func.__name__ in DRAWS:
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)


def memory_of(model: nn.Module) -> int:
    """Bytes of all parameters and buffers as float32, also of a model on the device "meta"."""
    return WEIGHT_BYTES * sum(x.numel() for each in (model.parameters(), model.buffers()) for x in each)


def _kind_name(model: object) -> str | None:
    return next((name for name, kind in KINDS.items() if kind.model is type(model)), None)


def kind_of(model: object) -> str:
    """The model's key in KINDS. Raises TypeError for a model in no row."""
    if (name := _kind_name(model)) is None:
        raise TypeError(f"{type(model).__name__} is not a kind of model: build.py has {', '.join(KINDS)}")
    return name


def can(model: object, ability: str) -> bool:
    """Whether the model's row has this ability; a model in no row has none."""
    return (name := _kind_name(model)) is not None and bool(getattr(KINDS[name], ability))


def inputs_of(model: object) -> tuple[str, ...]:
    """The inputs of the model; a model in no row takes ids."""
    return KINDS[name].inputs if (name := _kind_name(model)) is not None else ("ids",)


def source_voices(model: Any) -> int:
    """The number of voices that the model reads as one."""
    return int(model.config.source_voices) if can(model, "voices") else 1


def describe_model(model: Model) -> str:
    """The model's parts and size, in a line."""
    made_of = KINDS[kind_of(model)].describe(model.config)
    return f"model: {made_of}, {sum(p.numel() for p in model.parameters()):,} parameters"
