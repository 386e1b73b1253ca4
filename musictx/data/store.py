"""The token store: a folder of memory-mapped splits with a manifest, written whole or not at all.

manifest.json            format, tokenizer, fingerprint, corpus, licence, counts, piece names, dropped files
train.ids.bin            uint16, the pieces one after another, without BOS and EOS
train.offsets.npy        int64 (pieces + 1,), where each piece begins and ends
"""

import json
import os
import shutil
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musictx.data.similar import Signature
from musictx.errors import ConfigError, StoreError, counted
from musictx.files import all_printable, fits, real_path
from musictx.tokenizers import Ids, Tokenizer, build_tokenizer

FORMAT = 1
AGAIN = "prepare the data again"
SPLITS = ("train", "validation", "test")


@dataclass(frozen=True)
class Piece:
    """A piece of music as ids."""

    name: str
    ids: Ids
    seconds: float
    signature: Signature = field(default_factory=lambda: np.zeros(0, np.uint32))  # for near-duplicates
    unfinished: bool = False  # without its end, which teaches no EOS then


@dataclass(frozen=True)
class Corpus:
    """The origin and licence of the music."""

    name: str
    licence: str
    citation: str = ""


@dataclass
class SplitInfo:
    tokens: int
    seconds: float
    pieces: list[str]
    sha256: str = ""  # of the ids
    offsets_sha256: str = ""  # of where the pieces begin and end
    unfinished: list[int] = field(default_factory=list)  # numbers of the pieces without their end


@dataclass
class Manifest:
    """The content of `manifest.json`."""

    tokenizer: str
    vocab_fingerprint: str
    corpus: Corpus
    splits: dict[str, SplitInfo]
    dropped: list[tuple[str, str]] = field(default_factory=list)  # (file, reason)
    extra: dict[str, Any] = field(default_factory=dict)
    tokenizer_state: str = ""  # merges that the tokenizer learned from the corpus
    format: int = FORMAT


COUNTED = {  # what a preparation adds to `extra`
    "files": int,
    "kept": int,
    "dropped_by_reason": dict[str, int],
    "near_duplicates": list[list[str]],
    "near_duplicates_across_splits": int,
}


def own_folders(out: Path) -> list[Path]:
    """The folders that a preparation writes: store, journal, partial store, old store."""
    out = real_path(out)
    return [out, *(out.with_name(f".{out.name}.{end}") for end in ("work", "partial", "old"))]


def beside_store(path: Path, end: str) -> Path:
    """A file beside a store, with its name: my_store-histograms.png."""
    place = Path(os.path.realpath(path))
    return place.parent / f"{place.name or 'store'}-{end}"


def is_store(path: Path) -> bool:
    return (path / "manifest.json").is_file()


def check_target(out: Path, overwrite: bool) -> None:
    """Raises ConfigError where a store at `out` would destroy files; called before the long work."""
    folder = next(p for p in (out, *real_path(out).parents) if p.exists())
    if not os.access(folder, os.W_OK) or not (out.exists() or folder.is_dir()):
        why = f"{folder} is not a folder that can be written to"
        raise ConfigError("out", got=out, why=why, allowed="another")
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    if not is_store(out):
        raise ConfigError("out", got=out, why="it exists and is not a token store", allowed="another")
    splits = _read_manifest(out).splits  # raises for a foreign manifest
    own_files = {"manifest.json", *(f"{s}.{end}" for s in splits for end in ("ids.bin", "offsets.npy"))}
    if foreign := sorted({path.name for path in out.iterdir()} - own_files):
        why = f"it has {foreign[0]}, which does not belong to a token store"
        raise ConfigError("out", got=out, why=why, allowed="another")
    if not overwrite:
        raise ConfigError("out", got=out, why="it is already a token store", allowed="another, or overwrite=true")


def write_store(
    out: Path,
    tokenizer: Tokenizer,
    corpus: Corpus,
    splits: dict[str, list[Piece]],
    dropped: list[tuple[str, str]],
    extra: dict[str, Any] | None = None,
    overwrite: bool = False,
) -> Manifest:
    """Writes a store whole or not at all. Raises ConfigError; StoreError without training or validation pieces."""
    check_target(out, overwrite)
    for split in ("train", "validation"):
        if not splits.get(split):
            raise StoreError(f"nothing to write: the {split} split of {corpus.name} has no pieces")
    info: dict[str, SplitInfo] = {}
    fingerprint = tokenizer.vocab.fingerprint
    manifest = Manifest(tokenizer.name, fingerprint, corpus, info, dropped, extra or {}, tokenizer.state)
    out, _, partial, old = own_folders(out)  # follows a link to its target
    if old.exists() and not out.exists():  # a run was killed between the two renames below
        old.rename(out)
    try:
        shutil.rmtree(partial, ignore_errors=True)  # of a run that was killed while writing
        partial.mkdir(parents=True)
        for name, pieces in splits.items():
            offsets = np.cumsum([0, *(len(p.ids) for p in pieces)], dtype=np.int64)
            np.save(partial / f"{name}.offsets.npy", offsets)
            with open(partial / f"{name}.ids.bin", "wb") as file:
                digest = sha256()
                for piece in pieces:
                    data = piece.ids.astype("<u2").tobytes()
                    digest.update(data)
                    file.write(data)
            info[name] = SplitInfo(
                tokens=int(offsets[-1]),
                seconds=round(sum(p.seconds for p in pieces), 3),
                pieces=[p.name for p in pieces],
                sha256=digest.hexdigest(),
                offsets_sha256=sha256(offsets.tobytes()).hexdigest(),
                unfinished=[i for i, p in enumerate(pieces) if p.unfinished],
            )
        text = json.dumps(asdict(manifest), indent=1, ensure_ascii=False)
        (partial / "manifest.json").write_text(text, encoding="utf-8")
        if out.exists():
            shutil.rmtree(old, ignore_errors=True)
            out.rename(old)
        partial.rename(out)
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return manifest


