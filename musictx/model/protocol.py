"""The interface of a model for sampling and evaluation: the same for a KV cache and a hidden state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self

if TYPE_CHECKING:
    from torch import Tensor


class State(Protocol):
    """What a model remembers about the tokens it has seen."""

    length: int  # tokens seen

    def take(self, rows: Tensor) -> State:
        """The rows (n,) of this batch, in that order. A row may come several times: one prefill serves them all."""
        ...

    def move(self, rows: Tensor) -> None:
        """Row b becomes what row rows[b] was, (B,)."""
        ...

    @classmethod
    def join(cls, states: Sequence[Self]) -> Self:
        """States of equal room, of prompts of any lengths, as one batch; each row continues as it would alone."""
        ...


class Steps(Protocol):
    """What a stream needs from a model that has made its state."""

    def prefill(self, ids: Tensor, state: Any) -> Tensor:
        """Reads ids (B, T) into the state -> logits (B, V) after the last."""
        ...

    def step(self, ids: Tensor, state: Any) -> Tensor:
        """One more token a row, ids (B,) -> logits (B, V)."""
        ...


class LanguageModel(Steps, Protocol):
    """A causal model over ids. Cached steps equal one full pass."""

    def __call__(self, ids: Tensor) -> Tensor:
        """ids (B, T) -> logits (B, T, V) of the token after each."""
        ...

    @property
    def window(self) -> int | None:
        """How many tokens back it should look in endless music; None: its memory is unlimited."""
        ...

    @property
    def cycle(self) -> int:
        """After how many tokens its places repeat (1: it has none); the token after BOS has place 0."""
        ...

    def init_state(self, batch: int, max_T: int, rolling: bool = False) -> Any:
        """A state for `max_T` tokens in all; a rolling one has no end and remembers at least the last `max_T`."""
        ...


class SourceModel(Steps, Protocol):
    """A model that writes a target for a source. Cached steps equal one full pass; no logits depend on later ids of the
    target, all depend on the whole source."""

    def __call__(self, source: Tensor, ids: Tensor) -> Tensor:
        """source (B, S), PAD where it has ended, ids (B, T) -> logits (B, T, V) of the token after each."""
        ...

    @property
    def cycle(self) -> int:
        """After how many tokens of source and target together its places repeat; 1: it has none."""
        ...

    def init_state(self, source: Tensor, max_T: int) -> Any:
        """A state for a source (B, S), which it reads once, and for `max_T` tokens in all."""
        ...
