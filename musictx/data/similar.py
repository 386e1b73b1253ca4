"""Near-duplicates by MinHash (Broder 1997) with locality-sensitive hashing: the same notes in any key, tempo, loudness
or performance, with a few changes.

A piece is the set of its pitch-interval 6-grams and of its streams: runs of 8 to 16 notes within three neighbouring
semitones. Human timing changes the order of a chord's notes, and so the 6-grams; streams keep theirs.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musictx.music.score import DRUMS, Score

N_HASHES = 128
BAND, N_BANDS = 2, 32  # hashes in a band, bands: two pieces that agree in one whole band are compared
GRAM = 6  # intervals
REACH = 3  # neighbouring semitones of a stream: two bits a note
SHORTEST = 8  # notes of a stream
EIGHT, ONES = np.uint32(0xFFFF), np.uint32(0x5555)  # the bits of eight notes; eight notes of the lowest pitch
SKETCH = 64  # 6-grams kept of a long piece: those with the smallest hashes
STREAM_SKETCH = 448  # streams kept; they survive human timing and therefore count for more
PAIRS = 2**15  # compared at once: 4 MB
SAME = 0.4  # from this estimated overlap on, two pieces count as one

Signature = NDArray[np.uint32]  # (128,)

_MIX = np.uint64(0x9E3779B97F4A7C15)
_rng = np.random.default_rng(0)
_FACTOR = _rng.integers(1, 2**31, (N_HASHES, 1), dtype=np.uint32) * 2 + 1
_SHIFT = _rng.integers(0, 2**32, (N_HASHES, 1), dtype=np.uint32)


def signature(score: Score) -> Signature:
    """(128,) the MinHash of a piece's pitches in order, without drums unless it is all drums."""
    melodic = score.program != DRUMS
    pitch = score.pitch[melodic if melodic.any() else ~melodic]
    grams = np.unique(_hash(_interval_grams(pitch)))[:SKETCH]
    streams = np.unique(_hash(_streams(pitch)))[:STREAM_SKETCH]
    best: Signature = (np.append(grams, streams) * _FACTOR + _SHIFT).min(axis=1)
    return best


class Links:
    """Connected groups of numbers (union-find); a group's name is its smallest number."""

    def __init__(self) -> None:
        self._up: dict[int, int] = {}  # a smaller member of the same group

    def first(self, number: int) -> int:
        while (up := self._up.get(number, number)) != number:
            number = up
        return number

    def join(self, one: int, other: int) -> None:
        least, more = sorted((self.first(one), self.first(other)))
        self._up[more] = least


def group(signatures: Sequence[Signature]) -> list[int]:
    """For each piece the index of its first near-duplicate, or its own."""
    links = Links()
    table = np.array(signatures, np.uint32).reshape(-1, N_HASHES)  # (pieces, 128)
    for band in range(0, N_BANDS * BAND, BAND):
        for members in _alike(table[:, band : band + BAND]):
            for first, others in _near(table[members]):
                for other in members[others].tolist():
                    links.join(int(members[first]), other)
    return [links.first(i) for i in range(len(signatures))]


def _alike(band: NDArray[np.uint32]) -> list[NDArray[np.int64]]:
    """The buckets of two or more pieces whose numbers of this band (N, 2) are equal."""
    keys = np.ascontiguousarray(band).view(np.uint64).ravel()
    order = np.argsort(keys, kind="stable")
    buckets = np.split(order, np.flatnonzero(np.diff(keys[order])) + 1)
    return [bucket for bucket in buckets if len(bucket) > 1]


def _near(rows: NDArray[np.uint32]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Numbers of rows (M, 128), each with those of its later near-duplicates; a copy of an earlier row has no pairs of
    its own."""
    is_copy = np.zeros(len(rows), bool)  # of an earlier row: a thousand copies are not a million pairs
    step = max(PAIRS // len(rows), 1)
    for start in range(0, len(rows), step):
        firsts = start + np.flatnonzero(~is_copy[start : start + step])
        near = np.count_nonzero(rows[firsts, None] == rows[start:], axis=2) >= SAME * N_HASHES
        for k in np.flatnonzero(np.count_nonzero(near, axis=1) > 1).tolist():  # each is near itself
            first = int(firsts[k])
            if not is_copy[first]:
                others = first + 1 + np.flatnonzero(near[k, first + 1 - start :])
                is_copy[others] = True
                yield first, others


def _interval_grams(pitch: NDArray[Any]) -> NDArray[np.uint64]:
    """(N - 6,) a number for every 6 intervals in a row; a shorter piece is one number."""
    interval: NDArray[Any] = np.diff(pitch.astype(np.uint64)) + np.uint64(128)  # 1 … 255; unsigned numbers wrap round
    n = max(len(interval) - GRAM + 1, 1)
    grams = np.zeros(n, dtype=np.uint64)
    for k in range(min(GRAM, len(interval))):
        grams = grams * np.uint64(1_000_003) + interval[k : k + n]
    return grams


def _streams(pitch: NDArray[Any]) -> NDArray[np.uint32]:
    """Runs of 8 to 16 notes of a stream in two bits each, from each note on, for its three streams; without runs of a
    single pitch."""
    lowest = np.stack([pitch + np.uint8(k) for k in reversed(range(REACH))], axis=1).ravel()  # (3N,), plus 2
    order = np.argsort(lowest, kind="stable")  # the notes of each stream together, in time
    lowest = lowest[order]
    runs = np.tile(np.arange(1, REACH + 1, dtype=np.uint32), len(pitch))[order]
    for length in (1, 2, 4, 8):
        same = lowest[length:] == lowest[:-length]
        runs[:-length] |= (runs[length:] * same) << np.uint32(2 * length)
    long_enough: NDArray[np.bool_] = lowest[SHORTEST - 1 :] == lowest[: 1 - SHORTEST]
    runs = runs[: len(long_enough)][long_enough]
    one_pitch: NDArray[np.bool_] = runs & EIGHT == (runs & 3) * ONES
    return runs[~one_pitch]


def _hash(numbers: NDArray[Any]) -> NDArray[np.uint32]:
    return (numbers * _MIX >> np.uint64(32)).astype(np.uint32)
