"""The start of a run: sizes, weights and ids of the bundle that it begins with, and the header of its own."""

from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from musictx.config.model import check_settings, schema_of
from musictx.config.train import TrainConfig
from musictx.data.store import Manifest, Store, is_store
from musictx.errors import ConfigError, UserError
from musictx.model.build import Model, kind_of
from musictx.model.bundle import load_bundle
from musictx.model.header import BundleHeader, read_header
from musictx.model.keyboard import KeyboardState, Keys
from musictx.model.own import check_parts, scripts_of
from musictx.model.packaged import bundle_path
from musictx.model.settings import CLEAR, RELEASE, STRIKE
from musictx.objectives import NEXT_TOKEN, Objective, find_objective
from musictx.tokenizers import Tokenizer, Vocab, build_tokenizer

OWN = {"dropout", "attention_dropout"}  # the person chooses these, whatever the bundle was trained with


def sized_as_bundle(config: TrainConfig) -> TrainConfig:
    """The config with the sizes of its `init_from` bundle and its own dropout."""
    if config.init_from is None:
        return config
    header = read_header(bundle_path(config.init_from))
    check_parts(config.init_from, header)
    before, settings = header.model, asdict(config.model)
    schema = schema_of(before.get("kind", "transformer"))
    names = {each.name for each in fields(schema)}
    own = OWN | ({"keyboard"} if before.get("keyboard", "none") == "none" else set())  # a model may gain one
    sizes = {name: value for name, value in before.items() if name in names - own}
    choices = {name: settings[name] for name in own & names & settings.keys()}
    return replace(config, model=schema(**sizes, **choices))


def check_words(config: TrainConfig, words: Sequence[str]) -> None:
    """Raises ConfigError where words, `model.…=…` or `model=…`, ask for another model than the `init_from` bundle's."""
    check_settings(config.model)  # else there is nothing to compare
    sizes, settings = asdict(sized_as_bundle(config).model), asdict(config.model)
    for word in words:
        key, _, value = word.lstrip("+").partition("=")
        group, _, setting = key.partition(".")
        names = [setting] if setting else list(settings)
        for name in names if group == "model" else ():
            has = sizes.get(name)
            if has is not settings[name] and has != settings[name]:  # NaN is not equal to itself
                has = "no such setting" if has is None else f"{name}={has}"
                why = f"init_from={config.init_from} has {has}, and its weights fit no other model"
                hint = f"leave {key}= out, or leave init_from= out to train from scratch"
                raise ConfigError(key, got=settings[name] if setting else value, why=why, hint=hint)


def suited_to_store(config: TrainConfig, words: Sequence[str]) -> TrainConfig:
    """The config with the store's tokenizer, and without stretching where that counts beats, as far as no word and no
    experiment says otherwise. Raises StoreError for a damaged store."""
    named = {word.lstrip("+").partition("=")[0] for word in words}
    if "experiment" in named or not is_store(Path(config.data.path)):
        return config
    tokenizer = Store(config.data.path).tokenizer
    if not named & {"tokenizer", "tokenizer.name"}:
        config = replace(config, tokenizer=replace(config.tokenizer, name=tokenizer.name))
    if tokenizer.metrical and not named & {"data", "data.stretch"}:
        config = replace(config, data=replace(config.data, stretch=[1.0]))
    return config


def with_initial_weights(model: Model, config: TrainConfig, tokenizer: Tokenizer) -> Model:
    """The model with the weights of `init_from`, recomputed blocks and compilation, as the settings say. Raises
    ConfigError for a bundle of other tokens."""
    if config.init_from is not None:
        path = bundle_path(config.init_from)
        new_ids = ids_of_bundle(config, read_header(path), tokenizer)
        fresh = model.state_dict()
        weights = with_rows(fresh, load_bundle(path).model.state_dict(), new_ids)
        keyboard = {name: tensor for name, tensor in fresh.items() if name.startswith("keyboard.")}
        model.load_state_dict(keyboard | weights)
    if config.trainer.checkpoint_activations:
        for block in model.blocks:  # type: ignore[union-attr] # check_trainer refuses models without
            block.forward = partial(checkpoint, block.forward, use_reentrant=False)
    if config.trainer.compile:
        for part in model.modules():
            if isinstance(part, KeyboardState):  # PyTorch's own scans over time, not what a compiler makes of them
                part.features = torch.compiler.disable(part.features)  # type: ignore[method-assign, no-untyped-call]
        model.compile()
    return model


def keys_of(tokenizer: Tokenizer) -> Keys | None:
    """The strike or release of each id; None for a tokenizer without them. BOS and added ids release all keys."""
    vocab = tokenizer.vocab
    strikes, releases = vocab.mask("NOTE_ON"), vocab.mask("NOTE_OFF")
    if tokenizer.pace is None or not strikes.any() or not releases.any():
        return None
    act = np.where(strikes, STRIKE, np.where(releases, RELEASE, 0))
    act[[vocab.bos, *range(vocab.eos + 1, vocab.size)]] = CLEAR
    key = np.where(strikes | releases, tokenizer.pitch, 0)
    wait_us = np.rint(np.maximum(tokenizer.pace, 0) * 1e6)
    return Keys(*(torch.from_numpy(x.astype(np.int64)) for x in (key, act, wait_us)))


