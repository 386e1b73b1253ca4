"""An evaluation of a bundle on a split: its objective, and nats per token, note and second."""

import math
from pathlib import Path

from musictx.analysis.bootstrap import interval
from musictx.analysis.likelihood import (
    Evaluation,
    carries_state,
    in_words,
    negative_log_likelihood,
    notes_and_seconds,
    unigram_nll,
)
from musictx.data.store import Store
from musictx.errors import ConfigError, StoreError
from musictx.generate.open_bundle import Opened
from musictx.generate.open_player import objective_of
from musictx.model.build import check_objective, kind_of, source_voices
from musictx.objectives import NEXT_TOKEN, Objective, build_objective, find_objective


def evaluate_split(
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
    """Scores a split, by next tokens unless `objective` says otherwise. Raises ConfigError for an empty split,
    StoreError for a store of other tokens."""
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
    notes, seconds = notes_and_seconds(split, tokenizer)
    return Evaluation(
        bundle=str(bundle),
        store=str(store.path),
        split=split_name,
        segment=segment,
        stride=stride,
        inputs=in_words(segment, stride, carries_state(opened.model, stride)),
        pieces=len(split),
        tokens=result.tokens,
        per_token=interval(result.nats, result.tokens_of),
        per_note=interval(result.nats, notes),
        per_second=interval(result.nats, seconds),
        uniform=math.log(tokenizer.vocab.n_events),
        unigram=unigram_nll(store.split("train").ids, split.ids, tokenizer.vocab),
    )


def scoring_objective(bundle: str, opened: Opened, choice: str | None) -> tuple[str, Objective]:
    """The objective of a person's choice, or of the bundle's training, or the one by which that is compared. Raises
    ConfigError, also for an objective that the model was not trained for."""
    header = opened.header
    trained = header.objective.get("name", NEXT_TOKEN)
    if choice is None and ":" in trained:  # a bundle is data: only a person runs code from outside musictx
        why = f"{bundle} was trained with objective={trained}, which is not in musictx"
        raise ConfigError("objective", got=choice, why=why, allowed=f"objective={trained} to run it, or {NEXT_TOKEN}")
    name = choice or objective_of(trained, bundle).compared_by or trained
    settings = header.objective.get("settings") if name == trained else None
    settings = {**find_objective(name).compared_with, **(settings or {})}
    objective = build_objective(name, settings, opened.tokenizer, opened.model.cycle)
    check_objective(kind_of(opened.model), name, objective)
    group, voices = source_voices(opened.model), objective.source_voices
    if group != voices:
        why = f"{bundle} hears {group} voices of its source as one, and this objective gives {voices}"
        raise ConfigError("objective", got=name, why=why, allowed=trained)
    added = [list(row) for row in objective.added]
    if added != header.added[: len(added)]:
        types = ", ".join(row.type for row in objective.added)
        why = f"{bundle} was trained for {trained}, and has never seen {types}"
        raise ConfigError("objective", got=name, why=why)
    return name, objective
