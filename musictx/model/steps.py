"""The steps of a model as numpy arrays: music is drawn with these alone."""

from collections.abc import Sequence
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Logits = NDArray[np.float32]  # (B, V)
Rows = NDArray[np.int64]  # (B,)


class Steps(Protocol):
    """Some rows of a model, and their next steps. Cached steps equal one full pass."""

    def prefill(self, ids: NDArray[np.int64]) -> Logits:
        """Reads ids (B, T), at least one a row -> logits (B, V) after the last."""
        ...

    def step(self, ids: Rows) -> Logits:
        """One token a row, ids (B,) -> logits (B, V)."""
        ...

    def move(self, rows: Rows) -> None:
        """Row b becomes the former row rows[b], (B,), of the same prompt."""
        ...

    def take(self, rows: Rows) -> Self:
        """The rows (n,) in that order, with a state of their own. A row may come several times."""
        ...


@runtime_checkable
class Player(Protocol):
    """A causal model over ids, ready to continue music."""

    @property
    def window(self) -> int | None:
        """Tokens to look back in endless music; None: unlimited."""
        ...

    @property
    def cycle(self) -> int:
        """Tokens until places repeat (1: no places); the token after BOS has place 0."""
        ...

    def begin(self, room: int, rolling: bool = False) -> Steps:
        """One empty row for `room` tokens; a rolling one has no end and remembers at least the last `room`."""
        ...

    def join(self, parts: Sequence[Any], of_row: Sequence[int]) -> Steps:
        """Row b goes on from parts[of_row[b]], each of one row, a token at a time. The parts are used up."""
        ...


class SourcePlayer(Protocol):
    """A model that writes a target for a source."""

    def begin(self, source: NDArray[np.int64], room: int) -> Steps:
        """Rows for `room` tokens after a source each (B, S), PAD where it has ended, which it reads once."""
        ...


def newest(n_ids: int, at_most: int, period: int) -> int:
    """The start of the last `at_most` of `n_ids` tokens, at least one `period`, after the token before a whole period:
    it takes the place of BOS."""
    start = max(n_ids - max(at_most, period), 0)
    return start + -(start + 1) % period
