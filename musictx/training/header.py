"""What a run's bundle will say of itself."""

from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from musictx.config.train import TrainConfig
from musictx.data.store import Manifest
from musictx.model.build import Model, kind_of
from musictx.model.bundle import BundleHeader, read_header
from musictx.model.shipped import bundle_path
from musictx.objectives import NEXT_TOKEN, Objective


def header_of(config: TrainConfig, model: Model, manifest: Manifest, objective: Objective) -> BundleHeader:
    """Weights that begin with a bundle's keep its corpus, licence and citation beside the store's. Raises
    BundleError."""
    corpus, licence, citation = manifest.corpus.name, manifest.corpus.licence, manifest.corpus.citation
    if config.init_from is not None:
        before = read_header(bundle_path(config.init_from))
        corpus, licence = both(before.corpus, corpus), both(before.licence, licence)
        citation = both(before.notes.get("citation", ""), citation)
    return BundleHeader(
        model={"kind": kind_of(model), **asdict(model.config)},
        tokenizer=manifest.tokenizer,
        tokenizer_state=manifest.tokenizer_state,
        vocab_fingerprint=manifest.vocab_fingerprint,
        corpus=corpus,
        licence=licence,
        val_nll=None,
        version=version("musictx"),
        notes={"name": config.name, "seed": config.seed, "citation": citation},
        objective=told(config, objective, manifest),
    )


def told(config: TrainConfig, objective: Objective, manifest: Manifest) -> dict[str, Any]:
    """What a bundle says of its objective: enough to know its ids without it, and
    how much music its examples hold where they are whole, in ids, and in seconds where ids tell a melody. Nothing of
    the next token."""
    if config.objective == NEXT_TOKEN:
        return {}
    added = [list(row) for row in objective.added]
    known = {"name": config.objective, "settings": config.objective_settings or {}, "added": added}
    if objective.continuous:
        return known
    if objective.tokenizer.melody is not None:
        train = manifest.splits["train"]
        known["seconds"] = round(config.data.length * train.seconds / train.tokens, 2)
    return known | {"length": config.data.length}


def both(before: str, now: str) -> str:
    """Two origins in one text, the older first, none twice."""
    return " + ".join(dict.fromkeys(part for part in (*before.split(" + "), *now.split(" + ")) if part))
