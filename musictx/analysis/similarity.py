"""Embeddings of a store's passages in one file, and their similarity to other music."""

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
ALIKE = 2e-3  # of their size: half precision loses less
MOST_NEAREST = 3  # nearest passages of new music


class Match(NamedTuple):
    """A passage of the store; `likeness`: 1 is the same, 0 as any two passages."""

    number: int  # of the piece, over all splits
    name: str
    from_s: float
    likeness: float


class Index:
    """Passages of a store: vectors (N, C), the number of their piece (N,), their beginnings (N,)."""

    def __init__(self, vectors: Vectors, piece: NDArray[np.int32], from_s: NDArray[np.float32]) -> None:
        self.piece, self.from_s, self.raw = piece, from_s, vectors
        self.mean, self.scale = vectors.mean(0), vectors.std(0) + 1e-6
        self.is_uniform = bool(vectors.std(0).max() <= ALIKE * np.abs(vectors).max())  # one passage, or the same again
        if self.is_uniform:  # there is no usual distance
            self.mean, self.scale = np.zeros_like(self.mean), np.ones_like(self.scale)
        self.vectors = self.directions(vectors)

    def directions(self, vectors: Vectors) -> Vectors:
        """Standardised columns, rows of length 1."""
        z_scores = (vectors - self.mean) / self.scale
        rows: Vectors = z_scores / np.maximum(np.linalg.norm(z_scores, axis=1, keepdims=True), 1e-9)
        return rows

    def passages(self, vectors: Vectors, names: Sequence[str], most: int) -> list[list[Match]]:
        """For each passage of (Q, C) the nearest ones, one a piece."""
        rows = []
        for likeness in self.directions(vectors) @ self.vectors.T:  # (N,) the cosine with each of the index
            best: dict[int, int] = {}
            for n in np.argsort(-likeness, kind="stable"):
                best.setdefault(int(self.piece[n]), int(n))
                if len(best) == most:
                    break
            rows.append([Match(i, names[i], float(self.from_s[n]), float(likeness[n])) for i, n in best.items()])
        return rows

    def pieces(self, vectors: Vectors, names: Sequence[str], most: int) -> list[Match]:
        """Pieces by their mean passage, nearest to (Q, C) first."""
        numbers = np.unique(self.piece)
        means = np.stack([self.vectors[self.piece == i].mean(0) for i in numbers])
        query = self.directions(vectors).mean(0)
        likeness = means @ query / np.maximum(np.linalg.norm(means, axis=1) * np.linalg.norm(query), 1e-9)
        order = np.argsort(-likeness, kind="stable")[:most]
        return [Match(int(numbers[n]), names[numbers[n]], 0.0, float(likeness[n])) for n in order]

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
    is_finite = np.isfinite(vectors).all() and np.isfinite(from_s).all()
    is_valid = is_finite and 0 <= piece.min() <= piece.max() < pieces and from_s.min() >= 0
    return Index(vectors.astype(np.float32), piece, from_s) if is_valid else None


def index_path(store: Store, model_sha256: str, layer: int, passage_s: float, most: int) -> Path:
    """The file beside a store for this model and these passages."""
    hashes = [info.sha256 for info in store.manifest.splits.values()]
    key = sha256(json.dumps((model_sha256, layer, passage_s, most, hashes)).encode()).hexdigest()
    return beside_store(store.path, f"similar-{key[:16]}.safetensors")


class Neighbours:
    """The passages of a store nearest to new music, by the index of `musictx similar`."""

    def __init__(self, store: Store, embedder: Embedder, model_sha256: str) -> None:
        """Without such a file, `index` is None."""
        path = index_path(store, model_sha256, embedder.layer, PASSAGE_S, MOST_PASSAGES)
        self.names, self.embedder = piece_names(store), embedder
        self.index = load_index(path, len(self.names), embedder.model.config.d_model)

    def text(self, score: Score) -> str:
        """The nearest passages in a line; "" without an index or a passage."""
        begin_s = float(score.onset_s[0]) if len(score) else 0.0  # a seed may come before it
        queries = self.embedder.passages(score.clip(begin_s, score.duration_s), PASSAGE_S)
        if self.index is None or not queries:
            return ""
        rows = self.index.passages(self.embedder.vectors([part for _, part in queries]), self.names, 1)
        best = sorted(zip(queries, rows, strict=True), key=lambda pair: -pair[1][0].likeness)[:MOST_NEAREST]
        phrases = [
            f"{begin_s + at.from_s:.1f} s is like {match.from_s:.1f} s of {match.name}, {match.likeness:.2f}"
            for at, (match,) in best
        ]
        return printable(f"nearest passages as the model hears them, 1 is the same: {'; '.join(phrases)}")


def piece_names(store: Store) -> list[str]:
    """The names of all pieces, split by split."""
    return [name for split in store.manifest.splits for name in store.split(split).names]


def build_index(store: Store, embedder: Embedder, length_s: float, most: int) -> Index:
    """At most `most` passages of all splits. Raises UserError without a passage."""
    seconds = sum(info.seconds for info in store.manifest.splits.values())
    every_s = max(seconds / most, CLOSEST_S)
    ids: list[NDArray[np.int64]] = []
    origins: list[tuple[int, float]] = []
    number = 0
    for name in store.manifest.splits:
        for piece in store.split(name):
            for from_s, part in passages(store.tokenizer.decode(np.asarray(piece)), length_s, every_s):
                if (piece_ids := embedder.ids(part)) is not None:
                    ids.append(piece_ids)
                    origins.append((number, from_s))
            number += 1
    spread = np.linspace(0, max(len(ids) - 1, 0), min(most, len(ids))).round().astype(int)
    ids, origins = [ids[n] for n in spread], [origins[n] for n in spread]
    if not ids:
        raise UserError(f"{store.path} has no passage that this model can read", "give more music or another bundle=")
    vectors = embedder.embed(ids)
    return Index(vectors, np.array([n for n, _ in origins], np.int32), np.array([s for _, s in origins], np.float32))


def open_index(store: Store, embedder: Embedder, model_sha256: str, length_s: float, most: int) -> tuple[Index, str]:
    """The index of an earlier search, or a new one beside the store, with a remark on its file. Raises UserError."""
    path = index_path(store, model_sha256, embedder.layer, length_s, most)
    is_writable = os.access(path.parent, os.W_OK)
    index = load_index(path, len(piece_names(store)), embedder.model.config.d_model)
    if index is not None:
        return index, ""
    index = build_index(store, embedder, length_s, most)
    if is_writable:
        path.unlink(missing_ok=True)  # a damaged one
        index.save(path)
    fate = "kept for the next search" if is_writable else "not kept, its folder cannot be written to"
    return index, f"{path}: {fate}"
