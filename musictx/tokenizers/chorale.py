"""Chorale encoding: a grid of sixteenths read S1 A1 T1 B1 S2 …, one pitch token per voice per step.

Huang et al. 2018 (arXiv 1809.04281), section 4.1. A held note is repeated, silence has a token of its own.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from musictx.errors import TokenError
from musictx.notes.grid import N_VOICES, REST, STEPS_PER_QUARTER, Grid, grid_to_score, score_to_grid, snap_to_grid
from musictx.notes.score import Score
from musictx.tokenizers.grammar import GridGrammar
from musictx.tokenizers.vocab import EventRange, Ids, Vocab


class ChoraleTokenizer:
    """Four-part music on a grid of sixteenths."""

    name = "chorale"
    group = N_VOICES  # windows begin with a soprano
    voices = N_VOICES
    state = ""
    metrical = True
    programs = False
    vocab = Vocab("chorale/1", (EventRange("PITCH", 21, 108), EventRange("REST", 0, 0)))
    lo, hi = vocab.events[0].lo, vocab.events[0].hi
    rest = vocab.offsets["REST"]
    pace: NDArray[Any] | None = np.where(np.arange(vocab.size) < vocab.n_events, 1 / N_VOICES, 0.0)  # sixteenths
    grammar = GridGrammar(vocab, N_VOICES, STEPS_PER_QUARTER, REST)

    def normalise(self, score: Score) -> Score:
        """The score on the grid: see `musictx.notes.grid.snap_to_grid`."""
        return snap_to_grid(score)

    def encode(self, score: Score) -> Ids:
        """(T,) ids of the whole score, T a multiple of 4, without BOS and EOS. Raises TokenError when more
        than four notes sound at once or a pitch lies outside the vocabulary."""
        return self.encode_grid(score_to_grid(score))

    def encode_grid(self, grid: Grid) -> Ids:
        """(steps, 4) pitches as ids (4·steps,). Raises TokenError for a pitch outside the vocabulary."""
        sung = grid[grid != REST]
        if sung.size and (sung.min() < self.lo or sung.max() > self.hi):
            wrong = int(sung.min() if sung.min() < self.lo else sung.max())
            raise TokenError(
                f"pitch {wrong} is outside the chorale vocabulary, which holds {self.lo} … {self.hi}; "
                "transpose the piece or use a performance model"
            )
        return np.where(grid == REST, self.rest, grid - self.lo).astype(np.uint16).reshape(-1)

    def decode_grid(self, ids: NDArray[np.integer]) -> Grid:
        """Any ids up to the first EOS as a grid; a last step that is not complete is filled with rests."""
        self.vocab.check(ids)
        eos = np.flatnonzero(ids == self.vocab.eos)
        ids = (ids[: eos[0]] if eos.size else ids).astype(np.int16)
        ids = ids[ids < self.vocab.n_events]
        ids = np.append(ids, np.full(-len(ids) % N_VOICES, self.rest, dtype=np.int16))
        return np.where(ids == self.rest, REST, ids + self.lo).astype(np.int16).reshape(-1, N_VOICES)

    def decode(self, ids: NDArray[np.integer], quarter_s: float = 0.6) -> Score:
        """Any ids as a Score at the given tempo. Raises TokenError for ids outside the vocabulary."""
        return grid_to_score(self.decode_grid(ids), quarter_s)

    def seconds(self, ids: NDArray[np.integer], quarter_s: float = 0.6) -> float:
        """How much time a stream of ids takes; a last step that is not complete does not count."""
        return int((ids < self.vocab.n_events).sum()) // N_VOICES * quarter_s / STEPS_PER_QUARTER

    def silence(self, seconds: float, quarter_s: float = 0.6) -> Ids:
        """Ids that let so much time pass, to the nearest sixteenth."""
        steps = max(round(seconds / quarter_s * STEPS_PER_QUARTER), 0)
        return np.full(steps * N_VOICES, self.rest, dtype=np.uint16)

    def pitch_range(self, ids: NDArray[np.integer]) -> tuple[int, int] | None:
        """Lowest and highest pitch in a window of ids; None when all is silence."""
        sung = ids[ids < self.rest]
        return (int(sung.min()) + self.lo, int(sung.max()) + self.lo) if sung.size else None

    def transpose(self, ids: Ids, semitones: int) -> Ids:
        """A window of ids, every pitch moved; the caller keeps it within the vocabulary's range."""
        return np.where(ids < self.rest, ids + np.int32(semitones), ids).astype(np.uint16)

    def stretch(self, ids: Ids, factor: float) -> Ids:
        """A grid has no clock to stretch: only factor 1 is allowed."""
        if factor != 1.0:
            raise TokenError(f"stretch {factor}: the chorale grid has no clock; set data.stretch=[1.0]")
        return ids
