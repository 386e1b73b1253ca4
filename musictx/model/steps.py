"""The steps of a model, as numbers: music is drawn with these alone, whatever computes them."""

from collections.abc import Sequence
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Logits = NDArray[np.float32]  # (B, V)
Rows = NDArray[np.int64]  # (B,)


class Steps(Protocol):
    """Some rows of a model: what they have seen, and their next steps. Cached steps equal one full pass."""

    def prefill(self, ids: NDArray[np.int64]) -> Logits:
        """Reads ids (B, T), at least one a row -> logits (B, V) after the last."""
        ...

    def step(self, ids: Rows) -> Logits:
        """One more token a row, ids (B,) -> logits (B, V)."""
        ...

    def move(self, rows: Rows) -> None:
        """Row b becomes what row rows[b] was, (B,), of the same prompt."""
        ...

    def take(self, rows: Rows) -> Self:
        """These rows (n,), in that order, with a state of their own. A row may come several times."""
        ...


@runtime_checkable
class Player(Protocol):
    """A causal model over ids, ready to continue music."""

    @property
    def window(self) -> int | None:
        """How many tokens back it should look in endless music; None: its memory is unlimited."""
        ...

    @property
    def cycle(self) -> int:
        """After how many tokens its places repeat (1: it has none); the token after BOS has place 0."""
        ...

    def begin(self, room: int, rolling: bool = False) -> Steps:
        """One row that has seen nothing, for `room` tokens in all; a rolling one has no end and remembers at least the
        last `room`."""
        ...

    def join(self, parts: Sequence[Any], of_row: Sequence[int]) -> Steps:
        """Rows that go on one token at a time: row b from parts[of_row[b]], each of one row. The parts are used up."""
        ...


class SourcePlayer(Protocol):
    """A model that writes a target for a source."""

    def begin(self, source: NDArray[np.int64], room: int) -> Steps:
        """Rows for a source each (B, S), PAD where it has ended, which it reads once, and for `room` tokens in all."""
        ...


def newest(n_ids: int, at_most: int, period: int) -> int:
    """Where to begin reading a piece of `n_ids`, one `period` or more, without its BOS. At most `at_most` tokens (or
    one period) from its end; the token before a whole period takes the place of BOS."""
    start = max(n_ids - max(at_most, period), 0)
    return start + -(start + 1) % period