def ids_of_bundle(config: TrainConfig, header: BundleHeader, tokenizer: Tokenizer) -> Tensor:
    """(V_old,) the tokenizer's id for each id of the bundle; -1 for an added id that it lacks. Raises ConfigError where
    other ids differ."""
    base, old = tokenizer.vocab.without_added, _vocab_of(header, tokenizer)
    new_ids = None if old is None else tokenizer.vocab.ids_of(old)
    if new_ids is None and old is not None and (plain := tokenizer.vocab.ids_of(old.without_added)) is not None:
        if tokenizer.vocab.added and find_objective(config.objective).continues:
            extra, name = ", ".join(row.type for row in old.added), header.objective.get("name")
            why = f"it has ids of objective={name} ({extra}), which objective={config.objective} does not have"
            raise ConfigError("init_from", got=config.init_from, why=why, allowed=f"objective={name}, or leave it out")
        new_ids = np.pad(plain, (0, old.size - len(plain)), constant_values=-1)
    if new_ids is None:
        theirs = f"{header.tokenizer} tokens ({header.vocab_fingerprint})"
        why = f"it has {theirs}, the store has {tokenizer.name} ({base.fingerprint})"
        hint = f"prepare your music with tokenizer={header.tokenizer}, or leave it out"
        raise ConfigError("init_from", got=config.init_from, why=why, hint=hint)
    return torch.from_numpy(new_ids)


def _vocab_of(header: BundleHeader, tokenizer: Tokenizer) -> Vocab | None:
    """The bundle's vocabulary; None where its tokenizer is missing or of another version."""
    base = tokenizer.vocab.without_added
    if header.vocab_fingerprint == base.fingerprint and not header.added:
        return base
    try:
        old = build_tokenizer(header.tokenizer, header.tokenizer_state, header.added).vocab
    except UserError:
        return None
    return old if old.without_added.fingerprint == header.vocab_fingerprint else None


def with_rows(new: dict[str, Tensor], old: dict[str, Tensor], new_ids: Tensor) -> dict[str, Tensor]:
    """The tensors of `old`; in those with a row for each id, new ids keep their row of `new`."""
    has_id, is_same = new_ids >= 0, torch.equal(new_ids, torch.arange(len(new_ids), device=new_ids.device))
    return {
        name: new[name].index_copy(0, new_ids[has_id], tensor[has_id])
        if tensor.shape != new[name].shape or (name.endswith(BY_ID) and not is_same)
        else tensor
        for name, tensor in old.items()
    }


BY_ID = ("embed.weight", "head.weight", "head.bias", "pace", ".key", ".act", ".wait_us")  # have a row for each id


def header_of(config: TrainConfig, model: Model, manifest: Manifest, objective: Objective) -> BundleHeader:
    """The header of the run's bundle, with the corpus, licence and citation of `init_from` too. Raises BundleError."""
    corpus, licence, citation = manifest.corpus.name, manifest.corpus.licence, manifest.corpus.citation
    if config.init_from is not None:
        before = read_header(bundle_path(config.init_from))
        corpus, licence = merge(before.corpus, corpus), merge(before.licence, licence)
        citation = merge(before.notes.get("citation", ""), citation)
    # guidance by the source works only after this training
    source = {"hide_source": config.trainer.hide_source} if config.trainer.hide_source else {}
    own = scripts_of(model, objective.tokenizer)
    return BundleHeader(
        model={"kind": kind_of(model), **asdict(model.config)},
        tokenizer=manifest.tokenizer,
        tokenizer_state=manifest.tokenizer_state,
        vocab_fingerprint=manifest.vocab_fingerprint,
        corpus=corpus,
        licence=licence,
        val_nll=None,
        version=version("musictx"),
        notes={"name": config.name, "seed": config.random_seed, "citation": citation, **source, **own},
        objective=objective_notes(config, objective),
    )


def objective_notes(config: TrainConfig, objective: Objective) -> dict[str, Any]:
    """The header's `objective`: name, settings, added ids; of whole examples `length`. Empty for the next token."""
    if config.objective == NEXT_TOKEN:
        return {}
    added = [list(row) for row in objective.added]
    notes = {"name": config.objective, "settings": config.objective_settings or {}, "added": added}
    return notes if objective.continuous else notes | {"length": config.data.length}


def merge(before: str, now: str) -> str:
    """Two origins in one text, the older first, without repeats."""
    return " + ".join(dict.fromkeys(part for part in (*before.split(" + "), *now.split(" + ")) if part))
