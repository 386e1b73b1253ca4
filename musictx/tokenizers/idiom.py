"""How an encoding is spoken live: ids of a phrase that goes on, and events of ids as they are drawn."""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from musictx.notes.score import Score
from musictx.tokenizers.vocab import Ids


class Event(NamedTuple):
    """A note begins, or ends where the velocity is 0."""

    at_s: float
    pitch: int
    velocity: int


class Reader(Protocol):
    """A reply, read id by id; its times are seconds from where it begins, `clock_s` how far it has come."""

    @property
    def clock_s(self) -> float: ...

    def read(self, id_: int) -> list[Event]:
        """What is known to sound after one more id."""
        ...


class Idiom(Protocol):
    """`waits` (V,): True for ids that let time pass without a note."""

    waits: NDArray[np.bool_]

    def ids(self, score: Score, now_s: float) -> Ids:
        """The ids of a phrase that no note from `now_s` on can change; all of them at infinity."""
        ...

    def heard(self, ids: Ids, seconds: float) -> Ids:
        """What has been heard of a reply's ids so many seconds after its beginning, all notes let go."""
        ...

    def reader(self) -> Reader: ...
