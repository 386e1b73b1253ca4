"""Near-duplicates: pieces with the same notes, transposed or not, played faster or louder, or with a few notes changed.

A piece is the set of its pitch-interval 6-grams; MinHash (Broder 1997) keeps 64 numbers of it, whose share in common
estimates the overlap of two sets. Bands of the 64 (locality-sensitive hashing) find the pairs without comparing all.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from musictx.notes.score import DRUMS, Score

N_HASHES = 64
BAND = 4  # hashes in a band: two pieces that agree in one whole band are compared
GRAM = 6
SKETCH = 512  # of a long piece the 6-grams with the smallest hashes stand for all
SAME = 0.75  # from this estimated overlap on, two pieces count as one

Signature = NDArray[np.uint32]  # (64,)

_MIX = np.uint64(0x9E3779B97F4A7C15)
_rng = np.random.default_rng(0)
_FACTOR = _rng.integers(1, 2**63, N_HASHES, dtype=np.uint64) * 2 + 1
_SHIFT = _rng.integers(0, 2**63, N_HASHES, dtype=np.uint64)


def signature(score: Score) -> Signature:
    """(64,) the MinHash of a piece's pitch intervals, drums left out unless there is nothing else; time, tempo and
    loudness do not count."""
    melodic = score.program != DRUMS
    pitch = score.pitch[melodic if melodic.any() else ~melodic].astype(np.uint64)
    interval = np.diff(pitch) + np.uint64(128)  # from 1 … 255; unsigned numbers wrap round
    n = max(len(interval) - GRAM + 1, 1)
    grams = np.zeros(n, dtype=np.uint64)
    for k in range(min(GRAM, len(interval))):
        grams = grams * np.uint64(1_000_003) + interval[k : k + n]
    grams = np.sort(grams * _MIX)
    grams = grams[np.append(True, np.diff(grams) != 0)][:SKETCH]
    best = [((grams * f + s) >> np.uint64(32)).min() for f, s in zip(_FACTOR, _SHIFT, strict=True)]
    return np.array(best, dtype=np.uint32)


def group(signatures: Sequence[Signature]) -> list[int]:
    """For each piece the index of the first piece that it is a near-duplicate of, itself if of none before it."""
    leader = list(range(len(signatures)))

    def find(i: int) -> int:
        while leader[i] != i:
            leader[i] = leader[leader[i]]
            i = leader[i]
        return i

    first_in: dict[tuple[int, bytes], int] = {}
    for i, mine in enumerate(signatures):
        for band in range(0, N_HASHES, BAND):
            j = first_in.setdefault((band, mine[band : band + BAND].tobytes()), i)
            if j != i and float((signatures[j] == mine).mean()) >= SAME:
                a, b = sorted((find(i), find(j)))
                leader[b] = a
    return [find(i) for i in range(len(signatures))]
