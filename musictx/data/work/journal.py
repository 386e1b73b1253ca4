"""What is done stays done: finished chunks of a preparation, kept on disk until the store stands."""

import json
import shutil
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np

from musictx.data.recipe import Encoded
from musictx.data.similar import N_HASHES
from musictx.data.source import Item
from musictx.data.store import Piece
from musictx.files import replacing

CHUNK_FILES = 32
CHUNK_BYTES = 8 * 2**20

Chunk = Sequence[Item]


def chunks_of(items: Sequence[Item]) -> Sequence[Chunk]:
    """Runs of neighbouring files, each a bounded amount of work, the same for every number of workers."""
    chunks: list[list[Item]] = []
    size = 0
    for item in items:
        if not chunks or len(chunks[-1]) == CHUNK_FILES or size + item.size > CHUNK_BYTES:
            chunks.append([])
            size = 0
        chunks[-1].append(item)
        size += item.size
    return chunks


class Journal:
    """A hidden folder beside the store. A chunk counts as done when its .json is there; it is written last."""

    def __init__(self, out: Path, recipe: str) -> None:
        self.folder, self.recipe = out.parent / f".{out.name}.work", recipe

    def done(self, chunk: Chunk) -> bool:
        return self._path(chunk, "json").is_file()

    def write(self, chunk: Chunk, results: Sequence[Encoded]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        pieces = [(item.name, *r) for item, r in zip(chunk, results, strict=True) if not isinstance(r, str)]
        dropped = [(item.name, r) for item, r in zip(chunk, results, strict=True) if isinstance(r, str)]
        facts = {
            "names": [name for name, *_ in pieces],
            "seconds": [seconds for _, _, seconds, _ in pieces],
            "lengths": [len(ids) // 2 for _, ids, _, _ in pieces],
            "dropped": dropped,
        }
        with replacing(self._path(chunk, "npy")) as partial:
            np.save(partial, np.frombuffer(b"".join(ids for _, ids, _, _ in pieces), np.uint16))
        with replacing(self._path(chunk, "hash.npy")) as partial:
            np.save(partial, np.frombuffer(b"".join(mark for *_, mark in pieces), np.uint32).reshape(-1, N_HASHES))
        with replacing(self._path(chunk, "json")) as partial:
            partial.write_text(json.dumps(facts), encoding="utf-8")

    def read(self, chunk: Chunk) -> tuple[list[Piece], list[tuple[str, str]]]:
        """The pieces of a finished chunk, their ids still on disk, and its left-out files with reasons."""
        facts = json.loads(self._path(chunk, "json").read_text(encoding="utf-8"))
        ids = np.load(self._path(chunk, "npy"), mmap_mode="r") if any(facts["lengths"]) else np.zeros(0, np.uint16)
        marks = np.load(self._path(chunk, "hash.npy"))
        ends = np.cumsum([0, *facts["lengths"]])
        rows = zip(facts["names"], ends, ends[1:], facts["seconds"], marks, strict=False)
        pieces = [Piece(name, ids[start:end], seconds, mark) for name, start, end, seconds, mark in rows]
        return pieces, [(name, reason) for name, reason in facts["dropped"]]

    def close(self) -> None:
        """Forgets everything: the store stands."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, chunk: Chunk, suffix: str) -> Path:
        stamps = [self.recipe, *((item.name, item.stamp) for item in chunk)]
        return self.folder / f"{sha256(json.dumps(stamps).encode()).hexdigest()[:24]}.{suffix}"
