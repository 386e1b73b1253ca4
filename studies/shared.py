"""Shared by the studies: the options of their commands, where they may write, the pieces of a store, and those that
choose.

All that a script makes lies in its `--out`, a folder of its own: new, empty, or marked as made by the same script. What
is there of earlier runs is not made again. No script writes into the package; a person copies a bundle there.
"""

import argparse
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from musictx.data.similar import signature
from musictx.data.store import Piece, Store, write_store
from musictx.errors import StoreError, UserError
from musictx.model.packaged import FOLDER
from musictx.terminal import say

SETTING = re.compile(r"\+{0,2}[\w.]+=")
HELD_OUT = 20  # pieces
ALIKE = 0.1  # held-out pieces share less of their sketch with every other piece; at 0.4 two count as one piece

MARK = "made-by.txt"  # in a folder that is a script's own

OPTIONS: dict[str, dict[str, Any]] = {
    "store": {"type": Path, "default": Path("outputs/stores/jsb")},
    "archive": {"type": Path, "required": True, "help": "MAESTRO v3 as it was downloaded, the MIDI zip"},
    "asap": {"type": Path, "required": True, "help": "performances that MAESTRO lacks, zip or folder"},
    "pop": {"type": Path, "required": True, "help": "POP909, zip or folder"},
    "annotations": {"type": Path, "help": "beats of POP909, where --pop lacks them, zip or folder"},
    "jsb": {"type": Path, "required": True, "help": "Jsb16thSeparated.json"},
    "hymns": {"type": Path, "required": True, "help": "hymns in ABC, zip"},
    "tunes": {"type": Path, "required": True, "help": "lead sheets in MusicXML, zip"},
    "keyboard": {"type": Path, "required": True, "help": "keyboard scores in Humdrum, zip"},
    "chopin": {"type": Path, "required": True, "help": "Chopin's first editions in Humdrum, zip"},
    "songs": {"type": Path, "required": True, "help": "songs with piano in MusicXML, zip"},
    "out": {"type": Path, "help": "a folder for all that is made; default: %(default)s"},
    "overwrite": {"action": "store_true", "help": "take --out though it has files that this script did not make"},
    "seconds": {"type": float, "help": "CPU seconds of a training, for a trial"},
    "test": {"action": "store_true", "help": "read the test split after all else"},
}
ARCHIVES = ("archive", "asap", "pop", "annotations", "jsb", "hymns", "tunes", "keyboard", "songs", "chopin")


class Options(argparse.ArgumentParser):
    """The options of a script. Before the long work archives must be there, and `--out` becomes the script's own."""

    def parse_args(self, args: Any = None) -> Any:  # type: ignore[override] # no script gives a namespace
        found = super().parse_args(args)
        for name in ARCHIVES:
            if (path := getattr(found, name, None)) and not path.exists():
                raise UserError(f"--{name} {path} does not exist", "give the corpus as it was downloaded")
        if hasattr(found, "out"):
            take(found.out, Path(sys.argv[0]).name, found.overwrite)
        return found


def take(out: Path, script: str, overwrite: bool) -> None:
    """Makes a folder the script's own, and says what it has already. Raises UserError for one inside the package, and
    for one with files that the script did not make, unless `overwrite` is true."""
    mark, package = out / MARK, FOLDER.parent
    if package in (real := out.resolve(), *real.parents):
        raise UserError(f"--out {out} is inside the package", "give another, and copy what is made yourself")
    if out.exists() and not out.is_dir():
        raise UserError(f"--out {out} is a file", "give a folder")
    there = [path for path in out.rglob("*") if path.is_file() and path != mark]
    own = mark.is_file() and mark.read_text(encoding="utf-8").strip() == script
    if there and not own and not overwrite:
        what = f"--out {out} has files that {script} did not make, as {there[0].relative_to(out)}"
        raise UserError(what, "give a new folder, or --overwrite")
    if there:
        say(f"{out}: found {len(there)} files; what is there is not made again, and another --out begins anew")
    out.mkdir(parents=True, exist_ok=True)
    mark.write_text(f"{script}\n", encoding="utf-8")


def options(doc: str | None, *names: str, **defaults: Any) -> Options:
    """The options of a script: those of `OPTIONS` that it names, some with another default; `overwrite` with `out`."""
    parser = Options(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in (*names, *(["overwrite"] if "out" in names else [])):
        parser.add_argument(f"--{name}", **OPTIONS[name])
    parser.set_defaults(**defaults)
    return parser


def asked(parser: Options, *own: str) -> tuple[argparse.Namespace, list[str]]:
    """What a person gave: the options, and settings (key=value), in any order: argparse would take settings after
    `--models a b` for models. Raises UserError for settings that are the script's `own`."""
    overrides = [word for word in sys.argv[1:] if SETTING.match(word)]
    if taken := [word for word in overrides if word.lstrip("+").partition("=")[0] in own]:
        raise UserError(f"{taken[0]}: the script says this itself", "leave it out; --help shows the options")
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
    else:
        say(f"{out}: found, not made again")
    store = Store(out, official.tokenizer.name)
    if sum(info.tokens for info in store.manifest.splits.values()) != official.manifest.splits["train"].tokens:
        raise StoreError(f"{out} was made from another store than {official.path}: give that one, or another --out")
    return store
