"""Several bundles to be held against each other: where they are, what they are called, the store that all of them
can read."""

import glob
from collections.abc import Sequence
from pathlib import Path

from musictx.data.store import Store
from musictx.errors import ConfigError
from musictx.model.bundle import read_header
from musictx.model.shipped import BUNDLES, KNOWN, bundle_path

COMPOSER = "the composer"  # who is held against all of them


def find_bundles(runs: Sequence[str], setting: str = "runs") -> list[Path]:
    """The bundle of each name, run folder, file or pattern, in order, each once. Raises ConfigError where none is."""
    if not runs:
        raise ConfigError(f"{setting}=[]: give at least one run folder, bundle or pattern of them")
    found: list[Path] = []
    for run in runs:
        if run in BUNDLES:
            found.append(bundle_path(run))
            continue
        paths = [Path(p) for p in sorted(glob.glob(run))] if glob.has_magic(run) else [Path(run)]
        bundles = [p / "model.safetensors" if p.is_dir() else p for p in paths]
        bundles = [p for p in bundles if p.is_file()]
        if not bundles:
            raise ConfigError(
                f"{setting}: {run} holds no model.safetensors; give run folders, bundles or patterns of them, or "
                f"{KNOWN}"
            )
        found += bundles
    return list(dict.fromkeys(found))


def name_bundles(bundles: Sequence[Path], names: Sequence[str] | None, setting: str = "runs") -> list[str]:
    """The names that were given, or those of the folders or files. Raises ConfigError unless each has one of its own,
    and none the composer's."""
    names = names or [p.parent.name if p.name == "model.safetensors" else p.stem for p in bundles]
    if len(names) != len(bundles) or len({*names, COMPOSER}) != len(names) + 1:
        raise ConfigError(
            f"{setting}= holds {len(bundles)} bundles, names= {', '.join(names)}: give each one name of its own"
        )
    return list(names)


def common_store(path: Path, bundles: Sequence[Path]) -> Store:
    """The store, once it is known that all bundles speak its tokens. Raises ConfigError."""
    headers = [read_header(bundle) for bundle in bundles]
    store = Store(path)
    for bundle, header in zip(bundles, headers, strict=True):
        if header.vocab_fingerprint != store.tokenizer.vocab.fingerprint:
            raise ConfigError(
                f"{bundle} was trained on {header.tokenizer} tokens {header.vocab_fingerprint}, {path} holds "
                f"{store.manifest.tokenizer} tokens {store.tokenizer.vocab.fingerprint}: give models and a store of "
                "the same tokens"
            )
    return store
