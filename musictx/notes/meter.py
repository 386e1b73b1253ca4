"""Bars: the time signature a file begins with, and where its bar lines fall."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MOST_BARS = 100_000  # a file that claims more is damaged


@dataclass(frozen=True)
class Meter:
    """Four quarters a bar unless a file says otherwise. `lines_s` are the bar lines of a file, through all its changes
    of tempo and time signature, up to the first one after its music; without them bars are even."""

    quarter_s: float = 0.5
    signature: tuple[int, int] = (4, 4)
    lines_s: NDArray[np.float64] | None = None  # (K,)

    @property
    def bar_s(self) -> float:
        """How long a bar lasts at the tempo and in the signature of the beginning."""
        beats, unit = self.signature
        return self.quarter_s * 4 * beats / unit

    def bars_s(self, until_s: float) -> NDArray[np.float64]:
        """Bar lines in seconds from 0 to the first at or after `until_s`."""
        lines = self.lines_s if self.lines_s is not None and len(self.lines_s) else np.zeros(1)
        missing = int(np.ceil(min(max(until_s - lines[-1], 0.0) / self.bar_s, MOST_BARS)))
        lines = np.concatenate([lines, lines[-1] + self.bar_s * np.arange(1, missing + 1)])
        upto: NDArray[np.float64] = lines[: int(np.searchsorted(lines, until_s - 1e-6)) + 1]
        return upto
