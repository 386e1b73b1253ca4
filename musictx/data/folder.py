"""A folder of MIDI files as a store."""

import os
from pathlib import Path

from musictx.data.prepare import encode_files
from musictx.data.split import assign_splits, content_key
from musictx.data.store import SPLITS, Corpus, Manifest, check_target, write_store
from musictx.errors import StoreError
from musictx.tokenizers import build_tokenizer

SUFFIXES = {".mid", ".midi", ".kar"}


def find_midi(path: Path) -> list[tuple[str, Path]]:
    """Every MIDI file below a folder as (name inside it, path), sorted. Raises StoreError when there is none."""
    if not path.is_dir():
        raise StoreError(f"path={path} is not a folder: give a folder with .mid, .midi or .kar files in it")
    found = [
        (str((Path(root) / name).relative_to(path)), Path(root) / name)
        for root, _, names in os.walk(path)
        for name in names
        if Path(name).suffix.lower() in SUFFIXES
    ]
    if not found:
        raise StoreError(f"no .mid, .midi or .kar file in {path} or below it")
    return sorted(found)


def prepare_folder(
    path: Path,
    out: Path,
    tokenizer: str,
    *,
    name: str,
    licence: str,
    validation_fraction: float,
    test_fraction: float,
    seed: int,
    workers: int,
    overwrite: bool,
) -> Manifest:
    """Reads every MIDI file below `path` into a store, split by piece. Raises StoreError, ConfigError."""
    check_target(out, overwrite)
    tok = build_tokenizer(tokenizer)
    files = find_midi(path)
    pieces, dropped = encode_files(files, tokenizer, workers)
    if not pieces:
        raise StoreError(f"none of the {len(files)} files in {path} could be used; {dropped[0][0]}: {dropped[0][1]}")
    keys = [content_key(piece.ids, tok) for piece in pieces]
    assigned = assign_splits(keys, validation_fraction, test_fraction, seed)
    splits = {s: [p for p, a in zip(pieces, assigned, strict=True) if a == s] for s in SPLITS}
    extra = {"seed": seed, "duplicates": len(keys) - len(set(keys))}
    corpus = Corpus(name or path.resolve().name, licence)
    return write_store(out, tok, corpus, splits, dropped, extra, overwrite)
