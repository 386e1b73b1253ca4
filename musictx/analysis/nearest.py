"""Passages of a store as vectors in one file, and the ones nearest to other music."""

import json
import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from musictx.analysis.embedding import Embedder, Vectors, passages
from musictx.data.store import Store, beside_store
from musictx.errors import UserError
from musictx.files import printable, replacing
from musictx.music.score import Score

CLOSEST_S = 2.5  # the least time between the beginnings of two passages
PASSAGE_S, MOST_PASSAGES = 10.0, 2000  # of an index, where nothing else is asked
ALIKE = 2e-3  # of their size: what half precision loses is less
MOST_NEAREST = 3  # nearest passages of new music


class Near(NamedTuple):
    """`likeness`: 1 is the same, 0 as any two passages of the store."""

    number: int  # of the piece, over all splits
    name: str
    from_s: float
    likeness: float


class Index:
    """Passages of `length_s` seconds: vectors (N, C), the number of their piece (N,), their beginnings (N,)."""

    def __init__(self, vectors: Vectors, piece: NDArray[np.int32], from_s: NDArray[np.float32]) -> None:
        self.piece, self.from_s, self.raw = piece, from_s, vectors
        self.mean, self.scale = vectors.mean(0), vectors.std(0) + 1e-6
        self.alike = bool(vectors.std(0).max() <= ALIKE * np.abs(vectors).max())  # one passage, or the same again
        if self.alike:  # there is no usual distance
            self.mean, self.scale = np.zeros_like(self.mean), np.ones_like(self.scale)
        self.vectors = self.directions(vectors)

    def directions(self, vectors: Vectors) -> Vectors:
        """Every column as far from its mean as usual, every row of length 1."""
        scaled = (vectors - self.mean) / self.scale
        rows: Vectors = scaled / np.maximum(np.linalg.norm(scaled, axis=1, keepdims=True), 1e-9)
        return rows

    def passages(self, vectors: Vectors, names: Sequence[str], most: int) -> list[list[Near]]:
        """For each of Q passages (Q, C) the nearest ones, of a piece each, the nearest first."""
        rows = []
        for likeness in self.directions(vectors) @ self.vectors.T:  # (N,) the cosine with each of the index
            best: dict[int, int] = {}
            for n in np.argsort(-likeness, kind="stable"):
                best.setdefault(int(self.piece[n]), int(n))
                if len(best) == most:
                    break
            rows.append([Near(i, names[i], float(self.from_s[n]), float(likeness[n])) for i, n in best.items()])
        return rows

    def pieces(self, vectors: Vectors, names: Sequence[str], most: int) -> list[Near]:
        """The pieces whose passages together are nearest to all of these (Q, C)."""
        numbers = np.unique(self.piece)
        means = np.stack([self.vectors[self.piece == i].mean(0) for i in numbers])
        mine = self.directions(vectors).mean(0)
        likeness = means @ mine / np.maximum(np.linalg.norm(means, axis=1) * np.linalg.norm(mine), 1e-9)
        order = np.argsort(-likeness, kind="stable")[:most]
        return [Near(int(numbers[n]), names[numbers[n]], 0.0, float(likeness[n])) for n in order]

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as partial:
            vectors = self.raw.astype(np.float16)
            partial.write_bytes(save({"vectors": vectors, "piece": self.piece, "from_s": self.from_s}))


def load_index(path: Path, pieces: int, width: int) -> Index | None:
    """The index of an earlier search; None for a file that is missing or damaged."""
    kinds = {"vectors": np.float16, "piece": np.int32, "from_s": np.float32}
    try:
        tensors = load_file(path)
    except (SafetensorError, OSError):
        return None
    if {name: tensor.dtype for name, tensor in tensors.items()} != kinds:
        return None
    vectors, piece, from_s = (tensors[name] for name in kinds)
    n = piece.size
    if not (n and vectors.shape == (n, width) and piece.shape == from_s.shape == (n,)):
        return None
    finite = np.isfinite(vectors).all() and np.isfinite(from_s).all()
    possible = finite and 0 <= piece.min() <= piece.max() < pieces and from_s.min() >= 0
    return Index(vectors.astype(np.float32), piece, from_s) if possible else None


