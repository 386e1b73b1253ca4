"""What sampling and evaluation know of a model: the same for a KV cache and a hidden state."""

from typing import Any, Protocol

from torch import Tensor


class State(Protocol):
    """What a model remembers of the tokens it has seen."""

    length: int  # tokens seen

    def repeat(self, n: int) -> "State":
        """The one row of a batch as n rows, so that one prefill serves n continuations."""
        ...


class LanguageModel(Protocol):
    """A causal model over ids. Cached step-by-step equals one full pass."""

    def __call__(self, ids: Tensor) -> Tensor:
        """ids (B, T) -> logits (B, T, V) of the token after each."""
        ...

    def init_state(self, batch: int, max_T: int) -> Any: ...

    def prefill(self, ids: Tensor, state: Any) -> Tensor:
        """ids (B, T) into the state -> logits (B, V) after the last."""
        ...

    def step(self, ids: Tensor, state: Any) -> Tensor:
        """One more token a row, ids (B,) -> logits (B, V)."""
        ...
