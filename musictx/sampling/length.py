"""How much new music: seconds, notes or tokens, and how far a stream of ids has come."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from musictx.errors import ConfigError
from musictx.tokenizers import Tokenizer

DEFAULT_S = 20.0
MOST = {"seconds": 24 * 3600.0, "bars": 100_000.0, "notes": 1_000_000, "tokens": 1_000_000}
MOST_TOKENS = 1_000_000  # of all rows together


@dataclass(frozen=True)
class Length:
    """At most one of the four; none is 20 seconds. Raises ConfigError for others and for amounts that cannot be."""

    seconds: float | None = None
    bars: float | None = None
    notes: int | None = None
    tokens: int | None = None

    def __post_init__(self) -> None:
        given = {name: value for name in MOST if (value := getattr(self, name)) is not None}
        if len(given) > 1:
            names = ", ".join(f"length_{name}={value}" for name, value in given.items())
            raise ConfigError(f"{names}: give one of them")
        for name, value in given.items():
            if not 0 < value <= MOST[name]:  # refuses NaN too
                raise ConfigError(f"length_{name}={value}: give more than 0 and at most {MOST[name]:g}")

    def in_seconds(self, bar_s: float) -> float | None:
        """The seconds asked for; None when it is notes or tokens."""
        if self.bars is not None:
            return self.bars * bar_s
        return DEFAULT_S if self.notes is None and self.tokens is None and self.seconds is None else self.seconds


class Progress:
    """How far one row has come on its way, measured whenever it is looked at; 1 is the length that was asked for."""

    def __init__(
        self, length: Length, bar_s: float, tokenizer: Tokenizer, motif: NDArray[np.integer], quarter_s: float
    ) -> None:
        self.length, self.seconds = length, length.in_seconds(bar_s)
        self.tokenizer, self.motif, self.quarter_s = tokenizer, motif, quarter_s
        self.start_s = tokenizer.seconds(motif, quarter_s)
        self.start_notes = len(tokenizer.decode(motif, quarter_s)) if length.notes is not None else 0
        self.tokens, self.elapsed_s = 0, 0.0
        self.seen: list[tuple[int, float]] = [(0, 0.0)]  # (tokens, share) at every look

    def look(self, row: NDArray[np.integer]) -> float:
        """The share after the ids (T,) drawn so far."""
        share = self._share(row)
        self.tokens = len(row)
        self.seen.append((self.tokens, share))
        return share

    def _share(self, row: NDArray[np.integer]) -> float:
        if self.length.tokens is not None:
            return len(row) / self.length.tokens
        if self.length.notes is not None:
            notes = len(self.tokenizer.decode(np.concatenate([self.motif, row]), self.quarter_s))
            return (notes - self.start_notes) / self.length.notes
        assert self.seconds is not None
        if self.tokenizer.pace is not None:  # every id moves the clock by itself: only the new ones need be asked
            whole = self.tokens - self.tokens % self.tokenizer.group
            before = self.tokenizer.seconds(row[whole : self.tokens], self.quarter_s)
            self.elapsed_s += self.tokenizer.seconds(row[whole:], self.quarter_s) - before
        else:
            both = np.concatenate([self.motif, row])
            self.elapsed_s = self.tokenizer.seconds(both, self.quarter_s) - self.start_s
        return self.elapsed_s / self.seconds

    def at(self, tokens: NDArray[np.integer]) -> NDArray[np.float64]:
        """The share after each number of tokens, on straight lines between the looks."""
        at, share = np.array(self.seen).T
        between: NDArray[np.float64] = np.interp(tokens, at, share)
        return between