class Split:
    """A split of a store; `split[i]` is the i-th piece, a read-only view of the file."""

    def __init__(
        self, ids: Ids, offsets: NDArray[np.int64], names: list[str], unfinished: Collection[int] = ()
    ) -> None:
        self.ids, self.offsets, self.names, self.unfinished = ids, offsets, names, frozenset(unfinished)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: int) -> Ids:
        if not 0 <= i < len(self):
            raise IndexError(i)
        return self.ids[self.offsets[i] : self.offsets[i + 1]]

    def __iter__(self) -> Iterator[Ids]:
        return (self[i] for i in range(len(self)))


class Store:
    """A store on disk. Raises StoreError for a missing or damaged folder, and for another tokenizer than `tokenizer`
    (None: any)."""

    def __init__(self, path: str | Path, tokenizer: str | None = None) -> None:
        self.path = Path(path)
        self.manifest = _read_manifest(self.path)
        name, want = self.manifest.tokenizer, tokenizer or self.manifest.tokenizer
        self.tokenizer = build_tokenizer(want, self.manifest.tokenizer_state if name == want else "")
        fingerprint = self.tokenizer.vocab.fingerprint
        if name != want or self.manifest.vocab_fingerprint != fingerprint:
            maker = f"tokenizer {name} ({self.manifest.vocab_fingerprint})"
            hint = f"give tokenizer={name}, or {AGAIN}"
            raise StoreError(f"{path} was made by {maker}, not by {want} ({fingerprint})", hint)

    def split(self, name: str) -> Split:
        """The split of this name. Raises StoreError for a missing or damaged one."""
        if name not in self.manifest.splits:
            raise StoreError(f"{self.path} has no split {name!r}: it has {', '.join(self.manifest.splits)}")
        info = self.manifest.splits[name]
        try:
            at, raw = (self.path / f"{name}.{end}" for end in ("offsets.npy", "ids.bin"))
            if not (at.is_file() and raw.is_file()):  # a pipe would be waited for
                raise ValueError("one of its files is missing")
            offsets = np.array(np.lib.format.open_memmap(at, "r"))  # takes no more memory than the file has
            ids = np.memmap(raw, dtype="<u2", mode="r") if raw.stat().st_size else np.zeros(0, np.uint16)
            if offsets.ndim != 1 or offsets.dtype != np.int64 or offsets[:1] != 0 or (np.diff(offsets) < 0).any():
                raise ValueError("its offsets do not count up from 0")
            if not set(info.unfinished) <= set(range(len(info.pieces))):
                raise ValueError("it lacks pieces that it calls unfinished")
        except Exception as error:  # numpy raises many types for damage
            raise StoreError(f"{self.path}: the {name} split is damaged ({error})", AGAIN) from None
        if len(offsets) != len(info.pieces) + 1 or offsets[-1] != len(ids) or len(ids) != info.tokens:
            what = f"the {name} split has {counted(len(ids), 'token')} where the manifest says {info.tokens}"
            raise StoreError(f"{self.path}: {what}", AGAIN)
        return Split(ids, offsets, info.pieces, info.unfinished)


def _read_manifest(path: Path) -> Manifest:
    file = path / "manifest.json"
    if not is_store(path):
        raise StoreError(f"{path} is not a token store (no manifest.json)", "make one with musictx prepare")
    try:
        raw = json.loads(file.read_text(encoding="utf-8"))
        raw = {key: x if key == "tokenizer_state" else all_printable(x) for key, x in raw.items()}
        if raw.get("format") != FORMAT:
            raise StoreError(f"{path} has store format {raw.get('format')}, this version reads {FORMAT}")
        raw["corpus"] = Corpus(**raw["corpus"])
        raw["splits"] = {name: SplitInfo(**info) for name, info in raw["splits"].items()}
        raw["dropped"] = [(file, reason) for file, reason in raw["dropped"]]
        manifest = Manifest(**raw)
        if not fits(manifest, Manifest) or any(Path(name).name != name for name in manifest.splits):
            raise ValueError("its values are of other types")
        if wrong := [name for name, kind in COUNTED.items() if not fits(manifest.extra.get(name, kind()), kind)]:
            raise ValueError(f"{wrong[0]} is {manifest.extra[wrong[0]]!r}")
        return manifest
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise StoreError(f"{file} is damaged ({error!s:.200})", AGAIN) from None


def check_split(store: Store, name: str) -> Split:
    """A split after a check of its hashes, which reads it all. Raises StoreError for another one."""
    split, info = store.split(name), store.manifest.splits[name]
    for values, digest in ((split.ids, info.sha256), (split.offsets, info.offsets_sha256)):
        if digest and sha256(values.tobytes()).hexdigest() != digest:
            raise StoreError(f"{store.path}: the {name} split has changed since it was written", AGAIN)
    return split


def verify_split(store: Store, name: str) -> str:
    """Checks offsets, ids and hashes of a split; returns its sizes in a line. Raises StoreError."""
    split, most = check_split(store, name), store.tokenizer.vocab.n_events
    places = np.flatnonzero(split.ids >= most)
    if len(places):
        piece = int(np.searchsorted(split.offsets, places[0], side="right")) - 1
        what = f"has id {split.ids[places[0]]} in {split.names[piece]}, where music has ids below {most}"
        raise StoreError(f"{store.path}: the {name} split {what}", AGAIN)
    return f"{name}: {counted(len(split), 'piece')}, {counted(len(split.ids), 'id')}"
