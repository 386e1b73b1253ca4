"""The interface of a model for sampling and evaluation, with a KV cache or a hidden state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self

if TYPE_CHECKING:
    from torch import Tensor


class State(Protocol):
    """A model's memory of past tokens."""

    length: int  # tokens seen

    def take(self, rows: Tensor) -> State:
        """The rows (n,) in that order. A row may come several times: one prefill serves them all."""
        ...

    def move(self, rows: Tensor) -> None:
        """Row b becomes the former row rows[b], (B,)."""
        ...

    @classmethod
    def join(cls, states: Sequence[Self]) -> Self:
        """States of equal room as one batch; each row continues as it would alone."""
        ...


class Steps(Protocol):
    """The steps of a model that has made its state."""

    def prefill(self, ids: Tensor, state: Any) -> Tensor:
        """Reads ids (B, T) into the state -> logits (B, V) after the last."""
        ...

    def step(self, ids: Tensor, state: Any) -> Tensor:
        """One token a row, ids (B,) -> logits (B, V)."""
        ...


class LanguageModel(Steps, Protocol):
    """A causal model over ids. Cached steps equal one full pass."""

    def __call__(self, ids: Tensor) -> Tensor:
        """ids (B, T) -> logits (B, T, V) of the token after each."""
        ...

    @property
    def window(self) -> int | None:
        """Tokens to look back in endless music; None: unlimited."""
        ...

    @property
    def cycle(self) -> int:
        """Tokens until places repeat (1: no places); the token after BOS has place 0."""
        ...

    def init_state(self, batch: int, max_T: int, rolling: bool = False) -> Any:
        """A state for `max_T` tokens; a rolling one has no end and remembers at least the last `max_T`."""
        ...


class SourceModel(Steps, Protocol):
    """A model that writes a target for a source. Cached steps equal one full pass."""

    def __call__(self, source: Tensor, ids: Tensor) -> Tensor:
        """source (B, S), PAD where it has ended, ids (B, T) -> logits (B, T, V) of the token after each. They depend on
        the whole source, and on no later id."""
        ...

    @property
    def cycle(self) -> int:
        """As in LanguageModel, for source and target together."""
        ...

    def init_state(self, source: Tensor, max_T: int) -> Any:
        """A state for `max_T` tokens after a source (B, S), which it reads once."""
        ...
