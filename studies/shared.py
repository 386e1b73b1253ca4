"""Shared by the studies: the options of their commands, the pieces of a store, and those that choose."""

import argparse
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from musictx.data.similar import signature
from musictx.data.store import Piece, Store, write_store
from musictx.errors import StoreError

SETTING = re.compile(r"\+{0,2}[\w.]+=")
HELD_OUT = 20  # pieces
ALIKE = 0.1  # held-out pieces share less of their sketch with every other piece; at 0.4 two count as one piece

OPTIONS: dict[str, dict[str, Any]] = {
    "store": {"type": Path, "default": Path("outputs/stores/jsb")},
    "archive": {"type": Path, "required": True, "help": "MAESTRO v3 as it was downloaded, the MIDI zip"},
    "asap": {"type": Path, "required": True, "help": "performances that MAESTRO lacks, zip or folder"},
    "pop": {"type": Path, "required": True, "help": "POP909, zip or folder"},
    "out": {"type": Path, "help": "all that is made; default: %(default)s"},
    "bundle": {"type": Path, "help": "default: in --out"},
    "results": {"type": Path, "help": "a folder for the figures; default: --out"},
    "seconds": {"type": float, "help": "CPU seconds of a training, for a trial"},
    "test": {"action": "store_true", "help": "read the test split after all else"},
}


def options(doc: str | None, *names: str, **defaults: Any) -> argparse.ArgumentParser:
    """The options of a script: those of `OPTIONS` that it names, some with another default."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in names:
        parser.add_argument(f"--{name}", **OPTIONS[name])
    parser.set_defaults(**defaults)
    return parser


def asked(parser: argparse.ArgumentParser) -> tuple[argparse.Namespace, list[str]]:
    """What a person gave: the options, and settings (key=value), in any order: argparse would take settings after
    `--models a b` for models."""
    overrides = [word for word in sys.argv[1:] if SETTING.match(word)]
    return parser.parse_args([word for word in sys.argv[1:] if word not in overrides]), overrides


def pieces_of(store: Store, split: str) -> list[Piece]:
    """A split's pieces, each with its length in seconds."""
    found = store.split(split)
    return [
        Piece(name, np.asarray(ids), store.tokenizer.seconds(ids), unfinished=i in found.unfinished)
        for i, (name, ids) in enumerate(zip(found.names, found, strict=True))
    ]


def selection_store(official: Store, out: Path) -> Store:
    """A new store of the training pieces of `official`. Its validation is a seeded random choice of those that share
    little with any other. Raises StoreError if there are too few."""
    if not (out / "manifest.json").exists():
        pieces, tokenizer = pieces_of(official, "train"), official.tokenizer
        sketch = np.stack([signature(tokenizer.decode(piece.ids)) for piece in pieces])  # (P, hashes)
        alike = (sketch[:, None] == sketch).mean(-1)  # (P, P)
        np.fill_diagonal(alike, 0)
        alone = np.flatnonzero(alike.max(1) < ALIKE)
        if len(alone) < HELD_OUT:
            raise StoreError(f"only {len(alone)} pieces are unlike all others, not {HELD_OUT}: give more music")
        held_out = set(np.random.default_rng(0).choice(alone, HELD_OUT, replace=False).tolist())
        splits = {
            "train": [piece for i, piece in enumerate(pieces) if i not in held_out],
            "validation": [piece for i, piece in enumerate(pieces) if i in held_out],
        }
        corpus = replace(official.manifest.corpus, name=f"{official.manifest.corpus.name}, its training split alone")
        write_store(out, tokenizer, corpus, splits, [])
    store = Store(out, official.tokenizer.name)
    if sum(info.tokens for info in store.manifest.splits.values()) != official.manifest.splits["train"].tokens:
        raise StoreError(f"{out} was made from another store than {official.path}: give that one, or another --out")
    return store