def path_of(store: Store, model_sha256: str, layer: int, passage_s: float, most: int) -> Path:
    """The file beside a store that keeps the index of it, a model and passages."""
    hashes = [info.sha256 for info in store.manifest.splits.values()]
    key = sha256(json.dumps((model_sha256, layer, passage_s, most, hashes)).encode()).hexdigest()
    return beside_store(store.path, f"similar-{key[:16]}.safetensors")


class Neighbours:
    """The passages of a store that are nearest to new music, by the index that `musictx similar` made of it."""

    def __init__(self, store: Store, embedder: Embedder, model_sha256: str) -> None:
        """Without such a file, `index` is None."""
        path = path_of(store, model_sha256, embedder.layer, PASSAGE_S, MOST_PASSAGES)
        self.names, self.embedder = names_of(store), embedder
        self.index = load_index(path, len(self.names), embedder.model.config.d_model)

    def text(self, score: Score) -> str:
        """The nearest passages in a line; "" without an index, or for music without a passage."""
        begin_s = float(score.onset_s[0]) if len(score) else 0.0  # a seed may come before it
        mine = self.embedder.passages(score.clip(begin_s, score.duration_s), PASSAGE_S)
        if self.index is None or not mine:
            return ""
        rows = self.index.passages(self.embedder.vectors([part for _, part in mine]), self.names, 1)
        best = sorted(zip(mine, rows, strict=True), key=lambda pair: -pair[1][0].likeness)[:MOST_NEAREST]
        phrases = [
            f"{begin_s + at.from_s:.1f} s is like {near.from_s:.1f} s of {near.name}, {near.likeness:.2f}"
            for at, (near,) in best
        ]
        return printable(f"nearest passages as the model hears them, 1 is the same: {'; '.join(phrases)}")


def names_of(store: Store) -> list[str]:
    """All pieces, split by split."""
    return [name for split in store.manifest.splits for name in store.split(split).names]


def build_index(store: Store, embedder: Embedder, length_s: float, most: int) -> Index:
    """At most `most` passages, spread over all splits of a store. Raises UserError for a store without
    a passage."""
    seconds = sum(info.seconds for info in store.manifest.splits.values())
    every_s = max(seconds / most, CLOSEST_S)
    ids: list[NDArray[np.int64]] = []
    where: list[tuple[int, float]] = []
    number = 0
    for name in store.manifest.splits:
        for piece in store.split(name):
            for from_s, part in passages(store.tokenizer.decode(np.asarray(piece)), length_s, every_s):
                if (read := embedder.ids(part)) is not None:
                    ids.append(read)
                    where.append((number, from_s))
            number += 1
    spread = np.linspace(0, max(len(ids) - 1, 0), min(most, len(ids))).round().astype(int)
    ids, where = [ids[n] for n in spread], [where[n] for n in spread]
    if not ids:
        raise UserError(f"{store.path} has no passage that this model can read", "give more music or another bundle=")
    vectors = embedder.embed(ids)
    return Index(vectors, np.array([n for n, _ in where], np.int32), np.array([s for _, s in where], np.float32))


def open_index(store: Store, embedder: Embedder, model_sha256: str, length_s: float, most: int) -> tuple[Index, str]:
    """The index of an earlier search, or a new one beside the store, with a remark on its file. Raises UserError."""
    path = path_of(store, model_sha256, embedder.layer, length_s, most)
    is_writable = os.access(path.parent, os.W_OK)
    index = load_index(path, len(names_of(store)), embedder.model.config.d_model)
    if index is not None:
        return index, ""
    index = build_index(store, embedder, length_s, most)
    if is_writable:
        path.unlink(missing_ok=True)  # a damaged one
        index.save(path)
    fate = "kept for the next search" if is_writable else "not kept, its folder cannot be written to"
    return index, f"{path}: {fate}"
