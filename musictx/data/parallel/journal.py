"""The journal of a preparation: its chunks on disk until the store is written."""

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from musictx.data.recipe import Encoded
from musictx.data.source import UNREADABLE, Item
from musictx.data.store import Piece, own_folders
from musictx.errors import UserError
from musictx.files import replacing
from musictx.system import locked

CHUNK_FILES = 32

Chunk = Sequence[Item]


def chunks_of(items: Sequence[Item]) -> Sequence[Chunk]:
    """The files in runs of `CHUNK_FILES`, for any number of workers."""
    return [items[start : start + CHUNK_FILES] for start in range(0, len(items), CHUNK_FILES)]


class Journal:
    """A hidden folder beside the store: each finished chunk has a file of ids and, written last, a file of facts."""

    def __init__(self, out: Path, recipe: str) -> None:
        self.folder, self.recipe = own_folders(out)[1], recipe
        self._new_folders: list[Path] = []

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keeps other runs from the same store; an error before the first chunk leaves no folder. Raises UserError
        where another run has the lock."""
        self._new_folders = [folder for folder in self.folder.parents if not folder.exists()]
        self.folder.mkdir(parents=True, exist_ok=True)
        error = UserError(f"another run is writing there ({self.folder})", "wait for it or give another out=")
        with locked(self.folder / "lock", error):
            try:
                yield
            except UserError:
                if not any(self.folder.glob("*.json")):  # nothing finished is lost
                    self.close()
                raise

    def done(self, chunk: Chunk) -> bool:
        """Whether a chunk is complete, without files that could not be opened."""
        key = self._key(chunk)
        try:
            facts = self._facts(key)
            complete: bool = 2 * sum(n for _, n, *_ in facts["pieces"]) == (self.folder / f"{key}.ids").stat().st_size
            has_unreadable = any(reason.startswith(UNREADABLE) for _, reason in facts["dropped"])
        except (OSError, ValueError, KeyError, TypeError):
            return False
        return complete and not has_unreadable

    def write(self, chunk: Chunk, results: Sequence[Encoded]) -> None:
        pieces = [(item.name, *r) for item, r in zip(chunk, results, strict=True) if not isinstance(r, str)]
        key = self._key(chunk)
        with replacing(self.folder / f"{key}.ids") as partial:
            partial.write_bytes(b"".join(ids for _, ids, _, _ in pieces))
        facts = {
            "pieces": [(name, len(ids) // 2, seconds, mark.hex()) for name, ids, seconds, mark in pieces],
            "dropped": [(item.name, r) for item, r in zip(chunk, results, strict=True) if isinstance(r, str)],
        }
        with replacing(self.folder / f"{key}.json") as partial:
            partial.write_text(json.dumps(facts), encoding="utf-8")

    def read(self, chunks: Sequence[Chunk]) -> tuple[list[Piece], list[tuple[str, str]]]:
        """The pieces of finished chunks, with ids on disk, and the dropped files with reasons."""
        pieces: list[Piece] = []
        dropped: list[tuple[str, str]] = []
        keys, all_ids, at = [self._key(chunk) for chunk in chunks], self.folder / "ids.bin", 0
        # one file for the memory map: a large corpus has more chunks than a process may open files
        with open(all_ids, "wb") as file:
            for key in keys:
                file.write((self.folder / f"{key}.ids").read_bytes())
        ids = np.memmap(all_ids, np.uint16, "r") if all_ids.stat().st_size else np.zeros(0, np.uint16)
        for key in keys:
            facts = self._facts(key)
            for name, n_ids, seconds, mark in facts["pieces"]:
                signature = np.frombuffer(bytes.fromhex(mark), np.uint32)
                pieces.append(Piece(name, ids[at : at + n_ids], seconds, signature))
                at += n_ids
            dropped += [(name, reason) for name, reason in facts["dropped"]]
        return pieces, dropped

    def close(self) -> None:
        """Deletes the journal, and the empty folders that it made around itself."""
        shutil.rmtree(self.folder, ignore_errors=True)
        for folder in self._new_folders:
            with suppress(OSError):
                folder.rmdir()

    def _facts(self, key: str) -> dict[str, Any]:
        facts: dict[str, Any] = json.loads((self.folder / f"{key}.json").read_text(encoding="utf-8"))
        return facts

    def _key(self, chunk: Chunk) -> str:
        stamps = [self.recipe, *((item.name, item.stamp) for item in chunk)]
        return sha256(json.dumps(stamps).encode()).hexdigest()[:24]
