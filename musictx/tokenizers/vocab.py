"""The vocabulary: one table of (event type, min, max)."""

import hashlib
import json
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.errors import TokenError, UserError

Ids = NDArray[np.uint16]  # (T,)
MAX_IDS = 2**16 - 1  # the most for the uint16 of stores


class EventRange(NamedTuple):
    """One row of the table: every value from `lo` to `hi` is a token."""

    type: str
    lo: int
    hi: int

    def __str__(self) -> str:
        return f"{self.type} {self.lo} … {self.hi}"


SPECIALS = (EventRange("PAD", 0, 0), EventRange("BOS", 0, 0), EventRange("EOS", 0, 0))


@dataclass(frozen=True)
class Vocab:
    """Token ids, numbered down the table: `events`, PAD, BOS, EOS, then ids that an objective adds.

    Raises UserError for a table with ambiguous ids.
    """

    # names the rules of the ids and enters the fingerprint: old stores are refused even if only the rules change
    encoding: str
    events: tuple[EventRange, ...]
    added: tuple[EventRange, ...] = ()

    def __post_init__(self) -> None:
        name = self.encoding.partition(" ")[0]
        if duplicates := [type for type, n in Counter(row.type for row in self.table).items() if n > 1]:
            hint = "give other names; PAD, BOS and EOS are in each"
            raise UserError(f"vocabulary {name} has {', '.join(duplicates)} more than once", hint)
        if empty_rows := [str(row) for row in self.table if row.hi < row.lo]:
            raise UserError(f"vocabulary {name} has no ids for {', '.join(empty_rows)}", "give the lower value first")
        if self.size > MAX_IDS:
            hint = f"give {MAX_IDS:,} at most, which is a store's limit"
            raise UserError(f"vocabulary {name} has {self.size:,} ids", hint)

    @cached_property
    def table(self) -> tuple[EventRange, ...]:
        return self.events + SPECIALS + self.added

    @cached_property
    def _sizes(self) -> list[int]:
        return [row.hi - row.lo + 1 for row in self.table]

    @cached_property
    def offsets(self) -> dict[str, int]:
        """First id of each event type."""
        starts = np.cumsum([0, *self._sizes[:-1]])
        return {row.type: int(start) for row, start in zip(self.table, starts, strict=True)}

    @cached_property
    def size(self) -> int:
        return sum(self._sizes)

    @property
    def n_events(self) -> int:
        """The number of ids that are music; they come first."""
        return self.pad

    @property
    def pad(self) -> int:
        return self.offsets["PAD"]

    @property
    def bos(self) -> int:
        return self.offsets["BOS"]

    @property
    def eos(self) -> int:
        return self.offsets["EOS"]

    def row(self, type: str) -> EventRange:
        return next(row for row in self.table if row.type == type)

    def id(self, type: str, value: int = 0) -> int:
        """The id of one event. Raises TokenError for a value outside the table."""
        row = self.row(type)
        if not row.lo <= value <= row.hi:
            raise TokenError(f"{type} {value} is not in the vocabulary", f"{type} goes from {row.lo} to {row.hi}")
        return self.offsets[type] + value - row.lo

    def mask(self, *types: str) -> NDArray[np.bool_]:
        """(V,) True at the ids of the given event types."""
        rows = np.array([row.type in types for row in self.table])
        return np.repeat(rows, self._sizes)

    def values(self, *types: str) -> NDArray[np.int64]:
        """(V,) the value of each id of the given event types, -1 everywhere else."""
        out = np.full(self.size, -1)
        for type in types:
            row = self.row(type)
            out[self.mask(type)] = np.arange(row.lo, row.hi + 1)
        return out

    def describe(self, id: int) -> str:
        """One token in words: `NOTE_ON 60`."""
        for row in self.table:
            value = id - self.offsets[row.type] + row.lo
            if row.lo <= value <= row.hi:
                return row.type if row.lo == row.hi else f"{row.type} {value}"
        raise TokenError(f"id {id} is not in the vocabulary", f"ids go from 0 to {self.size - 1}")

    def check(self, ids: NDArray[np.integer]) -> None:
        """Raises TokenError for an id outside the table."""
        outsiders = ids[(ids < 0) | (ids >= self.size)]
        if outsiders.size:
            self.describe(int(outsiders[0]))

    def music(self, ids: NDArray[np.integer]) -> NDArray[np.integer]:
        """The events up to the first EOS. Raises TokenError for an id outside the table."""
        self.check(ids)
        before = ids[: np.append(np.flatnonzero(ids == self.eos), len(ids))[0]]
        return before[before < self.n_events]

    @cached_property
    def fingerprint(self) -> str:
        """16 hex digits, shared only by vocabularies whose ids mean the same."""
        text = json.dumps([self.encoding, self.table], separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def without_added(self) -> "Vocab":
        """The vocabulary of stores."""
        return replace(self, added=())

    def ids_of(self, old: "Vocab") -> NDArray[np.int64] | None:
        """(V_old,) this vocabulary's id for each of `old`; None unless `old` is a beginning of it."""
        is_prefix = self.encoding == old.encoding
        for mine, theirs in ((self.events, old.events), (self.added, old.added)):
            is_prefix = is_prefix and mine[: len(theirs)] == theirs
        if not is_prefix:
            return None
        starts = [self.offsets[row.type] for row in old.table]
        return np.concatenate([start + np.arange(n) for start, n in zip(starts, old._sizes, strict=True)])
