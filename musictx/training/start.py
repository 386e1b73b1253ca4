"""The model that a run begins with: new, or a bundle's."""

from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from functools import partial

import torch
from torch.utils.checkpoint import checkpoint

from musictx.config.train import ModelConfig, TrainConfig
from musictx.errors import ConfigError
from musictx.model.build import Model, build_model, check_kind, model_config, settings_of
from musictx.model.bundle import load_bundle, read_header
from musictx.model.lora import add_adapters
from musictx.model.recurrent import RecurrentConfig
from musictx.model.shipped import bundle_path
from musictx.model.transformer import TransformerConfig
from musictx.tokenizers import Tokenizer

OWN = {"dropout", "attention_dropout"}  # a person's choice, whatever a bundle was trained with


def sized_as_bundle(config: TrainConfig) -> TrainConfig:
    """The config with the sizes of the bundle that it begins with; dropout stays as it is given."""
    if config.init_from is None:
        return config
    given = read_header(bundle_path(config.init_from)).model
    names = {field.name for field in fields(ModelConfig)}
    taken = {name: value for name, value in given.items() if name in names - OWN}
    kept = {name: getattr(config.model, name) for name in OWN}
    return replace(config, model=ModelConfig(**{"kind": "transformer", **taken, **kept}))


def check_given(config: TrainConfig, words: Sequence[str]) -> None:
    """Raises ConfigError where a person's own words, `model.…=…` or `model=…`, ask for another model than the bundle's
    that the run begins with."""
    sized = sized_as_bundle(config).model
    for word in words:
        key = word.lstrip("+").partition("=")[0]
        group, _, setting = key.partition(".")
        names = [setting] if setting else [field.name for field in fields(ModelConfig)]
        for name in names if group == "model" else ():
            if (has := getattr(sized, name)) != getattr(config.model, name):
                has = "no such setting" if has is None else f"model.{name}={has}"
                raise ConfigError(
                    f"{word}: init_from={config.init_from} has {has}, and its weights fit no other model: leave {key}= "
                    "out, or leave init_from= out to begin anew"
                )


def starting_model(config: TrainConfig, tokenizer: Tokenizer) -> Model:
    """Raises ConfigError for a model that cannot be, or a bundle of other tokens than the store's."""
    pace = tokenizer.pace
    if config.model.clock == "time" and pace is None:
        raise ConfigError(f"model.clock=time: {tokenizer.name} tokens do not tell time; choose model.clock=index")
    settings = build_model_config(config, tokenizer.vocab.size)
    model = build_model(settings, None if pace is None else torch.from_numpy(pace))
    if config.init_from is not None:
        path = bundle_path(config.init_from)
        header = read_header(path)
        if header.vocab_fingerprint != tokenizer.vocab.fingerprint:
            raise ConfigError(
                f"init_from={config.init_from} speaks {header.tokenizer} tokens ({header.vocab_fingerprint}), the "
                f"store {tokenizer.name} ({tokenizer.vocab.fingerprint}): prepare your music with "
                f"tokenizer={header.tokenizer}, or leave init_from out"
            )
        model.load_state_dict(load_bundle(path).model.state_dict())
    if config.trainer.lora_rank is not None:
        add_adapters(model, config.trainer.lora_rank)  # type: ignore[arg-type] # check_trainer has refused others
    if config.trainer.checkpoint_activations:
        for block in model.blocks:  # type: ignore[union-attr] # check_trainer has refused models without
            block.forward = partial(checkpoint, block.forward, use_reentrant=False)
    if config.trainer.compile:
        model.compile()
    return model


def build_model_config(config: TrainConfig, vocab_size: int) -> TransformerConfig | RecurrentConfig:
    """The model group and the attention group as what this kind of model is built from. Raises ConfigError for
    settings that it lacks, or that another kind has."""
    given = asdict(config.model)
    kind = given.pop("kind")
    check_kind(kind)
    known, default = settings_of(kind), asdict(ModelConfig())
    for name, value in given.items():
        if name in known and value is None:
            raise ConfigError(f"model.{name} is not set: model.kind={kind} needs it")
        if name not in known and value != default[name]:
            raise ConfigError(f"model.{name}={value}: model.kind={kind} has no such setting; leave it out")
    settings = {name: value for name, value in given.items() if name in known}
    if "attention" in known:
        before = read_header(bundle_path(config.init_from)).model.get("trained_length") if config.init_from else None
        trained_length = max(config.data.length, before or 0)
        settings |= {"attention": config.attention.impl, "trained_length": trained_length}
    return model_config(kind, {"vocab_size": vocab_size, **settings})
