"""musictx evaluate: measure nats per token of a split, beside uniform and unigram baselines."""

import math
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from omegaconf import MISSING

from musictx.analysis.bootstrap import interval
from musictx.analysis.likelihood import (
    Evaluation,
    hears_all,
    in_words,
    negative_log_likelihood,
    notes_and_seconds,
    unigram_nll,
)
from musictx.commands import check_new, open_and_print
from musictx.config.app import settings
from musictx.config.command import Command
from musictx.config.train import AttentionConfig, DataConfig
from musictx.data.store import Store
from musictx.errors import ConfigError, StoreError
from musictx.files import only_new, write_json
from musictx.generate.open_bundle import Opened, chosen_weights
from musictx.generate.open_player import check_device, objective_of
from musictx.model.build import check_objective, describe_model, kind_of, source_voices
from musictx.model.packaged import bundle_path
from musictx.model.settings import WEIGHTS, one_of
from musictx.model.weights import describe_weights, with_weights
from musictx.objectives import NEXT_TOKEN, Objective, build_objective, find_objective
from musictx.objectives.next_token import NextToken
from musictx.setting import setting
from musictx.terminal import say


@dataclass
class EvaluateConfig:
    """musictx evaluate: measure a model's nats per token, note and second on a split, beside simple baselines."""

    bundle: str = setting(
        MISSING, "piano, chorale, harmoniser, a file that `musictx train` made or a run's folder", path=True
    )
    data: DataConfig = field(default_factory=DataConfig)
    attention: AttentionConfig = field(default_factory=AttentionConfig)
    objective: str | None = setting(
        None,
        "the objective to score: next_token, infill or another; null: the bundle's own, but never infill; "
        "voices is scored with the soprano given",
    )
    split: str = setting("validation", "train, validation or test")
    out: str | None = setting(None, "a JSON file for the figures; null: none", path=True)
    overwrite: bool = setting(False, "replace an existing file")
    device: str = setting("cpu", "cpu or cuda")
    weights: str = setting("float32", "float32, bfloat16 or int8: shows what `generate` loses by fewer bits")


def measure(
    opened: Opened,
    bundle: Path,
    store: Store,
    split_name: str,
    segment: int | None,
    batch_tokens: int,
    device: str,
    objective: Objective | None = None,
    stride: int | None = None,
) -> Evaluation:
    """Scores a split by next tokens, or by another objective. Raises ConfigError for an empty split, StoreError for a
    store of other tokens than the model's."""
    if opened.header.vocab_fingerprint != store.tokenizer.vocab.fingerprint:
        raise StoreError(f"{store.path} has other tokens than {bundle} was trained on", "train or prepare again")
    split, tokenizer = store.split(split_name), store.tokenizer
    if not len(split.ids):
        full = ", ".join(name for name, info in store.manifest.splits.items() if info.tokens)
        raise ConfigError("split", got=split_name, why=f"it is empty in {store.path}", allowed=f"one of {full}")
    result = negative_log_likelihood(opened.model, split, tokenizer, segment, batch_tokens, device, objective, stride)
    if not result.tokens:
        why = f"none of its tokens in {store.path} counts for this objective"
        raise ConfigError("split", got=split_name, why=why, allowed="another")
    every_note = NextToken(tokenizer).asked  # what an objective from outside asks for, it need not say
    notes, seconds = notes_and_seconds(split, tokenizer, getattr(objective, "asked", every_note))
    return Evaluation(
        bundle=str(bundle),
        store=str(store.path),
        split=split_name,
        segment=segment,
        stride=stride,
        inputs=in_words(segment, stride, hears_all(opened.model, stride)),
        pieces=len(split),
        tokens=result.tokens,
        per_token=interval(result.nats, result.tokens_of),
        per_note=interval(result.nats, notes),
        per_second=interval(result.nats, seconds),
        uniform=math.log(tokenizer.vocab.n_events),
        unigram=unigram_nll(store.split("train").ids, split.ids, tokenizer.vocab),
    )


