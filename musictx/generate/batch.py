"""Rows drawn together until each has its length, warmer while they repeat themselves."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from musictx.errors import ConfigError
from musictx.generate.engine import Stream, StreamStep
from musictx.generate.particles import Particles
from musictx.generate.requests import Length
from musictx.music.score import Meter
from musictx.tokenizers import Ids, Tokenizer

LOOK_EVERY = 32  # tokens: how far each row has come, and whether it goes in circles


class Goal(Protocol):
    """The length of one row."""

    def after(self, row: NDArray[np.integer]) -> float:
        """The share of the requested length after ids (T,)."""
        ...


class Progress:
    """The progress of one row; 1 is the requested length."""

    def __init__(
        self, length: Length, meter: Meter, tokenizer: Tokenizer, prompt: NDArray[np.integer], quarter_s: float
    ) -> None:
        self.tokenizer, self.prompt, self.quarter_s = tokenizer, prompt, quarter_s
        self.start_s = tokenizer.seconds(prompt, quarter_s)
        self.tokens, self.seconds = length.tokens, length.in_seconds(meter, self.start_s)

    def after(self, row: NDArray[np.integer]) -> float:
        """The share of the requested length after ids (T,)."""
        if self.tokens is not None:
            return len(row) / self.tokens
        assert self.seconds is not None
        now_s = self.tokenizer.seconds(np.concatenate([self.prompt, row]), self.quarter_s)
        return (now_s - self.start_s) / self.seconds


class Take(NamedTuple):
    """The ids of one row, and their log-probabilities without filters or guidance."""

    ids: Ids  # (T,)
    log_p: NDArray[np.float64]  # (T,)
    stopped: str  # why it is shorter than requested; "" if it is not
    held: int = 0  # notes that came although the guard made them less likely


class Batch:
    """An iterator of one token a row, until each has its length or `limit` tokens, or a call of `stop`."""

    def __init__(
        self, stream: Stream, progress: Sequence[Goal], limit: int, particles: Particles | None = None
    ) -> None:
        self.stream, self.progress, self.particles = stream, progress, particles
        self.chance = stream.chance
        self.limit, n = limit, len(progress)
        self.rows = np.zeros((n, 0), dtype=np.uint16)  # (B, T)
        self.log_p = np.zeros((n, 0))  # (B, T)
        self.new: list[StreamStep] = []  # since the last look
        self.enough = np.zeros(n, dtype=np.int64)  # tokens when a look found the row long enough; 0: not yet
        self.warmth = np.ones(n)
        self.chance.warm(self.warmth.tolist())
        self.held = np.zeros(n, dtype=np.int64)  # as in `Take`
        self.stopped, self.share = "", 0.0  # of the requested lengths, at the last look

    def __iter__(self) -> Iterator[StreamStep]:
        """Raises NanError."""
        try:
            while self.rows.shape[1] < self.limit and not self.enough.all():
                for _ in range(min(LOOK_EVERY, self.limit - self.rows.shape[1])):
                    self.new.append(next(self.stream))
                    yield self.new[-1]
                self._look()
        except ConfigError as reason:  # a model of learned positions ends with its table
            if not self.new and not self.rows.size:
                raise
            self.stop(reason.why or str(reason))

    def stop(self, why: str) -> None:
        """Ends the drawing; rows that are too short name the reason."""
        self.stopped = why

    def takes(self) -> list[Take]:
        """Each row up to its length, whatever the other rows are; of particles the best."""
        self._gather()
        why = self.stopped or f"{self.limit} tokens are the most"
        rows = zip(self.rows, self.log_p, self.enough.tolist(), self.held.tolist(), strict=True)
        takes = [Take(row[: n or None], log_p[: n or None], "" if n else why, held) for row, log_p, n, held in rows]
        return takes if self.particles is None else [takes[row] for row in self.particles.best(self.enough > 0)]

    def _look(self) -> None:
        self._gather()
        shares = [p.after(row) for p, row in zip(self.progress, self.rows, strict=True)]
        self.share = float(np.clip(shares, 0, 1).mean())
        sounding = self.enough == 0
        self.enough[sounding & (np.array(shares) >= 1)] = self.rows.shape[1]
        if self.particles is not None:
            ends = self.enough.all() or self.rows.shape[1] == self.limit
            rows = self.particles.look(sounding, bool(ends))
            self.rows, self.log_p = self.rows[rows], self.log_p[rows]
            self.enough, self.warmth, self.held = self.enough[rows], self.warmth[rows], self.held[rows]
        if self.chance.sampling.guard:
            self.warmth = next_warmth(self.warmth, self.rows)
            self.chance.warm(self.warmth.tolist())

    def _gather(self) -> None:
        if self.new:
            if self.chance.character is not None:
                self.held = np.where(self.enough == 0, self.chance.character.held, self.held)
            ids, log_p = (np.stack(column, 1) for column in zip(*self.new, strict=True))  # (B, n)
            self.rows = np.concatenate([self.rows, ids.astype(np.uint16)], 1)
            self.log_p = np.concatenate([self.log_p, log_p], 1)
            self.new = []


LOOK = 128  # tokens that must repeat: two bars of a chorale, some seconds of a performance
LONGEST_LAG = 64  # so that a loop has gone round at least twice
ALIKE = 0.95  # the share of tokens that must repeat
FEW = 4  # different tokens in `LOOK`: one repeated note, or one long chord
WARMER, WARMEST = 1.25, 3.0  # factors on the temperature: for every look that finds a loop, and in all


def in_loop(rows: NDArray[np.integer]) -> NDArray[np.bool_]:
    """(B,) whether the last tokens of a row (B, T) repeat those up to `LONGEST_LAG` earlier, or have few ids."""
    if rows.shape[1] < LOOK + LONGEST_LAG:
        return np.zeros(len(rows), dtype=bool)
    tail = rows[:, -LOOK - LONGEST_LAG :]
    now = tail[:, LONGEST_LAG:]  # (B, LOOK)
    earlier = np.lib.stride_tricks.sliding_window_view(tail[:, :-1], LOOK, axis=1)  # (B, LONGEST_LAG, LOOK)
    loops = ((earlier == now[:, None]).mean(-1) >= ALIKE).any(-1)
    different = (np.diff(np.sort(now, axis=1), axis=1) != 0).sum(1) + 1
    still: NDArray[np.bool_] = loops | (different <= FEW)
    return still


def next_warmth(factor: NDArray[np.float64], rows: NDArray[np.integer]) -> NDArray[np.float64]:
    """The factor (B,) on each row's temperature; 1 outside a loop."""
    return np.where(in_loop(rows), np.minimum(factor * WARMER, WARMEST), 1.0)
