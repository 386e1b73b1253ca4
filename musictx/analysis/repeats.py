"""Repeats: bars inside a piece, and runs of notes shared with the training set, in any key.

The index is a suffix array (Manber and Myers 1993). Compare with real held-out pieces of the same length in seconds.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.analysis.motif import chord_index
from musictx.analysis.statistics import STEPS_PER_BAR
from musictx.data.store import Store
from musictx.errors import UserError, counted
from musictx.files import printable
from musictx.music.score import DRUMS, Score

WORD = 8  # intervals of 8 bits in one uint64
STRIDE = 16  # intervals compared at a time
MOST_COPIES = 3  # of the runs that a piece shares with a store


class Copy(NamedTuple):
    """A run of `notes` notes of a score and a training piece; 0 if there is none."""

    notes: int
    seconds: float  # from its first onset to its last, in the score
    from_s: float  # where it begins in the score
    piece: int  # index of the training piece, -1 without one
    piece_s: float  # where it begins there


class CorpusIndex:
    """A search index of the training pieces: 13 bytes a note. Raises UserError without two notes."""

    def __init__(self, scores: Sequence[Score]) -> None:
        lines = [_intervals(score) for score in scores]
        self.starts = np.cumsum([0, *(len(onset_s) for _, onset_s in lines)])[:-1]  # (pieces,)
        # a 0, which no interval has, ends each piece
        text = [x for intervals, onset_s in lines for x in (intervals, np.zeros(min(len(onset_s), 1), np.uint8))]
        self.text = np.concatenate([*text, np.zeros(STRIDE, np.uint8)])  # (notes + 16,)
        self.onset_s = np.concatenate([np.zeros(0), *(onset_s for _, onset_s in lines)])  # (notes,)
        if not self.text.any():
            what = f"{counted(len(lines), 'training piece')} without two notes in a row"
            raise UserError(what, "give pieces with music in them")
        self.order = suffix_order(self.text[:-STRIDE])  # (notes,) positions, sorted by the text that follows

    def longest_copy(self, score: Score) -> Copy:
        """The longest run in a training piece; of several, the earliest."""
        return (self.copies(score, 1) or [Copy(0, 0.0, 0.0, -1, 0.0)])[0]

    def copies(self, score: Score, most: int) -> list[Copy]:
        """The longest runs, at most `most`, which share no interval."""
        line, onset_s = _intervals(score)
        length, place = self._longest_matches(line)
        runs: list[Copy] = []
        while len(runs) < most and length.any():
            i = int(length.argmax())
            n, piece = int(length[i]), int(np.searchsorted(self.starts, place[i], side="right")) - 1
            seconds = float(onset_s[i + n] - onset_s[i])
            runs.append(Copy(n + 1, seconds, float(onset_s[i]), piece, float(self.onset_s[place[i]])))
            length[i : i + n] = 0
            length[:i] = np.minimum(length[:i], i - np.arange(i))  # those that reach into it end before it
        return runs

    def _longest_matches(self, line: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(M,) the most intervals that agree from each place of a line on, and their place in the text."""
        padded = np.append(line, np.zeros(STRIDE, np.uint8))
        start, most = np.arange(len(line)), len(line) - np.arange(len(line))
        low, high = np.zeros_like(start), np.full_like(start, len(self.order))
        best, place = np.zeros_like(start), np.zeros_like(start)
        # the best match is one of the two neighbours of a place in the sorted order, and bisection looks at both
        while (is_open := low < high).any():
            middle = np.minimum((low + high) // 2, len(self.order) - 1)
            candidates = self.order[middle].astype(np.int64)
            agreement = np.minimum(_agreement(self.text, candidates, padded, start), most)
            place, best = np.where(agreement > best, candidates, place), np.maximum(agreement, best)
            before = self.text[candidates + agreement] < padded[start + agreement]
            low, high = np.where(is_open & before, middle + 1, low), np.where(is_open & ~before, middle, high)
        return best, place


class Provenance:
    """The training pieces of a store, to search. Raises StoreError, UserError."""

    def __init__(self, store: Store) -> None:
        split = store.split("train")
        self.names, self.corpus = split.names, store.manifest.corpus.name
        self.index = CorpusIndex([store.tokenizer.decode(np.asarray(ids)) for ids in split])

    def text(self, score: Score) -> str:
        """The longest shared passages of a score, in a line."""
        rows = [
            f"{copy.notes} notes at {copy.from_s:.1f} to {copy.from_s + copy.seconds:.1f} s, "
            f"in {self.names[copy.piece]} from {copy.piece_s:.1f} s on"
            for copy in self.index.copies(score, MOST_COPIES)
        ]
        return printable(f"longest runs shared with {self.corpus}, in any key: {'; '.join(rows) or 'none'}")


def _intervals(score: Score) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
    """(N - 1,) intervals plus 128, so 1 … 255, and (N,) the onsets; without drums."""
    score = score.select(score.program != DRUMS)
    # rhythm would hide copies: in fifty copied MAESTRO excerpts the longest run is 200 notes (median) by intervals and
    # 114 with rhythm; in a minute of 60 validation pieces, which are no copies, 10 and 9.5
    order = np.lexsort((score.pitch, chord_index(score.onset_s)))
    return (np.diff(score.pitch[order].astype(np.int64)) + 128).astype(np.uint8), score.onset_s[order]


def _agreement(
    a: NDArray[np.uint8], at_a: NDArray[np.int64], b: NDArray[np.uint8], at_b: NDArray[np.int64]
) -> NDArray[np.int64]:
    """(K,) how many values of `a` from `at_a` and `b` from `at_b` agree."""
    of_a, of_b = (np.lib.stride_tricks.sliding_window_view(x, STRIDE) for x in (a, b))
    agreement, open_rows = np.zeros_like(at_a), np.arange(len(at_a))
    while len(open_rows):
        i, j = at_a[open_rows] + agreement[open_rows], at_b[open_rows] + agreement[open_rows]
        inside = (i < len(of_a)) & (j < len(of_b))
        open_rows, i, j = open_rows[inside], i[inside], j[inside]
        differ = of_a[i] != of_b[j]
        agreement[open_rows] += np.where(differ.any(1), differ.argmax(1), STRIDE)
        open_rows = open_rows[~differ.any(1)]
    return agreement


def suffix_order(text: NDArray[np.uint8]) -> NDArray[np.int32]:
    """(N,) the places of a text sorted by the text from there on."""
    n = len(text)
    padded: NDArray[Any] = np.append(text, np.zeros(WORD, np.uint8)).astype(np.uint64)
    word = np.zeros(n, np.uint64)
    for k in range(WORD):
        word = word << np.uint64(8) | padded[k : k + n]
    order = np.argsort(word)
    key, ties, ahead = word[order], np.arange(n), WORD
    rank = np.empty(n, np.int64)  # of each place: where in `order` its group of ties begins
    while len(ties):
        is_first = np.append(True, key[1:] != key[:-1])
        rank[order[ties]] = ties[np.flatnonzero(is_first)[np.cumsum(is_first) - 1]]
        ties = ties[~(is_first & np.append(is_first[1:], True))]
        place = order[ties]
        beyond = place + ahead  # past the end words are padded with zeros: the shorter text comes first
        further = np.where(beyond < n, rank[np.minimum(beyond, n - 1)], n - 1 - beyond)  # at least -WORD
        key = rank[place] * (n + WORD + 1) + further + WORD
        by_key = np.argsort(key)
        order[ties], key, ahead = place[by_key], key[by_key], 2 * ahead
    return order.astype(np.int32)


Bar = frozenset[tuple[int, int, int]]  # (place, pitch, length), in sixteenths


def bars(score: Score) -> list[Bar]:
    """The notes of each bar of four quarters, without drums."""
    score = score.select(score.program != DRUMS)
    if not len(score):
        return []
    step_s = score.quarter_s / 4
    onset, offset = (np.rint(x / step_s).astype(np.int64) for x in (score.onset_s, score.offset_s))
    bars: list[set[tuple[int, int, int]]] = [set() for _ in range(int(onset.max()) // STEPS_PER_BAR + 1)]
    for at, pitch, length in zip(onset.tolist(), score.pitch.tolist(), (offset - onset).tolist(), strict=True):
        bars[at // STEPS_PER_BAR].add((at % STEPS_PER_BAR, pitch, length))
    return [frozenset(bar) for bar in bars]


def repeated_share(score: Score, from_bar: int = 0) -> float:
    """The share of sounding bars from `from_bar` on that repeat an earlier one; NaN without any."""
    music = bars(score)
    repeats = [music[n] in music[:n] for n in range(from_bar, len(music)) if music[n]]
    return float(np.mean(repeats)) if repeats else float("nan")