def scored_by(bundle: str, opened: Opened, asked: str | None) -> tuple[str, Objective]:
    """The objective asked for; else the one that the bundle was trained for, or the one by which that is compared. A
    bundle is data: code from outside musictx runs only when a person names it, never because a bundle does. Raises
    ConfigError, also for an objective that the model was not trained for."""
    header = opened.header
    trained = header.objective.get("name", NEXT_TOKEN)
    if asked is None and ":" in trained:
        why = f"{bundle} was trained with objective={trained}, which is not in musictx"
        raise ConfigError("objective", got=asked, why=why, allowed=f"objective={trained} to run it, or {NEXT_TOKEN}")
    name = asked or objective_of(trained, bundle).compared_by or trained
    settings = header.objective.get("settings") if name == trained else None
    settings = {**find_objective(name).compared_with, **(settings or {})}
    objective = build_objective(name, settings, opened.tokenizer, opened.model.cycle)
    check_objective(kind_of(opened.model), name, objective)
    heard, voices = source_voices(opened.model), objective.source_voices
    if heard != voices:
        why = f"{bundle} hears {heard} voices of its source as one, and this objective gives {voices}"
        raise ConfigError("objective", got=name, why=why, allowed=trained)
    added = [list(row) for row in objective.added]
    if added != header.added[: len(added)]:
        types = ", ".join(row.type for row in objective.added)
        why = f"{bundle} was trained for {trained}, and has never seen {types}"
        raise ConfigError("objective", got=name, why=why)
    return name, objective


def file_hash(path: str | Path) -> str:
    """The SHA-256 of a file, which identifies a bundle whatever its name."""
    return sha256(Path(path).read_bytes()).hexdigest()


def evaluate(*words: str, **values: Any) -> Evaluation:
    """`musictx evaluate` from Python: `evaluate("data.path=my_store", bundle="mine")`.

    `words` are settings as the command takes them, `values` the same as Python has them.

    Units:
        nats a token, a note and a second.

    Raises:
        UserError: as the command does, in one line.
    """
    return run(settings("evaluate", *words, **values))


def run(config: EvaluateConfig) -> Evaluation:
    if config.out:
        check_new(config.overwrite, Path(config.out))
    device, weights = check_device(config.device), one_of("weights", config.weights, WEIGHTS)
    opened = open_and_print(config.bundle, device, config.attention.impl, continues=False)
    say(describe_model(opened.model))
    for line in chosen_weights(weights, opened.model)[1]:
        say(line)
    opened = opened._replace(model=with_weights(opened.model, weights))
    name, objective = scored_by(config.bundle, opened, config.objective)
    store, data = Store(Path(config.data.path), opened.header.tokenizer), config.data
    bundle, budget = Path(config.bundle), data.score_batch_tokens
    figures = measure(opened, bundle, store, config.split, data.segment, budget, device, objective, data.stride)
    kind = describe_weights(opened.model)
    how = figures.inputs
    how += "" if name == NEXT_TOKEN else f", objective={name}"
    how += f", given {given}" if (given := getattr(objective, "given", None)) else ""
    say(f"{config.split} split of {store.path}: {figures.pieces} pieces, {figures.tokens:,} tokens, {how}, {kind}")
    say("negative log-likelihood, nats per token")
    say(f"  uniform  {figures.uniform:.4f}")
    say(f"  unigram  {figures.unigram:.4f}")
    nll, note, second = figures.per_token, figures.per_note, figures.per_second
    say(f"  model    {nll.mean:.4f}   95% of pieces' resamples: {nll.low:.4f} to {nll.high:.4f}   {config.bundle}")
    say(f"           {note.mean:.3f} per note ({note.low:.3f} to {note.high:.3f}), {second.mean:.3f} per second")
    if config.out:
        said = asdict(figures) | {
            "weights": weights,
            "weights_are": kind,
            "bundle_sha256": file_hash(bundle_path(config.bundle)),
            **({} if name == NEXT_TOKEN else {"objective": name}),
        }
        write_json(Path(config.out), said)
        say(f"{config.out}: these figures as JSON")
    return figures


COMMAND = Command(
    "evaluate", only_new(run), EvaluateConfig, {"data": "performances", "attention": "auto"}, main="bundle"
)
